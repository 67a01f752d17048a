"""Load times of dashboard pages in a real browser, over a collector with millions of generations.

Fills a database as `benchmarks.reads` does, gives each rollout a verdict, starts a collector and a
dashboard on it, and opens pages in Chromium. Measures the time from navigation to the first useful
content (the verdict's banner, the table of rollouts) and to the complete page, from a click on a
filter to the filtered page, and from navigation to completion for the other pages; for each step
also the CPU time of the collector and the dashboard. Filling and measuring can be separate runs, as
for `benchmarks.reads`, whose databases can be reused. With `--peer phoenix` the project page of an
Arize Phoenix with 100,000 spans is measured alternately in the same browser: to its first row, and
from setting a filter to the filtered list. Prints one JSON document last.

    python -m benchmarks.dashboard --generations 200000
    python -m benchmarks.dashboard --database sqlite:////data/reads.db --fill-only
    python -m benchmarks.dashboard --database sqlite:////data/reads.db --measure-only
    python -m benchmarks.dashboard --measure-only --database sqlite:////data/reads.db --peer phoenix
"""

import argparse
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks import reads
from benchmarks.load import phoenix_page
from benchmarks.load.rows import rollout_name
from benchmarks.load.spans import COHORTS, ROLLOUTS
from benchmarks.load.verdicts import verdict
from collector.client import Client
from dashboard import server
from evals.evidence.parts import parts_of
from evals.source import load_pairs

_RESTING = '[data-testid="stApp"][data-test-script-state="notRunning"]'
_BANNER, _LIST = ".dg-banner", "table.dg-table tbody tr"
_OTHERS = ("acceptance", "pairs", "traces", "live", "verdicts")


def main() -> None:
    """Run the benchmark."""
    options = arguments()
    with reads.database(options) as url:
        if not options.measure_only:
            reads.fill(url, options)
        with Client.local(url) as client:
            for number in range(ROLLOUTS):
                if not client.verdicts(rollout_name(number), limit=1):
                    parts = parts_of(load_pairs(client, rollout_name(number)))
                    made = replace(verdict(rollout_name(number)), evidence=parts)
                    client.post_verdict(made)
        if options.fill_only:
            return
        with served(url) as (collector_url, collector), Client(collector_url) as client:
            held = sum(o.baseline_generations + o.candidate_generations for o in client.rollouts())
            with (
                server.start(collector_url=collector_url, port=free_port()) as dashboard,
                peer(options) as peer_url,
            ):
                meter = Meter({"collector": collector, "dashboard": dashboard.pid})
                measure(dashboard.url, options.repetitions, meter, peer_url)
    print(
        json.dumps(
            {
                "benchmark": "dashboard",
                "generations": held,
                "machine": {
                    "processor": platform.processor() or platform.machine(),
                    "cores": os.cpu_count(),
                    "load_average": os.getloadavg()[0],
                    "python": platform.python_version(),
                },
                "milliseconds": meter.summed(),
            },
            indent=2,
        )
    )


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--generations", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--repetitions", type=int, default=10, help="of each step")
    parser.add_argument("--database", default="sqlite", help="as for benchmarks.reads")
    parser.add_argument("--as-user", help="user that runs PostgreSQL if root starts it")
    parser.add_argument("--folder", help="folder for databases (default: the system's)")
    parser.add_argument(
        "--peer", choices=("phoenix",), help="peer whose page is measured alternately"
    )
    parser.add_argument("--peer-spans", type=int, default=100_000, help="spans stored in the peer")
    parser.add_argument("--peers-folder", type=Path, default=Path("~/.cache/draftgate-peers"))
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--fill-only", action="store_true", help="only fill the URL's database")
    parts.add_argument(
        "--measure-only", action="store_true", help="the URL's database was filled before"
    )
    return parser.parse_args()


def peer(options: argparse.Namespace) -> AbstractContextManager[str | None]:
    """Start the requested peer with its spans, and yield its page's URL."""
    if options.peer is None:
        return nullcontext()
    folder = options.peers_folder.expanduser().absolute()
    return phoenix_page.serving(options.peer_spans, folder, options.folder)


@contextmanager
def served(database_url: str) -> Iterator[tuple[str, int]]:
    """Start a collector on the database; yield its URL once it answers, and its process id."""
    port = free_port()
    command = [sys.executable, "-m", "draftgate", "serve", "--no-grpc"]
    command += ["--database", database_url, "--port", str(port)]
    # The command is this interpreter running our code.
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:  # noqa: S603
        try:
            with Client(f"http://127.0.0.1:{port}") as client:
                while not client.health():
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Meter:
    """Records the durations of steps and the CPU time of processes, in milliseconds."""

    def __init__(self, processes: Mapping[str, int]) -> None:
        self._processes = {name: psutil.Process(id_) for name, id_ in processes.items()}
        self._taken: dict[str, dict[str, list[float]]] = {}

    def note(self, name: str, act: Callable[[], object], settle: Callable[[], object]) -> None:
        """Record the duration of `act`, and the CPU time until `settle` returns."""
        before, started_s = self._cpu_ms(), time.perf_counter()
        act()
        wall_ms = 1000 * (time.perf_counter() - started_s)
        settle()
        taken = self._taken.setdefault(name, {})
        taken.setdefault("wall", []).append(wall_ms)
        for process, after_ms in self._cpu_ms().items():
            taken.setdefault(f"cpu_{process}", []).append(after_ms - before[process])

    def summed(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return percentiles of each step's durations."""
        return {
            name: {what: summed(values) for what, values in taken.items()}
            for name, taken in self._taken.items()
        }

    def _cpu_ms(self) -> dict[str, float]:
        times = {name: process.cpu_times() for name, process in self._processes.items()}
        return {name: 1000 * (spent.user + spent.system) for name, spent in times.items()}


def measure(url: str, repetitions: int, meter: Meter, peer_url: str | None) -> None:
    """Measure the steps with fresh pages on a warm server, alternating with the peer's."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for _ in range(repetitions):
            with fresh(browser) as page:
                take(page, url, meter)
            if peer_url is not None:
                with fresh(browser) as page:
                    take_peer(page, peer_url, meter)
        browser.close()


@contextmanager
def fresh(browser: Browser) -> Iterator[Page]:
    """Yield a page with an empty cache."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(300_000)
    yield page
    page.close()


def take(page: Page, url: str, meter: Meter) -> None:
    """Measure the steps on the dashboard."""
    of = f"?rollout={rollout_name(0)}"
    settle = partial(page.wait_for_selector, _RESTING)
    meter.note("rollouts_first_paint", partial(opened, page, url, _LIST), settle)
    rollout = partial(opened, page, f"{url}/rollout{of}", _BANNER)
    meter.note("rollout_first_paint", rollout, lambda: None)
    meter.note("rollout_rest", settle, lambda: None)
    for cohort in (COHORTS[1], COHORTS[2]):
        meter.note("cohort_filter", partial(narrowed, page, cohort), settle)
    for name in _OTHERS:
        meter.note(name, partial(rested, page, f"{url}/{name}{of}"), lambda: None)


def take_peer(page: Page, url: str, meter: Meter) -> None:
    """Measure the same steps on the peer's page, without CPU time."""
    meter.note("peer_first_paint", partial(opened, page, url, phoenix_page.ROWS), lambda: None)
    page.wait_for_timeout(2_000)  # it loads more rows around the visible ones
    meter.note("peer_filter", phoenix_page.narrowing(page), lambda: None)


def opened(page: Page, url: str, sign: str) -> None:
    """Open a URL and wait for the first useful content."""
    page.goto(url, wait_until="commit")
    page.wait_for_selector(sign)


def rested(page: Page, url: str) -> None:
    """Open a URL and wait until the page is complete."""
    opened(page, url, "h1")
    page.wait_for_selector(_RESTING)


def narrowed(page: Page, cohort: str) -> None:
    """Choose a cohort and wait until the table of findings shows only that cohort."""
    page.get_by_role("radio", name=cohort, exact=True).click()
    rows = page.locator("table", has_text="All findings").locator("tbody tr")
    rows.filter(has_not_text=f"{cohort} ·").first.wait_for(state="detached")


def summed(values: list[float]) -> dict[str, float]:
    """Return percentiles of the durations."""
    return {
        "n": len(values),
        "first": round(values[0], 1),
        "p50": round(float(np.quantile(values, 0.5)), 1),
        "p95": round(float(np.quantile(values, 0.95)), 1),
        "max": round(max(values), 1),
    }


if __name__ == "__main__":
    main()

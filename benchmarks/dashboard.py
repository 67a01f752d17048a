"""How soon a reader sees a rollout, in a real browser, over a collector that holds millions.

Fills a database as `benchmarks.reads` does, gives each rollout a verdict, serves it by a collector
and a dashboard of their own, and opens pages in Chromium: the time from asking for an address to
the first thing that answers a question (the verdict's banner, the table of rollouts), to the page's
rest, from a click on a filter to the narrowed page, and how long the other pages take from an
address to their rest. Beside each step stands what CPU it took of the collector and of the
dashboard. Filling and measuring can be apart, as for `benchmarks.reads`, whose databases serve too.
The last thing printed is one JSON document.

    python -m benchmarks.dashboard --generations 200000
    python -m benchmarks.dashboard --database sqlite:////data/reads.db --fill-only
    python -m benchmarks.dashboard --database sqlite:////data/reads.db --measure-only
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
from contextlib import contextmanager
from functools import partial

import numpy as np
import psutil
from playwright.sync_api import Page, sync_playwright

from benchmarks import reads
from benchmarks.load.rows import rollout_name
from benchmarks.load.spans import COHORTS, ROLLOUTS
from collector.client import Client
from collector.contract import (
    Acceptance,
    Arm,
    ArmLatency,
    Finding,
    Outcome,
    Percentiles,
    Role,
    Verdict,
)
from dashboard import server

_RESTING = '[data-testid="stApp"][data-test-script-state="notRunning"]'
_BANNER, _LIST = ".dg-banner", "table.dg-table tbody tr"
_OTHERS = ("acceptance", "pairs", "traces", "live", "verdicts")
_SERVE = "from collector.cli import app; app()"


def main() -> None:
    """Run the benchmark."""
    options = arguments()
    with reads.database(options) as url:
        if not options.measure_only:
            reads.fill(url, options)
        with Client.local(url) as client:
            for number in range(ROLLOUTS):
                if not client.verdicts(rollout_name(number), limit=1):
                    client.post_verdict(verdict(rollout_name(number)))
        if options.fill_only:
            return
        with served(url) as (collector_url, collector), Client(collector_url) as client:
            held = sum(o.baseline_generations + o.candidate_generations for o in client.rollouts())
            with server.start(collector_url=collector_url, port=free_port()) as dashboard:
                meter = Meter({"collector": collector, "dashboard": dashboard.pid})
                measure(dashboard.url, options.repetitions, meter)
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
    parser.add_argument("--repetitions", type=int, default=10, help="of each question")
    parser.add_argument("--database", default="sqlite", help="as for benchmarks.reads")
    parser.add_argument("--as-user", help="who PostgreSQL runs as, where root starts it")
    parser.add_argument("--folder", help="where databases are made (default: the system's)")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--fill-only", action="store_true", help="the URL's, for another time")
    parts.add_argument("--measure-only", action="store_true", help="it was filled before")
    return parser.parse_args()


@contextmanager
def served(database_url: str) -> Iterator[tuple[str, int]]:
    """Serve the database by a collector; give its URL once it answers, and its process's id."""
    port = free_port()
    command = [sys.executable, "-c", _SERVE, "serve", "--no-grpc"]
    command += ["--database", database_url, "--port", str(port)]
    # The command is this interpreter and our own code.
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
    """Notes how long steps take, and what CPU of some processes, in milliseconds."""

    def __init__(self, processes: Mapping[str, int]) -> None:
        self._processes = {name: psutil.Process(id_) for name, id_ in processes.items()}
        self._taken: dict[str, dict[str, list[float]]] = {}

    def note(self, name: str, act: Callable[[], object], settle: Callable[[], object]) -> None:
        """Add how long an act took, and the CPU up to where all has settled."""
        before, started_s = self._cpu_ms(), time.perf_counter()
        act()
        wall_ms = 1000 * (time.perf_counter() - started_s)
        settle()
        taken = self._taken.setdefault(name, {})
        taken.setdefault("wall", []).append(wall_ms)
        for process, after_ms in self._cpu_ms().items():
            taken.setdefault(f"cpu_{process}", []).append(after_ms - before[process])

    def summed(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return percentiles of each step's times."""
        return {
            name: {what: summed(values) for what, values in taken.items()}
            for name, taken in self._taken.items()
        }

    def _cpu_ms(self) -> dict[str, float]:
        times = {name: process.cpu_times() for name, process in self._processes.items()}
        return {name: 1000 * (spent.user + spent.system) for name, spent in times.items()}


def measure(url: str, repetitions: int, meter: Meter) -> None:
    """Take the steps, over fresh pages of a warm server."""
    of = f"?rollout={rollout_name(0)}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for _ in range(repetitions):
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.set_default_timeout(120_000)
            settle = partial(page.wait_for_selector, _RESTING)
            meter.note("rollouts_first_paint", partial(opened, page, url, _LIST), settle)
            rollout = partial(opened, page, f"{url}/rollout{of}", _BANNER)
            meter.note("rollout_first_paint", rollout, lambda: None)
            meter.note("rollout_rest", settle, lambda: None)
            for cohort in (COHORTS[1], COHORTS[2]):
                meter.note("cohort_filter", partial(narrowed, page, cohort), settle)
            for name in _OTHERS:
                meter.note(name, partial(rested, page, f"{url}/{name}{of}"), lambda: None)
            page.close()
        browser.close()


def opened(page: Page, url: str, sign: str) -> None:
    """Ask for an address and wait for the sign that a question is answered."""
    page.goto(url, wait_until="commit")
    page.wait_for_selector(sign)


def rested(page: Page, url: str) -> None:
    """Ask for an address and wait until all of the page stands."""
    opened(page, url, "h1")
    page.wait_for_selector(_RESTING)


def narrowed(page: Page, cohort: str) -> None:
    """Choose a cohort and wait until the table of findings is of that alone."""
    page.get_by_role("radio", name=cohort, exact=True).click()
    rows = page.locator("table", has_text="All findings").locator("tbody tr")
    rows.filter(has_not_text=f"{cohort} ·").first.wait_for(state="detached")


def summed(values: list[float]) -> dict[str, float]:
    """Return percentiles of the times."""
    return {
        "n": len(values),
        "first": round(values[0], 1),
        "p50": round(float(np.quantile(values, 0.5)), 1),
        "p95": round(float(np.quantile(values, 0.95)), 1),
        "max": round(max(values), 1),
    }


def verdict(rollout: str) -> Verdict:
    """Return a made-up verdict that is as large as a real one of these cohorts."""
    times = Percentiles(n=1_000, p50=0.2, p95=0.4, p99=0.6)
    scopes = (None, *COHORTS)
    return Verdict(
        rollout=rollout,
        outcome=Outcome.PASS,
        summary="Made up, to be drawn.",
        reasons=(),
        pairs=1_000,
        incomplete_pairs=0,
        failed_pairs=0,
        duplicates=0,
        findings=tuple(
            Finding(
                metric=metric,
                stat=stat,
                cohort=cohort,
                role=Role.PROVE,
                outcome=Outcome.PASS,
                reason=None,
                bound="max",
                margin=1.25,
                unit="ratio",
                confidence=0.95,
                n=1_000,
                estimate=0.9,
                lower=0.85,
                upper=0.95,
                method="made-up/1",
                message="Made up.",
            )
            for cohort in scopes
            for metric in ("ttft", "tpot", "e2e")
            for stat in ("p95_ratio", "geomean_ratio")
        ),
        latency=tuple(
            ArmLatency(
                cohort=cohort,
                arm=arm,
                generations=1_000,
                errors=0,
                ttft_s=times,
                tpot_s=times,
                e2e_s=times,
            )
            for cohort in scopes
            for arm in Arm
        ),
        acceptance=tuple(
            Acceptance(
                cohort=cohort,
                arm=Arm.CANDIDATE,
                generations=1_000,
                excluded=0,
                steps=4_000,
                draft_tokens=16_000,
                accepted_tokens=8_000,
                rate=0.5,
                length=3.0,
                rate_per_pos=(0.8, 0.6, 0.4, 0.2),
                drafts_per_pos=(4_000,) * 4,
            )
            for cohort in scopes
        ),
        quality=(),
        policy_name="made-up",
        policy_hash="0" * 64,
        data_hash="0" * 64,
    )


if __name__ == "__main__":
    main()

"""How soon a reader sees a rollout, in a real browser, over a collector that holds millions.

Fills a database as `benchmarks.reads` does, gives each rollout a verdict, serves it by a collector
and a dashboard of their own, and opens pages in Chromium: the time from asking for an address to
the first thing that answers a question (the verdict's banner, the table of rollouts), to the page's
rest, and from a click on a filter to the narrowed page. The last thing printed is one JSON
document.

    python -m benchmarks.dashboard --generations 200000
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
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
_SERVE = "from collector.cli import app; app()"


def main() -> None:
    """Run the benchmark."""
    options = arguments()
    with reads.database(options) as url:
        if not options.measure_only:
            reads.fill(url, options)
            with Client.local(url) as client:
                for number in range(ROLLOUTS):
                    client.post_verdict(verdict(rollout_name(number)))
        with served(url) as collector_url, Client(collector_url) as client:
            held = sum(o.baseline_generations + o.candidate_generations for o in client.rollouts())
            with server.start(collector_url=collector_url, port=free_port()) as dashboard:
                timings = measure(dashboard.url, options.repetitions)
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
                "milliseconds": timings,
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
    parser.add_argument("--measure-only", action="store_true", help="it was filled before")
    return parser.parse_args()


@contextmanager
def served(database_url: str) -> Iterator[str]:
    """Serve the database by a collector; give its URL once it answers."""
    port = free_port()
    command = [sys.executable, "-c", _SERVE, "serve", "--no-grpc"]
    command += ["--database", database_url, "--port", str(port)]
    # The command is this interpreter and our own code.
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:  # noqa: S603
        try:
            with Client(f"http://127.0.0.1:{port}") as client:
                while not client.health():
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def measure(url: str, repetitions: int) -> dict[str, dict[str, float]]:
    """Return the milliseconds of each step, over fresh pages of a warm server."""
    rollout = f"{url}/rollout?rollout={rollout_name(0)}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        taken: dict[str, list[float]] = {}
        for _ in range(repetitions):
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            note(taken, "rollouts_first_paint", partial(opened, page, url, _LIST))
            note(taken, "rollout_first_paint", partial(opened, page, rollout, _BANNER))
            note(taken, "rollout_rest", partial(page.wait_for_selector, _RESTING))
            for cohort in (COHORTS[1], COHORTS[2]):
                note(taken, "cohort_filter", partial(narrowed, page, cohort))
                page.wait_for_selector(_RESTING)
            page.close()
        browser.close()
    return {name: summed(values) for name, values in taken.items()}


def note(taken: dict[str, list[float]], name: str, act: Callable[[], object]) -> None:
    """Add how long an act took, in milliseconds."""
    started_s = time.perf_counter()
    act()
    taken.setdefault(name, []).append(1000 * (time.perf_counter() - started_s))


def opened(page: Page, url: str, sign: str) -> None:
    """Ask for an address and wait for the sign that a question is answered."""
    page.goto(url, wait_until="commit")
    page.wait_for_selector(sign)


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

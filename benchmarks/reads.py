"""Response times of common queries on a collector with millions of generations.

Fills a database with the store's own writer, folding rollups on the way, then queries the HTTP API
in this process: a rollout's summary over 24 hours with ragged ends, the 50 newest generations, one
trace by id, the list of rollouts, and others. The sketch's percentiles are compared with the exact
ones of the same window. Prints one JSON document last.

    python -m benchmarks.reads --generations 200000
    python -m benchmarks.reads --database sqlite:////data/reads.db --fill-only
    python -m benchmarks.reads --database sqlite:////data/reads.db --measure-only
    python -m benchmarks.reads --database postgresql
"""

import argparse
import json
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sqlalchemy import select

from benchmarks.load.rows import Rows, rollout_name
from benchmarks.load.spans import ROLLOUTS
from benchmarks.load.targets import server
from collector.client import Client
from collector.contract import Arm
from collector.store import Batch, Store, pair_counts
from collector.store.tables import generation

_HOURS = 48
_CHUNK = 20_000
_WINDOW_S = 24 * 3600
_MINUTE_S = 60
_METRICS = ("ttft_s", "e2e_s")
_QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


def main() -> None:
    """Run the benchmark."""
    options = arguments()
    with database(options) as url:
        filled_s = None if options.measure_only else fill(url, options)
        if options.fill_only:
            return
        with Client.local(url) as client:
            timings = measure(client, url, options)
        error = sketch_error(url)
    print(
        json.dumps(
            {
                "benchmark": "reads",
                "options": vars(options),
                "machine": {
                    "processor": platform.processor() or platform.machine(),
                    "cores": os.cpu_count(),
                    "load_average": os.getloadavg()[0],
                    "python": platform.python_version(),
                },
                "fill_generations_per_s": filled_s and round(options.generations / filled_s),
                "milliseconds": timings,
                "sketch": error,
            },
            indent=2,
        )
    )


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--generations", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--repetitions", type=int, default=100, help="of each query")
    parser.add_argument(
        "--database",
        default="sqlite",
        help="sqlite or postgresql (created and deleted), or the URL of a database to fill",
    )
    parser.add_argument("--as-user", help="user that runs PostgreSQL if root starts it")
    parser.add_argument("--folder", help="folder for databases (default: the system's)")
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--fill-only", action="store_true", help="only fill the URL's database")
    parts.add_argument(
        "--measure-only",
        action="store_true",
        help="the URL's database was filled before, with the same number of generations",
    )
    return parser.parse_args()


@contextmanager
def database(options: argparse.Namespace) -> Iterator[str]:
    """Yield the URL of the database to fill or query."""
    if "://" in options.database:
        yield options.database
        return
    with tempfile.TemporaryDirectory(prefix="draftgate-", dir=options.folder) as folder:
        if options.database == "sqlite":
            yield f"sqlite:///{folder}/reads.db"
        else:
            with server(Path(folder) / "cluster", durable=True, user=options.as_user) as postgres:
                yield postgres.url


def first_start_unix_ns() -> int:
    """Return the start of the first generation: a fixed, ragged time."""
    return 1_767_225_937_000_000_000


def fill(url: str, options: argparse.Namespace) -> float:
    """Store the generations, and return the duration in seconds."""
    rows = Rows(
        options.seed,
        first_start_unix_ns=first_start_unix_ns(),
        ns_between_starts=_HOURS * 3600 * 1_000_000_000 // options.generations,
    )
    columns = (TextColumn("fill"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    store = Store.open(url)
    started_s = time.perf_counter()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=options.generations)
        for chunk in rows.chunks(options.generations, _CHUNK):
            store.write(Batch(spans=chunk))
            store.fold(at_most=10_000)
            with store.transaction() as connection:
                pair_counts.advance(connection, at_most=_CHUNK)
            bar.advance(task, len(chunk))
    store.close()
    return time.perf_counter() - started_s


def measure(client: Client, url: str, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Return the milliseconds of each query."""
    random = np.random.default_rng(options.seed)
    first_unix_s = first_start_unix_ns() // 1_000_000_000
    trace_ids = some_trace_ids(url, random, options.repetitions)

    def summary() -> None:
        start = first_unix_s + int(random.integers(0, (_HOURS * 3600) - _WINDOW_S))
        rollout = rollout_name(int(random.integers(ROLLOUTS)))
        assert client.summary(rollout, start=start, end=start + _WINDOW_S)

    def newest() -> None:
        assert len(client.newest(50)) == 50

    def newest_of_a_cohort() -> None:
        rollout = rollout_name(int(random.integers(ROLLOUTS)))
        assert len(client.newest(50, rollout, arm=Arm.CANDIDATE, cohort="rag")) == 50

    def trace() -> None:
        assert client.trace(trace_ids.pop())

    def rollouts() -> None:
        assert len(client.rollouts()) == ROLLOUTS

    def hours() -> None:
        assert client.timeseries(rollout_name(0), step="hour")

    def feedback() -> None:
        assert not any(client.feedback(rollout_name(0), newest=50_000))

    def regressions() -> None:
        assert client.regressions(rollout_name(0), limit=15).waiting_scores == 0

    def pairs() -> None:
        assert len(client.pairs(rollout_name(0), limit=15).pairs) == 15

    questions = (
        *(summary, newest, newest_of_a_cohort, trace, rollouts, hours),
        *(feedback, regressions, pairs),
    )
    return {ask.__name__: timed(ask, options.repetitions) for ask in questions}


def timed(ask: Callable[[], None], repetitions: int) -> dict[str, float]:
    """Return percentiles of a query's milliseconds, and its CPU time including the client's."""
    taken: list[float] = []
    spent_s = time.process_time()
    for _ in range(repetitions):
        started_s = time.perf_counter()
        ask()
        taken.append(1000 * (time.perf_counter() - started_s))
    spent_s = time.process_time() - spent_s
    print(f"{ask.__name__}: {np.median(taken):.1f} ms", file=sys.stderr, flush=True)
    return {
        "first": round(taken[0], 2),
        "p50": round(float(np.quantile(taken, 0.5)), 2),
        "p95": round(float(np.quantile(taken, 0.95)), 2),
        "max": round(max(taken), 2),
        "cpu": round(1000 * spent_s / repetitions, 2),
    }


def some_trace_ids(url: str, random: np.random.Generator, number: int) -> list[str]:
    """Return ids of traces at random positions of the table."""
    store = Store.open(url)
    g = generation.c
    with store.read() as connection:
        first = connection.scalars(select(g.id).order_by(g.id).limit(1)).one()
        last = connection.scalars(select(g.id).order_by(g.id.desc()).limit(1)).one()
        found = [
            connection.scalars(
                select(g.trace_id).where(g.id >= int(at)).order_by(g.id).limit(1)
            ).one()
            for at in random.integers(first, last + 1, number)
        ]
    store.close()
    return [trace_id.hex() for trace_id in found]


def sketch_error(url: str) -> dict[str, float]:
    """Compare the percentiles of one rollout's 24 hours with exact ones, per arm and cohort."""
    # Bounds at whole minutes, so that the summary's window is exactly this one.
    minute = first_start_unix_ns() // 1_000_000_000 // _MINUTE_S
    start = (minute + 1000) * _MINUTE_S
    rollout = rollout_name(0)
    with Client.local(url) as client:
        summary = client.summary(rollout, start=start, end=start + _WINDOW_S)
    worst, compared = 0.0, 0
    values = exact_values(url, rollout, start * 1_000_000_000)
    for row in summary:
        for metric in row.metrics:
            if metric.metric not in _METRICS:
                continue
            exact = np.sort(values[row.arm.value, row.cohort, metric.metric])
            assert metric.n == len(exact)
            for name, q in _QUANTILES.items():
                at = float(exact[math.floor(q * (len(exact) - 1))])
                worst = max(worst, abs(getattr(metric, name) - at) / at)
                compared += 1
    return {"percentiles_compared": compared, "worst_relative_error": worst}


def exact_values(
    url: str, rollout: str, start_unix_ns: int
) -> dict[tuple[str | None, str | None, str], list[float]]:
    """Return the measured values in the window, by arm, cohort and metric."""
    store = Store.open(url)
    g = generation.c
    wanted = (
        select(g.arm, g.cohort, g.ttft_s, g.start_unix_ns, g.end_unix_ns)
        .where(g.rollout == rollout)
        .where(g.start_unix_ns >= start_unix_ns)
        .where(g.start_unix_ns < start_unix_ns + _WINDOW_S * 1_000_000_000)
    )
    values: dict[tuple[str | None, str | None, str], list[float]] = {}
    with store.read() as connection:
        for arm, cohort, ttft_s, start, end in connection.execution_options(yield_per=5000).execute(
            wanted
        ):
            values.setdefault((arm, cohort, "ttft_s"), []).append(ttft_s)
            values.setdefault((arm, cohort, "e2e_s"), []).append((end - start) / 1e9)
    store.close()
    return values


if __name__ == "__main__":
    main()

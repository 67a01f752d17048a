"""The same generations in SQLite, PostgreSQL and ClickHouse (chdb), and what each says of them.

Every batch is written into each of them by the store's own writer, rollups folded and pairs counted
as a collector does it. Then the same summary over 24 hours, the same pairs and the same verdict are
asked of all three and compared: counts to the last one, sums to 1e-9. A second fill, of fewer
generations with prose that never repeats, gives the bytes of one. The last thing printed is one
JSON document.

    python -m benchmarks.backends --generations 1000000
    python -m benchmarks.backends --generations 10000000 --kinds clickhouse
"""

import argparse
import json
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pyarrow as pa

from benchmarks.load.rows import Rows, rollout_name
from benchmarks.load.spans import NS_BETWEEN_STARTS, Spans
from benchmarks.load.targets import Postgres, server
from collector.content import ContentPolicy, Redactor
from collector.contract import to_document
from collector.otlp.body import Encoding
from collector.otlp.traces import decode_traces
from collector.store import Batch, SpanRows, Store, pairs_arrow, prepare, rollouts
from collector.store.rollups import read
from evals import policy as policies
from evals.gate.release import decide
from evals.pairs_table import from_table

KINDS = ("sqlite", "postgresql", "clickhouse")
_ROLLOUT = rollout_name(0)
_FIRST_START_UNIX_NS = 1_767_225_937_000_000_000
_TEXT_BATCH = 256
_EVERY = 64 * 1024
"""Generations between two folds."""


class Backend(NamedTuple):
    """An open store, and the server behind it."""

    kind: str
    store: Store
    postgres: Postgres | None

    def cpu_s(self) -> float:
        """Return the processor time of this process, and of the server's."""
        own = time.process_time()
        if self.postgres is None:
            return own
        times = [process.cpu_times() for process in self.postgres.processes()]
        return own + sum(one.user + one.system for one in times)


def main() -> None:
    """Run the benchmark."""
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="draftgate-", dir=options.folder) as folder:
        with opened(options.kinds, Path(folder) / "numbers", options) as backends:
            rows = Rows(
                options.seed,
                first_start_unix_ns=_FIRST_START_UNIX_NS,
                ns_between_starts=max(
                    NS_BETWEEN_STARTS, 24 * 3600 * 10**9 // max(options.generations, 1)
                ),
            )
            written = fill(backends, rows.chunks(options.generations, options.batch))
            asked = {one.kind: answers(one, options) for one in backends}
            differences = list(compared(asked))
        with opened(options.kinds, Path(folder) / "text", options) as backends:
            fill(backends, texts(options.seed, options.text_generations))
            sizes = {one.kind: bytes_a_generation(one, options) for one in backends}
    print(
        json.dumps(
            {
                "benchmark": "backends",
                "options": vars(options),
                "machine": {
                    "processor": platform.processor() or platform.machine(),
                    "cores": os.cpu_count(),
                    "load_average": os.getloadavg()[0],
                    "python": platform.python_version(),
                },
                "write_cpu_us_a_span": written,
                "milliseconds": {kind: one["milliseconds"] for kind, one in asked.items()},
                "verdict": {kind: one["verdict"]["outcome"] for kind, one in asked.items()},
                "pairs": {kind: one["pairs"] for kind, one in asked.items()},
                "differences": differences,
                "bytes_a_generation": sizes,
            },
            indent=2,
        )
    )
    sys.exit(1 if differences else 0)


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--generations", type=int, default=1_000_000)
    parser.add_argument("--text-generations", type=int, default=40_000)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--repetitions", type=int, default=21, help="of each question")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--no-pairs", action="store_true", help="ask for summaries alone")
    parser.add_argument("--as-user", help="who PostgreSQL runs as, where root starts it")
    parser.add_argument("--folder", help="where databases are made (default: the system's)")
    return parser.parse_args()


@contextmanager
def opened(
    kinds: Sequence[str], folder: Path, options: argparse.Namespace
) -> Iterator[list[Backend]]:
    """Open an empty store of each kind."""
    folder.mkdir()
    with ExitStack() as stack:
        backends = []
        for kind in kinds:
            postgres = analytics_url = None
            database_url = f"sqlite:///{folder / kind}.db"
            if kind == "postgresql":
                started = server(folder / "cluster", durable=True, user=options.as_user)
                postgres = stack.enter_context(started)
                database_url = postgres.url
            if kind == "clickhouse":
                analytics_url = f"clickhousedb:///draftgate?interface=chdb&path={folder / 'chdb'}"
            store = Store.open(database_url, analytics_url=analytics_url)
            backends.append(Backend(kind, stack.enter_context(closing(store)), postgres))
        yield backends


def fill(
    backends: Sequence[Backend], batches: Iterable[tuple[SpanRows, ...]]
) -> dict[str, dict[str, float]]:
    """Write every batch into every store; return the processor time of a span's write."""
    taken: dict[str, list[float]] = {one.kind: [] for one in backends}
    since = 0
    for batch in batches:
        for one in backends:
            before = one.cpu_s()
            assert one.store.write(Batch(spans=batch)) == len(batch)
            taken[one.kind].append((one.cpu_s() - before) / len(batch) * 1e6)
        since += len(batch)
        if since >= _EVERY:
            since = 0
            settle(backends)
    settle(backends)
    # The first batch makes connections and partitions.
    return {
        kind: {"median": round(median(times[1:] or times), 1), "batches": len(times)}
        for kind, times in taken.items()
    }


def settle(backends: Sequence[Backend]) -> None:
    """Fold and count all that waits."""
    for one in backends:
        while one.store.fold(at_most=10_000):
            pass
        while one.store.count_pairs(at_most=50_000):
            pass


def texts(seed: int, generations: int) -> Iterator[tuple[SpanRows, ...]]:
    """Yield generations with prompts and answers, as they arrive by OTLP."""
    keep = ContentPolicy(Redactor(()))
    source = Spans(seed, first_start_unix_ns=_FIRST_START_UNIX_NS)
    for body in source.bodies(_TEXT_BATCH, -(-generations // _TEXT_BATCH)):
        yield prepare(decode_traces(body.content, Encoding.PROTOBUF).received, keep)


def answers(one: Backend, options: argparse.Namespace) -> dict[str, Any]:
    """Ask the store what a gate and a dashboard ask."""
    # Ragged ends, so that minutes are read beside hours.
    start = _FIRST_START_UNIX_NS // 10**9 // 60 * 60 + 25 * 60
    window = read.Window(start, start + 24 * 3600)
    found: dict[str, Any] = {"pairs": None, "verdict": {"outcome": None}}
    taken: dict[str, list[float]] = {"summary_24h": [], "rollouts": []}
    for _repetition in range(options.repetitions):
        began = time.perf_counter()
        with one.store.read() as connection:
            rows = rollouts.summary(connection, _ROLLOUT, window)
        summed = time.perf_counter()
        with one.store.read() as connection:
            overviews = rollouts.overviews(connection)
        taken["summary_24h"].append((summed - began) * 1000)
        taken["rollouts"].append((time.perf_counter() - summed) * 1000)
    found["summary"] = [to_document(row) for row in rows]
    found["rollouts"] = [to_document(row) for row in overviews]
    found["milliseconds"] = {name: round(median(times), 1) for name, times in taken.items()}
    if not options.no_pairs:
        began = time.perf_counter()
        schema, batches = pairs_arrow.stream(one.store, _ROLLOUT)
        table = pa.Table.from_batches(batches, schema=schema)
        found["milliseconds"]["all_pairs"] = round((time.perf_counter() - began) * 1000)
        found["pairs"] = table.num_rows
        found["table"] = table
        policy = policies.parse(policies.named_text("default"), "default")
        found["verdict"] = to_document(decide(from_table(table), policy, rollout=_ROLLOUT))
    return found


def compared(asked: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield in what the answers differ from the first one's."""
    (first, expected), *others = asked.items()
    for kind, found in others:
        for name in ("rollouts", "summary", "pairs", "verdict"):
            if not alike(found[name], expected[name]):
                yield f"{name}: {kind} differs from {first}"
        if "table" in found and not found["table"].equals(expected["table"]):
            yield f"columns of pairs: {kind} differ from {first}"


def alike(one: Any, other: Any) -> bool:  # Any: JSON
    """Say whether two documents are equal, floats to 1e-9."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


def bytes_a_generation(one: Backend, options: argparse.Namespace) -> int:
    """Return what a generation takes, text, keys and indexes included."""
    one.store.vacuum()
    return round(one.store.size_bytes() / options.text_generations)


if __name__ == "__main__":
    main()

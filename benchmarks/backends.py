"""Compare SQLite, PostgreSQL and ClickHouse (chdb) on the same generations: results and costs.

The store's own writer writes every batch into each database; rollups are folded and pairs counted
as in a collector. Then each database returns a summary over 24 hours, the pairs and a verdict,
which must be equal: counts exactly, sums to 1e-9. A second fill, of fewer generations with prose
that never repeats, gives the bytes per generation. Prints one JSON document last.

    python -m benchmarks.backends --generations 1000000
    python -m benchmarks.backends --kinds clickhouse --repeated 10 --no-pairs
"""

import argparse
import json
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from benchmarks.load.clickhouse_rows import repeat
from benchmarks.load.rows import Rows, rollout_name
from benchmarks.load.spans import NS_BETWEEN_STARTS, Spans
from benchmarks.load.stores import KINDS, Backend, fill, opened, settle
from collector.columns import Table
from collector.content import ContentPolicy, Redactor
from collector.contract import to_document
from collector.data_hash import pairs_hash
from collector.ingest.preparation import prepare
from collector.otlp.body import Encoding
from collector.otlp.traces import decode_traces
from collector.store import SpanRows, pairs_arrow, rollouts, rollup_reads
from evals import policy as policies
from evals.evidence.pairs_table import from_table
from evals.gate.release import decide

_ROLLOUT = rollout_name(0)
_FIRST_START_UNIX_NS = 1_767_225_937_000_000_000
_TEXT_BATCH = 256


def main() -> None:
    """Run the benchmark."""
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="draftgate-", dir=options.folder) as folder:
        with opened(options.kinds, Path(folder) / "numbers", options.as_user) as backends:
            rows = Rows(
                options.seed,
                first_start_unix_ns=_FIRST_START_UNIX_NS,
                ns_between_starts=max(
                    NS_BETWEEN_STARTS, 24 * 3600 * 10**9 // max(options.generations, 1)
                ),
            )
            written = fill(backends, rows.chunks(options.generations, options.batch))
            if options.repeated > 1:
                repeat(backends[0].store, options.repeated)
                settle(backends)
            held = options.generations * options.repeated
            without_text = {one.kind: bytes_a_generation(one, held) for one in backends}
            asked = {one.kind: answers(one, options) for one in backends}
            differences = list(compared(asked))
        with opened(options.kinds, Path(folder) / "text", options.as_user) as backends:
            fill(backends, texts(options.seed, options.text_generations))
            sizes = {
                one.kind: bytes_a_generation(one, options.text_generations) for one in backends
            }
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
                "bytes_a_generation_without_text": without_text,
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
    parser.add_argument("--repetitions", type=int, default=21, help="of each query")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--no-pairs", action="store_true", help="query summaries only")
    parser.add_argument("--as-user", help="user that runs PostgreSQL if root starts it")
    parser.add_argument("--folder", help="folder for databases (default: the system's)")
    parser.add_argument(
        "--repeated",
        type=int,
        default=1,
        help="number of copies in ClickHouse: made inside it, with the same timestamps",
    )
    options = parser.parse_args()
    if options.repeated > 1 and tuple(options.kinds) != ("clickhouse",):
        parser.error("--repeated: is for --kinds clickhouse alone")
    return options


def texts(seed: int, generations: int) -> Iterator[tuple[SpanRows, ...]]:
    """Yield generations with prompts and answers, as received over OTLP."""
    keep = ContentPolicy(Redactor(()))
    source = Spans(seed, first_start_unix_ns=_FIRST_START_UNIX_NS)
    for body in source.bodies(_TEXT_BATCH, -(-generations // _TEXT_BATCH)):
        yield prepare(decode_traces(body.content, Encoding.PROTOBUF).received, keep)


def answers(one: Backend, options: argparse.Namespace) -> dict[str, Any]:
    """Run the queries of a gate and a dashboard on the store."""
    # Ragged ends, so that minutes are read besides hours.
    start = _FIRST_START_UNIX_NS // 10**9 // 60 * 60 + 25 * 60
    window = rollup_reads.TimeWindow(start, start + 24 * 3600)
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
    found["milliseconds"] = {name: spread(times) for name, times in taken.items()}
    if not options.no_pairs:
        began = time.perf_counter()
        with one.store.read() as connection:
            bounds = pairs_arrow.bounds_now(connection)
        schema, batches = pairs_arrow.stream(one.store, _ROLLOUT, bounds)
        table = Table.read(pa.RecordBatchReader.from_batches(schema, batches))
        found["milliseconds"]["all_pairs"] = round((time.perf_counter() - began) * 1000)
        found["pairs"] = len(table)
        found["table"] = table
        policy = policies.parse(policies.text_by_name("default"), "default")
        found["verdict"] = to_document(decide(from_table(table), policy, rollout=_ROLLOUT))
    return found


def spread(times: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile of the times."""
    slow = sorted(times)[math.ceil(0.95 * len(times)) - 1]
    return {"median": round(median(times), 1), "p95": round(slow, 1)}


def compared(asked: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the differences of the results from those of the first database."""
    (first, expected), *others = asked.items()
    for kind, found in others:
        for name in ("rollouts", "summary", "pairs", "verdict"):
            if not alike(found[name], expected[name]):
                yield f"{name}: {kind} differs from {first}"
        if "table" in found and pairs_hash(found["table"]) != pairs_hash(expected["table"]):
            yield f"columns of pairs: {kind} differ from {first}"


def alike(one: Any, other: Any) -> bool:  # Any: JSON
    """Return whether two documents are equal, floats to 1e-9."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


def bytes_a_generation(one: Backend, generations: int) -> int:
    """Return the bytes per generation, including text, keys and indexes."""
    one.store.vacuum()
    return round(one.store.size_bytes() / generations)


if __name__ == "__main__":
    main()

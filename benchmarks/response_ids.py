"""Cost of joining evaluation results that name a response id instead of a span.

Fills a database with generations, then writes batches of scores: of spans, of response ids of the
oldest generations that are searched, and of response ids that no generation has. Prints one JSON
document with the median and 95th percentile of each batch's milliseconds.

    python -m benchmarks.response_ids
    python -m benchmarks.response_ids --database postgresql --as-user postgres
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import NamedTuple

import numpy as np

from benchmarks.load.rows import Rows
from benchmarks.reads import database, first_start_unix_ns
from collector.contract import ResponseScore, Score
from collector.store import Batch, Store
from collector.store.waiting_scores import LOOKED_THROUGH

_CHUNK = 20_000
_SIZES = (1, 100)
_versions = map(str, count())


class Answer(NamedTuple):
    """A stored generation."""

    response_id: str
    trace_id: str
    span_id: str


def main() -> None:
    """Run the benchmark."""
    options = arguments()
    with database(options) as url:
        store = Store.open(url)
        searched = fill(store, options)[-LOOKED_THROUGH:]
        found = {
            f"{size} {kind}": milliseconds(store, partial(batch, searched[:size]), options)
            for size in _SIZES
            for kind, batch in (
                ("by span", by_span),
                ("by response id", by_response_id),
                ("by the response id of no answer", by_unknown_id),
            )
        }
        store.close()
    document = {
        "benchmark": "response_ids",
        "options": vars(options),
        "cores": os.cpu_count(),
        "searched": LOOKED_THROUGH,
        "milliseconds": found,
    }
    print(json.dumps(document))


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--generations", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--repetitions", type=int, default=50, help="of each batch")
    parser.add_argument("--database", default="sqlite", help="sqlite or postgresql, or a URL")
    parser.add_argument("--as-user", help="user that runs PostgreSQL if root starts it")
    parser.add_argument("--folder", help="folder for databases (default: the system's)")
    return parser.parse_args()


def fill(store: Store, options: argparse.Namespace) -> list[Answer]:
    """Store generations with response ids, and return them in order."""
    rows = Rows(
        options.seed, first_start_unix_ns=first_start_unix_ns(), ns_between_starts=1_000_000
    )
    answers = []
    for chunk in rows.chunks(options.generations, _CHUNK):
        for one in chunk:
            trace_id, span_id = (part.hex() for part in one.key)
            answers.append(Answer(f"chatcmpl-{trace_id}", trace_id, span_id))
            if one.generation is not None:
                one.generation["response_id"] = answers[-1].response_id
        store.write(Batch(spans=chunk))
    return answers


def by_span(answers: Sequence[Answer]) -> Batch:
    """Return new scores that name their spans."""
    version = next(_versions)
    return Batch(scores=tuple(score(version, one.trace_id, one.span_id) for one in answers))


def by_response_id(answers: Sequence[Answer]) -> Batch:
    """Return new scores that name their response ids."""
    scored = score(next(_versions), "", "")
    return Batch(of_responses=tuple(ResponseScore(one.response_id, scored) for one in answers))


def by_unknown_id(answers: Sequence[Answer]) -> Batch:
    """Return new scores with response ids of no generation."""
    scored = score(next(_versions), "", "")
    unknown = (f"unknown-{next(_versions)}" for _ in answers)
    return Batch(of_responses=tuple(ResponseScore(id_, scored) for id_ in unknown))


def score(version: str, trace_id: str, span_id: str) -> Score:
    """Return a score."""
    return Score(
        trace_id=trace_id,
        span_id=span_id,
        metric="quality",
        evaluator="benchmark",
        version=version,
        value=1.0,
    )


def milliseconds(
    store: Store, batch: Callable[[], Batch], options: argparse.Namespace
) -> dict[str, float]:
    """Return the median and 95th percentile of the time to write a new batch."""
    taken = []
    for _ in range(options.repetitions):
        made = batch()
        started_s = time.perf_counter()
        store.write(made)
        taken.append((time.perf_counter() - started_s) * 1e3)
    p50, p95 = np.percentile(taken, [50, 95])
    return {"p50": round(float(p50), 2), "p95": round(float(p95), 2)}


if __name__ == "__main__":
    main()

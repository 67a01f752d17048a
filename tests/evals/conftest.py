"""Evidence made on the spot: pairs as the collector's Arrow table, and as stored spans."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from collector.client import Client
from collector.client.otlp_json import traces
from collector.columns import Table
from collector.contract import Arm, Content, Generation, Score
from demo.collector_process import running
from evals.evaluators import Groundedness
from evals.evidence import pairs_table
from evals.evidence.columns import Evidence

SIDE_TYPES: Mapping[str, pa.DataType] = {
    "trace_id": pa.string(),
    "span_id": pa.string(),
    "start_unix_ns": pa.int64(),
    "error_type": pa.string(),
    "ttft_s": pa.float64(),
    "tpot_s": pa.float64(),
    "e2e_s": pa.float64(),
    "input_tokens": pa.int64(),
    "output_tokens": pa.int64(),
    "fallback": pa.bool_(),
    "counts_usable": pa.bool_(),
    "speculated": pa.bool_(),
    "spec_steps": pa.int64(),
    "spec_draft_tokens": pa.int64(),
    "spec_accepted_tokens": pa.int64(),
    "spec_draft_tokens_per_pos": pa.list_(pa.int64()),
    "spec_accepted_tokens_per_pos": pa.list_(pa.int64()),
    "quality": pa.list_(pa.string()),
    "duplicates": pa.int64(),
    "client_lag_s": pa.float64(),
    "request_model": pa.string(),
    "response_model": pa.string(),
    "temperature": pa.float64(),
    "top_p": pa.float64(),
    "top_k": pa.int64(),
    "cached_input_tokens": pa.int64(),
    "max_tokens": pa.int64(),
    "seed": pa.int64(),
    "fingerprint": pa.string(),
    "spec_lossless": pa.bool_(),
    "carries": pa.string(),
    "workload": pa.string(),
    "cohort": pa.string(),
    "concurrency": pa.int64(),
    "launch": pa.string(),
    "look": pa.int64(),
    "looks": pa.string(),
    "change": pa.string(),
    "conversation_id": pa.string(),
    "turn": pa.int64(),
    "own_history": pa.bool_(),
    "price": pa.string(),
}

Side = Mapping[str, Any]
ScorePair = Callable[[str, str, tuple[str, ...]], tuple[Score, Score]]
Row = Mapping[str, Any]


def answered(**fields: Any) -> Side:
    """Return the columns of a side that answered in 1 s, with the given ones replaced."""
    plain = {
        "trace_id": "0" * 32,
        "span_id": "0" * 16,
        "start_unix_ns": 0,
        "ttft_s": 0.1,
        "e2e_s": 1.0,
        "input_tokens": 10,
        "output_tokens": 20,
        "counts_usable": False,
        "quality": [],
        "duplicates": 0,
    }
    return plain | fields


def _completed(row: Row, arm: Arm) -> Side:
    side: Side = row[arm]
    drafts = (
        {"speculated": True, "spec_draft_tokens": 4, "spec_accepted_tokens": 2}
        if arm is Arm.CANDIDATE
        else {}
    )
    key = f"{row['prompt_id']} {row.get('repeat', 0)}".encode()
    return {
        "speculated": False,
        **drafts,
        **side,
        "start_unix_ns": side.get("start_unix_ns")
        or int.from_bytes(hashlib.sha256(key).digest()[:4], "big"),
    }


def make_table(rows: Sequence[Row]) -> Table:
    """Return the collector's table of pairs; a row has keys, `baseline` and `candidate`.

    Sides without a start of their own start at times that do not follow the rows' order, and a
    candidate's without a count of drafts drafted 4 tokens, of which 2 were accepted.
    """
    rows = [{**row, **{a: _completed(row, a) for a in Arm if row.get(a)}} for row in rows]
    columns = {
        "prompt_id": pa.array([row["prompt_id"] for row in rows], pa.string()),
        "repeat": pa.array([row.get("repeat", 0) for row in rows], pa.int64()),
        "cohort": pa.array([row.get("cohort") for row in rows], pa.string()),
    }
    sides = [row.get(arm) or {} for row in rows for arm in Arm]
    metrics = sorted({name for side in sides for name in side if name.startswith("score_")})
    for arm in Arm:
        arm_sides = [row.get(arm) or {"duplicates": 0} for row in rows]
        of_metrics = [(m, pa.float64()) for m in metrics]
        of_metrics += [
            (f"{name}_{m.removeprefix('score_')}", pa.string())
            for m in metrics
            for name in ("unscored", "judge", "label")
        ]
        of_metrics += [
            (f"{name}_{m.removeprefix('score_')}", pa.int64())
            for m in metrics
            for name in ("fault_at", "fault_of")
        ]
        for name, kind in [*SIDE_TYPES.items(), *of_metrics]:
            columns[f"{arm}_{name}"] = pa.array([side.get(name) for side in arm_sides], kind)
    return Table.read(pa.table(columns))


def make_evidence(rows: Sequence[Row]) -> Evidence:
    """Return the evidence of `make_table`."""
    return pairs_table.from_table(make_table(rows))


@pytest.fixture(scope="session")
def side() -> Callable[..., Side]:
    """Give `answered`."""
    return answered


@pytest.fixture(scope="session")
def table_of() -> Callable[[Sequence[Row]], Table]:
    """Give `make_table`."""
    return make_table


@pytest.fixture(scope="session")
def evidence_of() -> Callable[[Sequence[Row]], Evidence]:
    """Give `make_evidence`."""
    return make_evidence


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """Open a collector over a real SQLite file."""
    with Client.local(f"sqlite:///{tmp_path / 'draftgate.db'}", capture_content=True) as opened:
        yield opened


def messages(text: str) -> str:
    """Return an answer's text as `gen_ai.output.messages`."""
    parts = [{"type": "text", "content": text}]
    return json.dumps([{"role": "assistant", "parts": parts, "finish_reason": "stop"}])


def make_generation(number: int = 1, answer: str | None = "", **fields: Any) -> Generation:
    """Return a generation of one second; content fields go into its content."""
    content_fields = ("context", "reference", "output_schema")
    content = {name: fields.pop(name) for name in content_fields if name in fields}
    output = None if answer is None else messages(answer)
    return replace(
        Generation(
            trace_id=f"{number:032x}",
            span_id=f"{number:016x}",
            start_unix_ns=number * 10**10,
            end_unix_ns=number * 10**10 + 10**9,
            content=Content(output_messages=output, **content),
        ),
        **fields,
    )


@pytest.fixture(scope="session")
def generation_of() -> Callable[..., Generation]:
    """Give `make_generation`."""
    return make_generation


@pytest.fixture(scope="session")
def otlp_of() -> Callable[[Sequence[Generation]], bytes]:
    """Give a function from generations to an OTLP/JSON body."""
    return traces


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Serve a collector that keeps content, in a process of its own."""
    with running(tmp_path / "draftgate.db", tmp_path / "log") as served:
        yield served


@pytest.fixture
def scores_beside(generation_of: Callable[..., Generation]) -> ScorePair:
    """Give a function that scores two answers on some passages beside each other."""

    def pair(one: str, other: str, context: tuple[str, ...]) -> tuple[Score, Score]:
        first, second = (
            generation_of(n, text, context=context) for n, text in enumerate((one, other), 1)
        )
        found = (
            Groundedness().score_beside(first, second),
            Groundedness().score_beside(second, first),
        )
        assert found[0] is not None
        assert found[1] is not None
        return found[0], found[1]

    return pair


@pytest.fixture
def store(url, generation_of, otlp_of) -> Callable[[int, int], None]:
    """Give a function that stores the answers to these prompts, by both arms."""

    def stored(first: int, last: int) -> None:
        made = [
            replace(
                generation_of(2 * n + turn + 1, f"Answer {n}.", reference=f"Answer {n}."),
                rollout="k4",
                arm=arm,
                prompt_id=f"p{n}",
                repeat=0,
                temperature=0.0,
            )
            for n in range(first, last)
            for turn, arm in enumerate(Arm)
        ]
        with Client(url) as client:
            client.post_traces(otlp_of(made), content_type="application/json")

    return stored

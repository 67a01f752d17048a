"""How many answers a second `draftgate evaluate` scores, from a collector and back."""

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import psutil

from collector.client import Client
from collector.contract import Arm, Content, Generation, encode
from evals.evaluation.evaluate import evaluate_rollout
from evals.evaluation.scoring import Choice
from evals.evaluators.groundedness.train.twin_examples import Duel

ROLLOUT = "throughput"
_SPANS_A_POST = 500


@dataclass(frozen=True, slots=True)
class Throughput:
    """One evaluation of a rollout of pairs."""

    answers: int
    workers: int
    seconds: float
    answers_a_second: float
    cpu_s: float
    """Of all processes, the collector's part among them, which works in this one."""
    answers_a_cpu_second: float


def throughput(duels: Sequence[Duel], workers: int) -> Throughput:
    """Store pairs in SQLite, then let `draftgate evaluate` score their groundedness."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'draftgate.db'}"
        with Client.local(url, capture_content=True) as client:
            _fill(client, duels)
            choice = Choice(names=("lexical-support",))
            started, before = time.monotonic(), _cpu_s()
            counts = evaluate_rollout(client, ROLLOUT, choice=choice, workers=workers)
            spent, cpu_s = time.monotonic() - started, _cpu_s() - before
    if counts.scored + counts.unscored != 2 * len(duels):
        raise SystemExit(f"{counts.scored} scores of {2 * len(duels)} answers")
    answers = 2 * len(duels)
    return Throughput(
        answers,
        workers,
        round(spent, 2),
        round(answers / spent, 1),
        round(cpu_s, 2),
        round(answers / cpu_s, 1),
    )


def generation(number: int, answer: str, context: tuple[str, ...]) -> Generation:
    """Return an answer on passages, as the collector would give it."""
    message = [{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]
    return Generation(
        trace_id=f"{number + 1:032x}",
        span_id=f"{number + 1:016x}",
        start_unix_ns=10**18 + number * 10**7,
        end_unix_ns=10**18 + number * 10**7 + 10**6,
        content=Content(output_messages=json.dumps(message), context=context),
    )


def _fill(client: Client, duels: Sequence[Duel]) -> None:
    made = iter(
        replace(
            generation(2 * number + turn, item.answer, (item.context,)),
            rollout=ROLLOUT,
            arm=arm,
            prompt_id=f"p{number}",
            repeat=0,
        )
        for number, duel in enumerate(duels)
        for turn, (arm, item) in enumerate(zip(Arm, (duel.one, duel.other), strict=True))
    )
    while some := [_span(one) for one in islice(made, _SPANS_A_POST)]:
        body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": some}]}]})
        client.post_traces(body.encode(), content_type="application/json")


def _span(of: Generation) -> dict[str, object]:
    span = encode(of)
    attributes = [{"key": key, "value": _value(value)} for key, value in span.attributes.items()]
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "kind": 3,
        "startTimeUnixNano": str(span.start_unix_ns),
        "endTimeUnixNano": str(span.end_unix_ns),
        "attributes": attributes,
    }


def _value(value: object) -> dict[str, object]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": str(value)}


def _cpu_s() -> float:
    """Return the processor time of this process and of its children, ended ones included."""
    own = psutil.Process()
    spent = own.cpu_times()
    total = spent.user + spent.system + spent.children_user + spent.children_system
    for child in own.children():
        of_child = child.cpu_times()
        total += of_child.user + of_child.system
    return float(total)

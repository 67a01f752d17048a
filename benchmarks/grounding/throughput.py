"""Throughput of `draftgate evaluate`, reading from and posting to a collector."""

import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from benchmarks.load.processes import cpu_s, family
from collector.client import Client
from collector.client.otlp_json import traces
from collector.contract import Arm, Content, Generation
from evals.evaluation.evaluate import evaluate_rollout
from evals.evaluation.scoring import Choice
from training.groundedness.twin_examples import Duel

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
    """CPU time of all processes, including the collector, which runs in this one."""
    answers_a_cpu_second: float


def throughput(duels: Sequence[Duel], workers: int) -> Throughput:
    """Store pairs in SQLite, then score their groundedness with `draftgate evaluate`."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'draftgate.db'}"
        with Client.local(url, capture_content=True) as client:
            _fill(client, duels)
            choice = Choice(names=("lexical-support",))
            started, before_s = time.monotonic(), cpu_s(family(os.getpid()))
            counts = evaluate_rollout(client, ROLLOUT, choice=choice, workers=workers)
            spent = time.monotonic() - started
            used_s = cpu_s(family(os.getpid())) - before_s
    if counts.scored + counts.unscored != 2 * len(duels):
        raise SystemExit(f"{counts.scored} scores of {2 * len(duels)} answers")
    answers = 2 * len(duels)
    return Throughput(
        answers,
        workers,
        round(spent, 2),
        round(answers / spent, 1),
        round(used_s, 2),
        round(answers / used_s, 1),
    )


def generation(number: int, answer: str, context: tuple[str, ...]) -> Generation:
    """Return an answer on passages as a generation record."""
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
    while some := list(islice(made, _SPANS_A_POST)):
        client.post_traces(traces(some), content_type="application/json")

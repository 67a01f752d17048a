"""A rollout that passes, to be spoilt: generations and scores of a faster candidate, as good."""

import json
from dataclasses import replace
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
from otlp_bodies import export_request
from typer.testing import CliRunner

from collector.client import Client
from collector.contract import Arm, Content, Generation, Score, Speculation, encode
from draftgate.commands import app

PAIRS = 400
COHORTS = ("chat", "code")
POLICY = """
version: 1
name: evidence
cohorts: {min_n: 30}
prove:
  - {metric: tpot, stat: geomean_ratio, max: 1.00, scope: pooled}
  - {metric: ttft, stat: p95_ratio, max: 1.25, scope: pooled}
  - {metric: ttft, stat: p95_ratio, max: 1.50, scope: cohort}
  - {metric: task_completion, stat: diff, min: -0.02, scope: pooled}
  - {metric: task_completion, stat: diff, min: -0.05, scope: cohort}
  - {metric: failures, stat: diff, max: 0.02, scope: pooled}
guard:
  - {metric: output_tokens, stat: geomean_ratio, max: 1.10, scope: pooled}
"""
REFUSED: dict[str, Any] = {
    "error_type": "connection_refused",
    "ttft_s": None,
    "tpot_s": None,
    "output_tokens": None,
    "speculation": None,
}


Key = tuple[int, Arm]
"""Number of a pair, and arm."""


class Rollout:
    """Generations and scores of a candidate that is faster and as good, to be spoilt."""

    def __init__(self) -> None:
        self.generations = dict(_sound())
        self.scores: dict[Key, Score] = {}
        for n, arm in self.generations:
            self.score(n, arm, value=float(n % 10 != 0))

    def score(self, n: int, arm: Arm, *, version: str = "1", **fields: Any) -> None:
        """Give an answer a score, or a reason for none."""
        one = self.generations[n, arm]
        self.scores[n, arm] = Score(
            trace_id=one.trace_id,
            span_id=one.span_id,
            metric="task_completion",
            evaluator="reference",
            version=version,
            **fields,
        )

    def change(self, arm: Arm, numbers: Any = range(PAIRS), **fields: Any) -> None:
        """Replace fields of an arm's answers."""
        for n in numbers:
            self.generations[n, arm] = replace(self.generations[n, arm], **fields)

    def speculate(self, numbers: Any = range(PAIRS), **fields: Any) -> None:
        """Replace the candidate's record of speculation."""
        for n in numbers:
            one = self.generations[n, Arm.CANDIDATE]
            assert one.speculation is not None
            said = replace(one.speculation, **fields)
            self.generations[n, Arm.CANDIDATE] = replace(one, speculation=said)

    def drop(self, arm: Arm, numbers: Any) -> None:
        """Let answers never arrive."""
        for n in numbers:
            del self.generations[n, arm]
            self.scores.pop((n, arm), None)

    def store(self, database: str, *, capture: bool = False) -> None:
        """Send all to a collector's database."""
        with Client.local(database, capture_content=capture) as client:
            client.post_traces(b"".join(starmap(_body, self.generations.items())))
            client.post_scores(list(self.scores.values()))

    def of(self, cohort: str) -> list[int]:
        """Return the numbers of a cohort's pairs."""
        return [n for n in range(PAIRS) if COHORTS[n % 2] == cohort]


@cache
def _sound() -> dict[Key, Generation]:
    rng, made = np.random.default_rng(5), {}
    for n in range(PAIRS):
        ttft_s, tpot_s = float(rng.uniform(0.08, 0.12)), float(rng.uniform(0.01, 0.012))
        for turn, arm in enumerate(Arm):
            pace = float(rng.uniform(0.7, 0.9)) if arm is Arm.CANDIDATE else 1.0
            waited_s = ttft_s * float(rng.uniform(0.97, 1.03))
            made[n, arm] = _generation(n, turn, arm, waited_s, tpot_s * pace)
    return made


@cache
def _sound_body(key: Key) -> bytes:
    return export_request([encode(_sound()[key])]).SerializeToString()


def _body(key: Key, one: Generation) -> bytes:
    """Return a body of one span; bodies behind one another are a body, too."""
    if one is _sound().get(key):
        return _sound_body(key)
    return export_request([encode(one)]).SerializeToString()


def _generation(n: int, turn: int, arm: Arm, ttft_s: float, tpot_s: float) -> Generation:
    number, start = 2 * n + turn + 1, (2 * n + (n + turn) % 2) * 10**9
    drafted = Speculation(
        method="draft_model", steps=8, draft_tokens=24, accepted_tokens=13, source="request"
    )
    return Generation(
        trace_id=f"{number:032x}",
        span_id=f"{number:016x}",
        start_unix_ns=10**18 + start,
        end_unix_ns=10**18 + start + round((ttft_s + 20 * tpot_s) * 1e9),
        request_model="target",
        response_model="target",
        max_tokens=64,
        temperature=0.0,
        seed=n,
        input_tokens=30 + n % 7,
        output_tokens=21 + (n + turn) % 3,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        rollout="k4",
        arm=arm,
        cohort=COHORTS[n % 2],
        prompt_id=f"p{n:04}",
        repeat=0,
        speculation=drafted if arm is Arm.CANDIDATE else None,
        fingerprint=f"{arm.value}-configuration",
        content=Content(reference="right"),
    )


def unscored(rollout: Rollout, numbers: Any, reason: str | None) -> None:
    """Leave pairs without scores: never evaluated, or with a reason."""
    for n in numbers:
        for arm in Arm:
            if reason is None:
                del rollout.scores[n, arm]
            else:
                rollout.score(n, arm, unscored_reason=reason)


def judged(rollout: Rollout, folder: Path) -> tuple[int, dict[str, Any]]:
    """Store a rollout and return the gate's exit code and verdict."""
    database, file = f"sqlite:///{folder / 'd.db'}", folder / "policy.yaml"
    file.write_text(POLICY)
    rollout.store(database)
    args = ["gate", "k4", "--policy", str(file), "--database", database, "--json", "--no-post"]
    said = CliRunner().invoke(app, args, catch_exceptions=False)
    return said.exit_code, json.loads(said.stdout)

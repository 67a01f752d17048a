"""Live traffic made on the spot, stored by a real collector."""

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from otlp_bodies import export_request

from collector.client import Client
from collector.contract import Arm, Generation, Score, Speculation, encode
from evals import policy as policies
from evals.policy import Policy

RULES = """
version: 1
name: live
design: {design}
live:
  looks: [100, 200, 400]
  spend: [0.01, 0.01, 0.03]
  rollback: {{metric: slo_exceedance, threshold: 0.5, margin: 0.05}}
prove:
  - {{metric: task_completion, stat: diff, min: -0.10, scope: pooled}}
  - {{metric: ttft, stat: p50_ratio, max: 1.50, scope: pooled}}
guard:
  - {{metric: failures, stat: diff, max: 0.10, scope: pooled}}
  - {{metric: task_completion, stat: diff, min: -0.20, scope: cohort}}
"""


class Traffic:
    """Posts sides of pairs and their scores, as an engine and an evaluator would."""

    def __init__(self, client: Client, rollout: str = "k4") -> None:
        self.client, self.rollout = client, rollout
        self._number = 0

    def side(self, arm: Arm, prompt: int, ttft_s: float = 0.1, **fields: Any) -> Generation:
        """Return one side of a pair, not posted yet."""
        self._number += 1
        start = 10**18 + self._number * 10**9
        plain = {
            "ttft_s": None if fields.get("error_type") else ttft_s + self._jitter_s,
            "output_tokens": None if fields.get("error_type") else 20,
            "cohort": ("chat", "rag")[prompt % 2],
            "repeat": 0,
            "speculation": Speculation(draft_tokens=24, accepted_tokens=12)
            if arm is Arm.CANDIDATE
            else None,
        }
        made = Generation(
            trace_id=f"{start + prompt:032x}",
            span_id=f"{self._number:016x}",
            start_unix_ns=start,
            end_unix_ns=start + 10**9 + round(self._jitter_s * 1e9),
            rollout=self.rollout,
            arm=arm,
            prompt_id=f"{prompt:06}",
        )
        return replace(made, **(plain | fields))

    @property
    def _jitter_s(self) -> float:
        """A time that differs between answers, without a pattern."""
        return zlib.crc32(str(self._number).encode()) % 999_983 * 1e-9

    def post(self, sides: Iterable[Generation]) -> None:
        """Store sides."""
        self.client.post_traces(export_request([encode(one) for one in sides]).SerializeToString())

    def scored(self, sides: Iterable[Generation], value: float = 1.0) -> list[Score]:
        """Return a score of each side that did not fail."""
        return [
            Score(
                trace_id=one.trace_id,
                span_id=one.span_id,
                metric="task_completion",
                evaluator="test",
                version="1",
                value=value,
            )
            for one in sides
            if one.error_type is None
        ]

    def pairs(
        self, prompts: Sequence[int], *, candidate: dict[str, Any] | None = None, lost: int = 0
    ) -> None:
        """Store whole pairs with scores; every `lost`-th candidate loses its task."""
        sides: dict[Arm, list[Generation]] = {arm: [] for arm in Arm}
        for p in prompts:
            for arm in tuple(Arm)[:: 1 if p % 4 < 2 else -1]:
                given = (candidate or {}) if arm is Arm.CANDIDATE else {}
                sides[arm].append(self.side(arm, p, **given))
        self.post([one for both in zip(*sides.values(), strict=True) for one in both])
        scores = self.scored(sides[Arm.BASELINE])
        for i, one in enumerate(sides[Arm.CANDIDATE]):
            scores += self.scored([one], 0.0 if lost and i % lost == 0 else 1.0)
        self.client.post_scores(scores)


@pytest.fixture
def client(tmp_path: Path) -> Any:
    """Open a collector over a real SQLite file."""
    with Client.local(f"sqlite:///{tmp_path / 'draftgate.db'}") as opened:
        yield opened


@pytest.fixture
def traffic(client: Client) -> Traffic:
    """Give a sender of traffic."""
    return Traffic(client)


@pytest.fixture
def rules() -> Policy:
    """Give a policy for pairs."""
    return policies.parse(RULES.format(design="mirror"), "live.yaml")


@pytest.fixture
def traffic_to() -> Callable[[Client], Traffic]:
    """Give a maker of senders."""
    return Traffic

"""The score loss of edited answers against unedited ones, for harmless and harmful edits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.grounding.power import decided
from collector.contract import Outcome
from training.groundedness.held_out_edits import HARMFUL

PAIRS = 1000
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EditRow:
    """The score loss by one kind of edit, and how often the gate fails a candidate with it."""

    data: str
    kind: str
    answers: int
    mean_drop: float
    """Mean difference of the unedited answer's score and the edited one's."""
    share_above_half: float
    """Share of answers whose score drops by more than 0.5."""
    edited_share: float
    failed: float
    """Share of failed rollouts of 1,000 pairs."""


def edit_rows(
    data: str, kinds: Sequence[str], scores: Floats, rollouts: int, seed: int
) -> Iterator[EditRow]:
    """Yield a row per kind, and one for all harmful kinds mixed.

    `scores` has one row per pair: the unedited answer's score and the edited one's. A tenth of the
    pairs is edited harmlessly, a twentieth harmfully.
    """
    names = np.array(kinds)
    for kind in dict.fromkeys(kinds):
        share = 0.05 if kind.startswith(HARMFUL) else 0.1
        yield _row(data, kind, scores[names == kind], share, (rollouts, seed))
    harmful = np.array([kind.startswith(HARMFUL) for kind in kinds])
    if harmful.any():
        yield _row(data, "harmful: all kinds", scores[harmful], 0.05, (rollouts, seed))


def _row(data: str, kind: str, scores: Floats, share: float, draws: tuple[int, int]) -> EditRow:
    drop = scores[:, 0] - scores[:, 1]
    rng, failed = np.random.default_rng(draws[1]), 0
    for _ in range(draws[0]):
        baseline = scores[rng.choice(len(scores), PAIRS), 0]
        candidate = baseline.copy()
        places = rng.choice(PAIRS, round(share * PAIRS), replace=False)
        drawn = scores[rng.choice(len(scores), len(places))]
        baseline[places], candidate[places] = drawn.T
        failed += decided(baseline, candidate) is Outcome.FAIL
    return EditRow(
        data,
        kind,
        len(drop),
        round(float(drop.mean()), 3),
        round(float((drop > 0.5).mean()), 3),
        share,
        failed / draws[0] if draws[0] else float("nan"),
    )

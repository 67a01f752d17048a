"""The score loss of edited answers against unedited ones, for harmless and harmful edits."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.grounding.judged import JudgedFile
from benchmarks.grounding.power import decided
from collector.contract import Outcome
from training.groundedness.held_out_edits import HARMFUL

PAIRS = 1000
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EditRow:
    """The score loss by one kind of edit, and how often the gate fails a candidate with it."""

    data: str
    evaluator: str
    kind: str
    answers: int
    mean_drop: float
    """Mean difference of the unedited answer's score and the edited one's."""
    share_above_half: float
    """Share of answers whose score drops by more than 0.5."""
    edited_share: float
    failed: float
    """Share of failed rollouts of 1,000 pairs."""


def edit_rows(found: JudgedFile, rollouts: int, seed: int) -> Iterator[EditRow]:
    """Yield a row per kind of edit, and one for all harmful kinds mixed; none without edits.

    A tenth of the pairs is edited harmlessly, a twentieth harmfully.
    """
    if found.edits_beside is None:
        return
    names, scores = np.array(found.edit_kinds), found.edits_beside
    harmful = np.array([kind.startswith(HARMFUL) for kind in found.edit_kinds])
    chosen = {kind: names == kind for kind in dict.fromkeys(found.edit_kinds)}
    if harmful.any():
        chosen["harmful: all kinds"] = harmful
    for kind, of in chosen.items():
        drop, share = scores[of, 0] - scores[of, 1], 0.05 if kind.startswith(HARMFUL) else 0.1
        yield EditRow(
            found.name,
            found.evaluator,
            kind,
            len(drop),
            round(float(drop.mean()), 3),
            round(float((drop > 0.5).mean()), 3),
            share,
            _failed(scores[of], share, rollouts, seed),
        )


def _failed(scores: Floats, share: float, rollouts: int, seed: int) -> float:
    """Return the share of failed rollouts; `scores`: an unedited and an edited answer's a row."""
    rng, failed = np.random.default_rng(seed), 0
    for _ in range(rollouts):
        baseline = scores[rng.choice(len(scores), PAIRS), 0]
        candidate = baseline.copy()
        places = rng.choice(PAIRS, round(share * PAIRS), replace=False)
        drawn = scores[rng.choice(len(scores), len(places))]
        baseline[places], candidate[places] = drawn.T
        failed += decided(baseline, candidate) is Outcome.FAIL
    return failed / rollouts

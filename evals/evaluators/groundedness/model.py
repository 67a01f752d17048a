"""The trained model: how likely each sentence says what the passages do not."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from evals.evaluators.groundedness.contrast import CONTRASTS
from evals.evaluators.groundedness.features import NAMES, Rarity
from evals.evaluators.groundedness.forest import Forest

FILE = Path(__file__).parent / "model.npz"
SHARPNESS = 4.0
"""How much steeper a score is than the log-odds behind it.

The gate holds a mean against a margin in absolute points. A calibrated probability moves a mean by
about a fifth of what truly changed, a sharp one by two fifths: see `docs/evaluators.md`.
"""
_LEAST = 1e-6
_ABSENT_NUMBER = 0.49
_CONTRADICTION = 0.29
"""Least raw log-odds of a sentence in which a check found an error: above every threshold.

RAGTruth's answers that are unsupported hold a number that no passage holds 3.7 times as often as
the supported ones, which at a base rate of 18 % makes 0.45.
"""
_STRANGE_WORDS = 8
"""From so many content words on, a sentence that shares none with the passages is an error."""
_LEAST_STRENGTH = {
    "splice_added_negation": 8.0,
    "splice_dropped_negation": 8.0,
    "splice_antonym": 8.0,
    "splice_name": 10.0,
    "splice_number": 10.0,
}
"""How much must be copied around a word before its exchange is an error by itself."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """From the trees' odds to a probability at the base rate of use, and where to decide."""

    slope: float
    intercept: float
    threshold: float
    """Probability from which on an answer counts as unsupported."""
    contradiction_shift: float
    """Log-odds by which contradictions are rarer in use than in training."""
    contrast_threshold: float
    """Probability by the third forest from which on a sentence counts as unsupported."""


@dataclass(frozen=True, slots=True)
class Model:
    """Three forests: what the passages lack, what they say otherwise, and which of two is worse."""

    invention: Forest
    contradiction: Forest
    contrast: Forest
    rarity: Rarity
    calibration: Calibration

    def raw(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the forests' log-odds of each sentence being unsupported, uncalibrated."""
        invented = expit(self.invention.log_odds(rows))
        shift = self.calibration.contradiction_shift
        contradicted = expit(self.contradiction.log_odds(rows) - shift)
        either = 1 - (1 - invented) * (1 - contradicted)
        return np.asarray(logit(np.clip(either, _LEAST, 1 - _LEAST)), dtype=np.float64)

    def checked(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `raw`, or more where a check found an error.

        What a check found counts whatever the forests say: they learned from long answers, in
        which few numbers are wrong.
        """
        return np.maximum(self.raw(rows), _checked(rows))

    def excess(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far above the threshold the checks put each sentence, in log-odds."""
        limit = logit(self.calibration.threshold)
        odds = self.calibration.slope * _checked(rows) + self.calibration.intercept
        return np.asarray(np.where(np.isfinite(odds), np.maximum(odds - limit, 0.0), -np.inf))

    def probability(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the calibrated probabilities of raw log-odds."""
        return np.asarray(expit(self.calibration.slope * raw + self.calibration.intercept))

    def contrasted(self, rows: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
        """Return probabilities of sentences beside their counterparts, of rows as of `contrast`.

        They are decided at `threshold`, as those of sentences by themselves are.
        """
        shift = logit(threshold) - logit(self.calibration.contrast_threshold)
        return np.asarray(expit(self.contrast.log_odds(rows) + shift))

    def value(self, probability: float) -> float:
        """Return the score of an unsupported sentence's probability: 0.5 at the threshold."""
        inside = min(max(probability, _LEAST), 1 - _LEAST)
        return float(expit(SHARPNESS * (logit(self.calibration.threshold) - logit(inside))))


def _checked(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least log-odds that the explicit checks leave each sentence."""
    spliced = np.zeros(len(rows), dtype=np.bool_)
    for name, least in _LEAST_STRENGTH.items():
        spliced |= rows[:, NAMES.index(name)] > least
    strange = rows[:, NAMES.index("content_words")] >= _STRANGE_WORDS
    strange &= rows[:, NAMES.index("pairs_share")] == 0
    strange &= rows[:, NAMES.index("absent_words_share")] == 1
    for name in ("about_passages", "refusal"):
        strange &= rows[:, NAMES.index(name)] == 0
    least_odds = np.where(spliced | strange, _CONTRADICTION, -np.inf)
    return np.where(rows[:, NAMES.index("numbers_absent")] > 0, _ABSENT_NUMBER, least_odds)


@cache
def shipped() -> Model:
    """Return the model that is shipped, read once."""
    with np.load(FILE, allow_pickle=False) as arrays:
        return from_arrays(dict(arrays))


def from_arrays(arrays: Mapping[str, NDArray[np.generic]]) -> Model:
    """Return the model of a file's arrays; raises `ValueError` for another version's."""
    names = (arrays["names"].tolist(), arrays["contrasts"].tolist())
    if names != (list(NAMES), list(CONTRASTS)):
        raise ValueError(f"{FILE.name} was trained on other features; train it again")
    words = bytes(arrays["words"].tolist()).decode().split("\n")
    weights = arrays["weights"].astype(np.float64).tolist()
    return Model(
        invention=_forest(arrays, "invention"),
        contradiction=_forest(arrays, "contradiction"),
        contrast=_forest(arrays, "contrast"),
        rarity=Rarity(dict(zip(words, weights, strict=True)), float(arrays["unknown"])),
        calibration=Calibration(*arrays["calibration"].tolist()),
    )


def to_arrays(model: Model) -> dict[str, NDArray[np.generic]]:
    """Return the model as a file's arrays."""
    words = "\n".join(model.rarity.known).encode()
    c = model.calibration
    arrays: dict[str, NDArray[np.generic]] = {
        "names": np.array(NAMES),
        "contrasts": np.array(CONTRASTS),
        "words": np.frombuffer(words, dtype=np.uint8),
        "weights": np.array(list(model.rarity.known.values()), dtype=np.float32),
        "unknown": np.array(model.rarity.unknown),
        "calibration": np.array(astuple(c)),
    }
    for name in ("invention", "contradiction", "contrast"):
        forest: Forest = getattr(model, name)
        for part in ("feature", "left", "right", "roots"):
            arrays[f"{name}_{part}"] = getattr(forest, part).astype(np.int32)
        arrays[f"{name}_limit"] = forest.limit
        arrays[f"{name}_value"] = forest.value.astype(np.float32)
        arrays[f"{name}_base"] = np.array(forest.base)
    return arrays


def _forest(arrays: Mapping[str, NDArray[np.generic]], name: str) -> Forest:
    return Forest(
        feature=arrays[f"{name}_feature"].astype(np.int32),
        limit=arrays[f"{name}_limit"].astype(np.float64),
        left=arrays[f"{name}_left"].astype(np.int32),
        right=arrays[f"{name}_right"].astype(np.int32),
        value=arrays[f"{name}_value"].astype(np.float64),
        roots=arrays[f"{name}_roots"].astype(np.int32),
        base=float(arrays[f"{name}_base"]),
    )

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
about an eighth of what truly changed, a sharp one by three tenths: see `docs/evaluators.md`.
"""
_LEAST = 1e-6
_STEPS = 30
_FORESTS = ("invention", "corruption", "contradiction", "contrast")
"""As the model's fields and the file's arrays are called."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Calibration:
    """From log-odds to a probability at the base rate of use, and where to decide."""

    slope: float
    intercept: float
    threshold: float
    """Probability from which on an answer counts as unsupported."""
    length: float = 0.0
    """How much an answer's log-odds fall with the logarithm of its number of sentences."""

    def probability(self, odds: Floats) -> Floats:
        """Return the probabilities of answers, of log-odds as `of_answers` gives them."""
        return np.asarray(expit(self.slope * odds + self.intercept))

    def of_answers(self, odds: Floats, answer: NDArray[np.int64], answers: int) -> Floats:
        """Return answers' log-odds from their sentences', corrected for how many those are."""
        count = np.maximum(np.bincount(answer, minlength=answers), 1)
        return together(odds, answer, answers) - self.length * np.log(count)

    def checked(self, raw: Floats, excess: Floats) -> Floats:
        """Return sentences' raw log-odds, or more where a check found an error.

        `excess` is how far above the threshold that puts each sentence by itself.
        """
        found = np.isfinite(excess)
        least = (logit(self.threshold) + excess[found] - self.intercept) / self.slope
        checked = raw.copy()
        checked[found] = np.maximum(raw[found], _of_one(least))
        return checked

    def alone(self, odds: Floats) -> Floats:
        """Return the probability of each sentence, as of an answer that says nothing else."""
        return self.probability(together(odds, np.arange(len(odds)), len(odds)))

    def value(self, probability: float) -> float:
        """Return the score of an unsupported answer's probability: 0.5 at the threshold.

        It is 1 − the probability, made steep.
        """
        inside = min(max(probability, _LEAST), 1 - _LEAST)
        return float(expit(SHARPNESS * (logit(self.threshold) - logit(inside))))


@dataclass(frozen=True, slots=True)
class Shifts:
    """What the forests' log-odds are held against."""

    corruption: float
    contradiction: float
    """Log-odds by which each is rarer in use than in training, as its forest counts them."""
    contrast_threshold: float
    """Probability by the forest of contrasts from which on a sentence counts as unsupported."""


@dataclass(frozen=True, slots=True)
class Model:
    """Four forests: three of what can be wrong with a sentence, and which of two is worse."""

    invention: Forest
    """Finds what people marked as unsupported, mostly what the passages lack."""
    corruption: Forest
    """Finds what was changed by rules."""
    contradiction: Forest
    """Finds what people marked as said otherwise."""
    contrast: Forest
    rarity: Rarity
    shifts: Shifts
    calibration: Calibration

    def parts(self, rows: Floats) -> Floats:
        """Return the log-odds of each sentence being invented, and being changed: two columns."""
        changed = any_of(
            self.corruption.log_odds(rows) - self.shifts.corruption,
            self.contradiction.log_odds(rows) - self.shifts.contradiction,
        )
        return np.stack([self.invention.log_odds(rows), changed], axis=1)

    def raw(self, rows: Floats) -> Floats:
        """Return the log-odds of each sentence being unsupported, uncalibrated."""
        return any_of(*self.parts(rows).T)

    def contrasted(self, rows: Floats, threshold: float) -> Floats:
        """Return probabilities of sentences beside their counterparts, of rows as of `contrast`.

        They are decided at `threshold`, as those of sentences by themselves are.
        """
        shift = logit(threshold) - logit(self.shifts.contrast_threshold)
        return np.asarray(expit(self.contrast.log_odds(rows) + shift))


def any_of(*odds: Floats) -> Floats:
    """Return the log-odds that any of several things is so that know nothing of each other."""
    some = 1 - np.prod([expit(-one) for one in odds], axis=0)
    return np.asarray(logit(np.clip(some, _LEAST, 1 - _LEAST)), dtype=np.float64)


def together(odds: Floats, answer: NDArray[np.int64], answers: int) -> Floats:
    """Return answers' log-odds from their sentences'; `answer` is the number of each one's answer.

    The worst sentence's, and the logarithm of what all of them come to, −Σ log(1 − p): so several
    doubtful sentences count for more than one. An answer without a sentence is below all others.
    """
    worst, doubt = np.full(answers, -np.inf), np.zeros(answers)
    np.maximum.at(worst, answer, odds)
    np.add.at(doubt, answer, np.logaddexp(0.0, odds))
    told = doubt > 0
    found = worst + np.log(doubt, where=told, out=np.zeros(answers))
    return np.where(told, found, found[told].min(initial=0.0))


def _of_one(found: Floats) -> Floats:
    """Return the sentences' log-odds that `together` makes each of these of, by Newton's steps."""
    odds = found / 2
    for _ in range(_STEPS):
        doubt = np.logaddexp(0.0, odds)
        odds = odds - (odds + np.log(doubt) - found) / (1 + expit(odds) / doubt)
    return odds


@cache
def shipped() -> Model:
    """Return the model that is shipped, read once."""
    with np.load(FILE, allow_pickle=False) as arrays:
        return from_arrays(dict(arrays))


def from_arrays(arrays: Mapping[str, NDArray[np.generic]]) -> Model:
    """Return the model of a file's arrays; raises `ValueError` for another version's."""
    names = (arrays["names"].tolist(), arrays["contrasts"].tolist())
    is_whole = "shifts" in arrays and all(f"{forest}_roots" in arrays for forest in _FORESTS)
    if names != (list(NAMES), list(CONTRASTS)) or not is_whole:
        raise ValueError(f"{FILE.name} was trained by another version; train it again")
    words = bytes(arrays["words"].tolist()).decode().split("\n")
    weights = arrays["weights"].astype(np.float64).tolist()
    return Model(
        **{name: _forest(arrays, name) for name in _FORESTS},
        rarity=Rarity(dict(zip(words, weights, strict=True)), float(arrays["unknown"])),
        shifts=Shifts(*arrays["shifts"].tolist()),
        calibration=Calibration(*arrays["calibration"].tolist()),
    )


def to_arrays(model: Model) -> dict[str, NDArray[np.generic]]:
    """Return the model as a file's arrays."""
    words = "\n".join(model.rarity.known).encode()
    arrays: dict[str, NDArray[np.generic]] = {
        "names": np.array(NAMES),
        "contrasts": np.array(CONTRASTS),
        "words": np.frombuffer(words, dtype=np.uint8),
        "weights": np.array(list(model.rarity.known.values()), dtype=np.float32),
        "unknown": np.array(model.rarity.unknown),
        "shifts": np.array(astuple(model.shifts)),
        "calibration": np.array(astuple(model.calibration)),
    }
    for name in _FORESTS:
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

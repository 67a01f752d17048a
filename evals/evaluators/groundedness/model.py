"""The trained model: the probability that each sentence is unsupported by the passages."""

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from evals.evaluators.groundedness.contrast import CONTRASTS
from evals.evaluators.groundedness.features import NAMES, Rarity
from evals.evaluators.groundedness.forest import Forest
from evals.evaluators.groundedness.word_odds import VOCABULARY, WordOdds, from_steps, to_steps

FILE = Path(__file__).parent / "model.npz"
SHARPNESS = 4.0
"""Factor by which a score is steeper than the log-odds behind it.

The gate compares a mean with a margin in absolute points. The mean of calibrated probabilities
moves by about an eighth of the true change, the mean of sharpened ones by three tenths: see
`docs/evaluators.md`.
"""
_LEAST = 1e-6
_STEPS = 30
_FORESTS = ("invention", "corruption", "contradiction", "contrast")
"""Names of the model's fields and prefixes of the file's arrays."""
_NAMES = {"names": NAMES, "contrasts": CONTRASTS, "vocabulary": VOCABULARY}
"""What the columns of the file's arrays stand for."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Maps log-odds to probabilities at the base rate of real use, with a decision threshold."""

    slope: float
    intercept: float
    threshold: float
    """Probability at or above which an answer counts as unsupported."""
    length: float = 0.0
    """An answer's log-odds are reduced by this times the log of its number of sentences."""

    def probability(self, odds: Floats) -> Floats:
        """Return the probabilities of answers from the log-odds that `of_answers` returns."""
        return np.asarray(expit(self.slope * odds + self.intercept))

    def of_answers(self, odds: Floats, answer: NDArray[np.int64], answers: int) -> Floats:
        """Return answers' log-odds from their sentences', corrected for the sentences' number."""
        count = np.maximum(np.bincount(answer, minlength=answers), 1)
        return together(odds, answer, answers) - self.length * np.log(count)

    def of_checked(
        self, checked: Floats, excess: Floats, answer: NDArray[np.int64], answers: int
    ) -> Floats:
        """Return answers' log-odds from what `checked` returns; `excess` is as for it.

        The level that a check demands holds for the whole answer, whatever its length.
        """
        odds, found = self.of_answers(checked, answer, answers), np.isfinite(excess)
        np.maximum.at(odds, answer[found], self._demanded(excess[found]))
        return odds

    def checked(self, raw: Floats, excess: Floats) -> Floats:
        """Raise sentences' raw log-odds to at least the level that a check demands.

        `excess` is that level in log-odds above the threshold, for the sentence as a whole answer;
        −∞ if no check found an error.
        """
        found = np.isfinite(excess)
        if not found.any():
            return raw
        checked = raw.copy()
        checked[found] = np.maximum(raw[found], _inverse_of_one(self._demanded(excess[found])))
        return checked

    def alone(self, odds: Floats) -> Floats:
        """Return each sentence's probability, as if it were the whole answer."""
        return self.probability(together(odds, np.arange(len(odds)), len(odds)))

    def value(self, probability: float) -> float:
        """Return the score for the probability that an answer is unsupported.

        It is 1 − probability, steeper by `SHARPNESS` and with 0.5 at the threshold.
        """
        inside = min(max(probability, _LEAST), 1 - _LEAST)
        return float(expit(SHARPNESS * (logit(self.threshold) - logit(inside))))

    def _demanded(self, excess: Floats) -> Floats:
        """Return an answer's log-odds at this excess over the threshold."""
        return np.asarray((logit(self.threshold) + excess - self.intercept) / self.slope)


@dataclass(frozen=True, slots=True)
class Shifts:
    """Corrections of the forests' log-odds."""

    corruption: float
    contradiction: float
    """Log-odds by which each is rarer in real use than in training; subtracted."""
    contrast_threshold: float
    """Contrast forest's probability at or above which a sentence counts as unsupported."""


@dataclass(frozen=True, slots=True)
class Model:
    """Four forests: three for the kinds of errors, one for a sentence beside its counterpart."""

    invention: Forest
    """Trained on what annotators marked as unsupported: mostly text that the passages lack."""
    corruption: Forest
    """Trained on answers that rules made wrong."""
    contradiction: Forest
    """Trained on what annotators marked as contradicting the passages."""
    contrast: Forest
    """Trained on sentences beside their counterparts."""
    rarity: Rarity
    choices: WordOdds
    shifts: Shifts
    calibration: Calibration

    def parts(self, rows: Floats) -> Floats:
        """Return two columns of log-odds: each sentence is an invention, or is changed."""
        changed = any_of(
            self.corruption.log_odds(rows) - self.shifts.corruption,
            self.contradiction.log_odds(rows) - self.shifts.contradiction,
        )
        return np.stack([self.invention.log_odds(rows), changed], axis=1)

    def raw(self, rows: Floats) -> Floats:
        """Return the uncalibrated log-odds of each sentence being unsupported."""
        return any_of(*self.parts(rows).T)

    def contrasted(self, rows: Floats, threshold: float) -> Floats:
        """Return the probabilities of sentences beside counterparts, from rows of `contrast`.

        They are shifted so that they are decided at `threshold`, like other probabilities.
        """
        shift = logit(threshold) - logit(self.shifts.contrast_threshold)
        return np.asarray(expit(self.contrast.log_odds(rows) + shift))


def any_of(*odds: Floats) -> Floats:
    """Return the log-odds that at least one of several independent events holds."""
    some = 1 - np.prod([expit(-one) for one in odds], axis=0)
    return np.asarray(logit(np.clip(some, _LEAST, 1 - _LEAST)), dtype=np.float64)


def together(odds: Floats, answer: NDArray[np.int64], answers: int) -> Floats:
    """Return answers' log-odds from their sentences'; `answer` has each sentence's answer number.

    It is the worst sentence's log-odds plus log(−Σ log(1 − p)) over all sentences, so several
    doubtful sentences count more than one. An answer without sentences gets the lowest value of
    all answers, at most 0.
    """
    worst, doubt = np.full(answers, -np.inf), np.zeros(answers)
    np.maximum.at(worst, answer, odds)
    np.add.at(doubt, answer, np.logaddexp(0.0, odds))
    has_doubt = doubt > 0
    found = worst + np.log(doubt, where=has_doubt, out=np.zeros(answers))
    return np.where(has_doubt, found, found[has_doubt].min(initial=0.0))


def _inverse_of_one(found: Floats) -> Floats:
    """Invert `together` for answers of one sentence, by Newton's method."""
    odds = found / 2
    for _ in range(_STEPS):
        doubt = np.logaddexp(0.0, odds)
        odds = odds - (odds + np.log(doubt) - found) / (1 + expit(odds) / doubt)
    return odds


@cache
def shipped() -> Model:
    """Return the shipped model; its file is read once."""
    with np.load(FILE, allow_pickle=False) as arrays:
        return from_arrays(dict(arrays))


def from_arrays(arrays: Mapping[str, NDArray[np.generic]]) -> Model:
    """Make a model from a file's arrays; raises `ValueError` for a file of another version."""
    names = [arrays[name].tolist() for name in _NAMES if name in arrays]
    is_whole = all(f"{forest}_roots" in arrays for forest in _FORESTS)
    if names != list(map(list, _NAMES.values())) or not is_whole:
        raise ValueError(f"{FILE.name} was trained by another version; train it again")
    return Model(
        **{name: _forest(arrays, name) for name in _FORESTS},
        rarity=Rarity(_weighed(arrays, "words"), float(arrays["unknown"])),
        choices=_word_odds(arrays),
        shifts=Shifts(*arrays["shifts"].tolist()),
        calibration=Calibration(*arrays["calibration"].tolist()),
    )


def to_arrays(model: Model) -> dict[str, NDArray[np.generic]]:
    """Return the model as arrays for a file."""
    arrays: dict[str, NDArray[np.generic]] = {
        **{name: np.array(values) for name, values in _NAMES.items()},
        **_of_weights("words", model.rarity.known),
        "terms": _of_texts(model.choices.terms),
        "terms_vectors": to_steps(model.choices.vectors),
        "terms_readout": model.choices.readout,
        "terms_bias": model.choices.bias,
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


def _of_weights(name: str, weights: Mapping[str, float]) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of a weight for each of some texts without line breaks."""
    return {
        name: _of_texts(weights),
        f"{name}_weights": np.array(list(weights.values()), dtype=np.float32),
    }


def _of_texts(texts: Iterable[str]) -> NDArray[np.generic]:
    return np.frombuffer("\n".join(texts).encode(), dtype=np.uint8)


def _texts(array: NDArray[np.generic]) -> list[str]:
    """Read what `_of_texts` made."""
    return array.tobytes().decode().split("\n")


def _weighed(arrays: Mapping[str, NDArray[np.generic]], name: str) -> dict[str, float]:
    """Read what `_of_weights` made."""
    weights = arrays[f"{name}_weights"].astype(np.float64).tolist()
    return dict(zip(_texts(arrays[name]), weights, strict=True))


def _word_odds(arrays: Mapping[str, NDArray[np.generic]]) -> WordOdds:
    return WordOdds(
        {term: number for number, term in enumerate(_texts(arrays["terms"]))},
        from_steps(arrays["terms_vectors"].astype(np.int8)),
        arrays["terms_readout"].astype(np.float32),
        arrays["terms_bias"].astype(np.float32),
    )


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

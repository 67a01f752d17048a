"""Fit the forests and their calibration, and judge answers by cross-fitting."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from evals.evaluators.groundedness.features import Rarity
from evals.evaluators.groundedness.forest import Forest
from evals.evaluators.groundedness.model import Calibration, Floats, Model, Shifts
from evals.evaluators.groundedness.tokens import tokens_of
from evals.evaluators.groundedness.word_odds import WordOdds
from training.groundedness import edited_summaries
from training.groundedness.data import Labelled
from training.groundedness.examples import Sentences
from training.groundedness.twin_examples import Contrasts, Duel
from training.groundedness.word_odds import Learner, Places

BASE_RATE = 0.18
"""Assumed share of unsupported answers in real use: that of RAGTruth's test split."""
SHIFTS = Shifts(corruption=3.0, contradiction=-0.5, contrast_threshold=0.55)
"""Marked contradictions are rare in the training data: 1 in 50 sentences that are no inventions."""
LENGTHS = tuple(n / 10 for n in range(11))
"""Candidate values of `Calibration.length`."""
FOLDS = 5
SEED = 20261121
UNCALIBRATED = Calibration(slope=1.0, intercept=0.0, threshold=0.5)
_WEIGHT_OF_CORRUPTED = 0.3
_WEIGHTS_OF_PAIRS = {
    "affirmed": 9.0, "negation": 1.8, "denied": 1.8, "negation left out": 8.0, "cut": 0.3,
    "condition left out": 3.0, "modality": 5.0, "wrong passage": 1.5, "unit": 1.5, "real": 2.5,
    "name": 3.0, "noun": 0.5, "negation put in": 0.2, "qualifier put in": 0.8, "verb denied": 1.0,
    "tense of a verb": 2.5, "denying word left out": 2.7, "advice turned into a ban": 0.4,
    "denying word put in": 2.0, "antonym": 2.0,
    edited_summaries.HARMLESS: 6.0, edited_summaries.HARMFUL: 6.0,
}  # fmt: skip
"""Words left out and words put in are each other's mirror images, and answers have few negations
to leave out: without weights, whatever one answer has more would look wrong. Edited summaries are
few, and the only edits here that people judged."""
_DRAWS = 3
"""Number of invention forests, with different random columns; their mean counts."""
_BOOSTING: dict[str, Any] = {  # Any: arguments of several kinds
    "learning_rate": 0.05,
    "max_leaf_nodes": 12,
    "min_samples_leaf": 40,
    "l2_regularization": 5.0,
    "max_features": 0.4,
    "early_stopping": False,
    "random_state": 0,
}

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Choices:
    """How usual words are, by answers, whatever their labels, passages and other English text."""

    of_all: WordOdds
    without: Mapping[str, WordOdds]
    """For each group, fitted without the answers and passages of its fold."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Answers and corrupted answers, with their sentences."""

    answers: Sequence[Labelled]
    sentences: Sentences
    corrupted: Sequence[Labelled]
    corrupted_sentences: Sentences
    summaries: Sequence[Duel]
    """Summaries with edited copies."""
    contrasts: Contrasts
    """Of pairs of answers, measured with the choices that were fitted without the answer's fold,
    and of the summaries."""
    choices: Choices

    def of_groups(self, groups: frozenset[str]) -> tuple[Bools, Bools]:
        """Return the masks of the answers and of the corrupted answers in these groups."""
        return (
            np.array([item.group in groups for item in self.answers]),
            np.array([item.group in groups for item in self.corrupted]),
        )


@dataclass(frozen=True, slots=True)
class OutOfFold:
    """Each sentence's `Model.parts`, by forests that were fitted without the answer's group."""

    sentences: Floats
    corrupted: Floats
    """The same for sentences of the corrupted answers."""
    models: Mapping[str, Model]
    """For each group, the uncalibrated model that was fitted without it."""


def rarity(documents: Iterable[str]) -> Rarity:
    """Return the inverse document frequencies of the stems that are in at least two documents."""
    seen, count = Counter[str](), 0
    for text in documents:
        seen.update({t.form.stem for t in tokens_of(text) if t.form.is_content})
        count += 1
    known = {s: math.log((count + 1) / (n + 0.5)) for s, n in sorted(seen.items()) if n > 1}
    return Rarity(known, math.log(count + 1))


def choices(answers: Sequence[Labelled], documents: Iterable[str]) -> Choices:
    """Learn from the documents, the answers and their passages; a group counts as one document."""
    learner, folds = Learner(), fold_of_groups(answers)
    known = [[learner.places(text)] for text in dict.fromkeys(documents)]
    of_groups: dict[str, list[Places]] = {}
    for item in answers:
        if item.group not in of_groups:
            of_groups[item.group] = [learner.places(item.context)]
        of_groups[item.group].append(learner.places(item.answer))

    def fitted_without(fold: int | None) -> WordOdds:
        others = (group for group in of_groups if folds[group] != fold)
        ordered = sorted(others, key=folds.__getitem__)
        return learner.fitted([*known, *(of_groups[group] for group in ordered)])

    without = [fitted_without(fold) for fold in range(FOLDS)]
    return Choices(fitted_without(None), {group: without[at] for group, at in folds.items()})


def fit(
    corpus: Corpus, words: Rarity, odds: WordOdds, without: frozenset[str] = frozenset()
) -> Model:
    """Fit the forests on what is not of these groups; the model stays uncalibrated."""
    data, made = corpus.sentences, corpus.corrupted_sentences
    tested, of_tested = corpus.of_groups(without)
    used = data.of(~tested)
    invention = _boosted(250, data.rows[used], data.unsupported[used], draws=_DRAWS)
    # A sentence from other passages is an invention; only the other kinds are changes.
    is_change = np.array([item.kind != "foreign" for item in corpus.corrupted])
    wrong = made.of(~of_tested & is_change) & made.unsupported
    right = used & ~data.unsupported
    rows = np.concatenate([data.rows[right], made.rows[wrong]])
    label = np.repeat([False, True], [right.sum(), wrong.sum()])
    weight = np.repeat([1.0, _WEIGHT_OF_CORRUPTED], [right.sum(), wrong.sum()])
    corruption = _boosted(200, rows, label, weight)
    contradiction = _contradiction(data, used)
    contrast = _contrast(corpus.contrasts, without)
    return Model(invention, corruption, contradiction, contrast, words, odds, SHIFTS, UNCALIBRATED)


def _contradiction(data: Sentences, used: Bools) -> Forest:
    """Fit the forest of marked contradictions; it is small, because they are few."""
    rows = used & (data.contradicted | ~data.unsupported)
    few: dict[str, Any] = {"max_leaf_nodes": 6, "learning_rate": 0.04}  # Any: as above
    return _boosted(120, data.rows[rows], data.contradicted[rows], **few)


def _contrast(data: Contrasts, without: frozenset[str]) -> Forest:
    """Fit the forest that judges a sentence beside its counterpart."""
    used = np.array([group not in without for group in data.group])
    weight = np.array([_WEIGHTS_OF_PAIRS.get(kind, 1.0) for kind in data.kind])
    return _boosted(400, data.rows[used], data.unsupported[used], weight[used])


def cross_fit(corpus: Corpus, words: Rarity) -> OutOfFold:
    """Judge every answer by a model fitted without its group."""
    data, made = corpus.sentences, corpus.corrupted_sentences
    odds, made_odds = np.zeros((len(data.rows), 2)), np.zeros((len(made.rows), 2))
    models = dict[str, Model]()
    folds = fold_of_groups(corpus.answers)
    of_summaries = fold_of_groups([duel.one for duel in corpus.summaries])
    for fold in range(FOLDS):
        own, summaries = (
            frozenset(group for group, at in of.items() if at == fold)
            for of in (folds, of_summaries)
        )
        names = own | summaries
        tested, of_tested = corpus.of_groups(own)
        model = fit(corpus, words, corpus.choices.without[min(own)], names)
        rows, rows_made = data.of(tested), made.of(of_tested)
        odds[rows] = model.parts(data.rows[rows])
        made_odds[rows_made] = model.parts(made.rows[rows_made])
        models |= dict.fromkeys(names, model)
    return OutOfFold(odds, made_odds, models)


def fold_of_groups(answers: Sequence[Labelled]) -> dict[str, int]:
    """Return each group's fold."""
    groups = np.array([item.group for item in answers])
    folds = GroupKFold(FOLDS, shuffle=True, random_state=SEED).split(groups, groups=groups)
    return {name: at for at, (_, test) in enumerate(folds) for name in groups[test].tolist()}


def checked(raw: Floats, data: Sentences, answers: int, calibration: Calibration) -> Floats:
    """Return answers' log-odds from their sentences' raw log-odds and the checks."""
    found = calibration.checked(raw, data.excess)
    return calibration.of_checked(found, data.excess, data.answer, answers)


def calibrated(raw: Floats, data: Sentences, label: NDArray[np.int64]) -> Calibration:
    """Return the calibration at the base rate of real use, with its threshold.

    `raw` are the sentences' log-odds. A check's finding is flagged at every threshold. F1 at the
    base rate has a flat maximum: of the length corrections within 1 % of it the greatest is taken,
    which treats long answers most like short ones; of its thresholds within 1 % the lowest, which
    finds most.
    """
    found = np.zeros(len(label), dtype=np.bool_)
    found[data.answer[np.isfinite(data.excess)]] = True
    tried = [_calibrated(raw, data, label, found, length) for length in LENGTHS]
    best = max(reached.max() for _, reached in tried)
    chosen, reached = [t for t in tried if t[1].max() >= _NEAR_BEST * best][-1]
    near = reached >= _NEAR_BEST * reached.max()
    return replace(chosen, threshold=float(_THRESHOLDS[near][0]))


def _calibrated(
    raw: Floats, data: Sentences, label: NDArray[np.int64], found: Bools, length: float
) -> tuple[Calibration, Floats]:
    """Return the calibration for one length correction, and F1 at every threshold."""
    weight = at_base_rate(label)
    plain = replace(UNCALIBRATED, length=length)
    odds = plain.of_answers(raw, data.answer, len(label))
    platt = LogisticRegression(C=1e6).fit(odds[:, None], label, sample_weight=weight)
    slope, intercept = float(platt.coef_[0, 0]), float(platt.intercept_[0])
    probability = expit(slope * odds + intercept)
    reached = np.array([f1((probability >= t) | found, label, weight) for t in _THRESHOLDS])
    return replace(plain, slope=slope, intercept=intercept), reached


def with_calibration(model: Model, calibration: Calibration) -> Model:
    """Return the model with another calibration."""
    return replace(model, calibration=calibration)


def at_base_rate(label: NDArray[np.int64], base_rate: float = BASE_RATE) -> Floats:
    """Return weights that give the unsupported answers a share of `base_rate`."""
    share = label.mean()
    weight = np.where(label == 1, base_rate / share, (1 - base_rate) / (1 - share))
    return np.asarray(weight, dtype=np.float64)


def f1(flagged: Bools, label: NDArray[np.int64], weight: Floats) -> float:
    """Return the weighted F1 of the unsupported class; 0 without true positives."""
    hit = weight[flagged & (label == 1)].sum()
    return float(2 * hit / (weight[flagged].sum() + weight[label == 1].sum()))


_NEAR_BEST = 0.99
_THRESHOLDS = expit(np.arange(logit(0.05), logit(0.6), 0.05))


def _boosted(
    trees: int,
    rows: Floats,
    label: Bools,
    weight: Floats | None = None,
    draws: int = 1,
    **settings: Any,  # as of `_BOOSTING`
) -> Forest:
    """Fit the trees, `draws` times with different random columns; return the mean forest."""
    several = [_BOOSTING | settings | {"random_state": draw} for draw in range(draws)]
    boosters = [
        HistGradientBoostingClassifier(max_iter=trees, **one).fit(rows, label, sample_weight=weight)
        for one in several
    ]
    # The fitted trees have no public form; a test compares this copy with `decision_function`.
    parts = [stage[0].nodes for one in boosters for stage in one._predictors]  # noqa: SLF001
    roots = np.cumsum([0, *(len(nodes) for nodes in parts[:-1])])
    offset = np.repeat(roots, [len(nodes) for nodes in parts])
    nodes = np.concatenate(parts)
    own, leaf = np.arange(len(nodes)), nodes["is_leaf"].astype(bool)
    return Forest(
        feature=np.where(leaf, 0, nodes["feature_idx"]).astype(np.int32),
        limit=np.where(leaf, 0.0, nodes["num_threshold"]),
        left=np.where(leaf, own, nodes["left"] + offset).astype(np.int32),
        right=np.where(leaf, own, nodes["right"] + offset).astype(np.int32),
        # Rounded as in the file, so that a new model gives the same results as the shipped one.
        value=(np.where(leaf, nodes["value"], 0.0).astype(np.float32) / draws).astype(np.float64),
        roots=roots.astype(np.int32),
        base=float(np.ravel(boosters[0]._baseline_prediction)[0]),  # noqa: SLF001
    )

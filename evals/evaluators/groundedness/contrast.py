"""Features of a sentence beside its counterpart in the other answer of a pair."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evals.evaluators.groundedness import polarity, slots, word_choice, word_classes
from evals.evaluators.groundedness.alignment import NEGATION_REACH, company, opposites
from evals.evaluators.groundedness.features import SentenceReading, Values, WordIds
from evals.evaluators.groundedness.passages import STRIDE, WINDOW, Passages
from evals.evaluators.groundedness.tokens import Token, associates_of, relatives_of, synonyms_of
from evals.evaluators.groundedness.word_odds import WordOdds

_NOTHING = -99.0
"""The value of a feature that has nothing to measure."""
_NEAREST = 3
"""Number of nearest windows to compare with."""
_AROUND = 6
_MAX_ASKED = 8
_WHOLE = 20
"""Places on either side of a word that are searched for the rest of its sentence."""
_MAX_PLACES = 24
_SCOPE = 4
"""Content words behind a negator that it may negate."""
_SIDE = (
    "words", "mass", "absent", "absent_mass", "near", "near_mass", "negators",
    "numbers", "numbers_absent", "numbers_far", "names", "names_absent", "names_far",
    "joints", "joints_held", "triples_held", "company_least", "company_mean", "opposed",
    "whole_least", "whole_mean",
    "number_joints_lost", "forms_held", "past", "synonyms", "relatives", "associates",
    "plain", "plain_near",
    *(f"{name}_words" for name in word_classes.NAMES),
)  # fmt: skip
_OF_READING = (
    "words", "content_words", "negators", "refusal", "about_passages", "item", "colon",
    "absent_mass", "absent_share", "absent_max", "absent_words", "absent_words_share",
    "absent_plain_max", "best_support_weighted", "best_support",
    "numbers_absent", "numbers_outside", "number_company", "names_absent", "names_outside",
    "name_company", "numbers_swapped", "names_swapped", "words_swapped", "antonyms",
    "negations_added", "negations_dropped", "backwards", "names_backwards",
    "splice_number", "splice_name", "splice_word", "splice_added_negation",
    "splice_dropped_negation", "splice_antonym",
    "pairs_share", "triples_share", "content_pairs_share", "longest_run", "longest_run_share",
    "attributed_support", "attributed_loss",
)  # fmt: skip
_SLOTS = tuple(f"slot_{name}" for name in slots.NAMES)
_NEGATIONS = tuple(f"negation_{name}" for name in polarity.NAMES)
_CHOICES = tuple(f"choice_{name}" for name in word_choice.NAMES)


@dataclass(frozen=True, slots=True)
class _Difference:
    """A sentence and those of its words that the counterpart lacks."""

    words: WordIds
    own: frozenset[int]
    """Indices of the tokens that the counterpart lacks."""


def contrast(
    ours: SentenceReading,
    theirs: SentenceReading | None,
    passages: Passages,
    odds: WordOdds,
) -> Values:
    """Return the features of our sentence beside theirs; `None`: it has no counterpart."""
    values: Values = {f"own_{name}": float(ours.values[name]) for name in _OF_READING}
    if theirs is None:
        values["twin"] = 0.0
        values["alike"] = 0.0
        for name in _OF_READING:
            values[f"more_{name}"] = _NOTHING
        for name in _SIDE:
            values[f"here_{name}"] = values[f"there_{name}"] = _NOTHING
        values["negated_near"] = _NOTHING
        values["same_words"] = 0.0
        values |= dict.fromkeys((*_SLOTS, *_NEGATIONS, *_CHOICES), _NOTHING)
        values |= {f"{name}_held": _NOTHING for name in word_classes.NAMES}
        return values
    for name in _OF_READING:
        values[f"more_{name}"] = float(ours.values[name] - theirs.values[name])
    places = slots.slots_of(ours.words, theirs.words)
    here = frozenset(at for slot in places for at in slot.ours)
    there = frozenset(at for slot in places for at in slot.theirs)
    values["twin"] = 1.0
    size = len(ours.words.tokens), len(theirs.words.tokens)
    values["alike"] = 2 * (size[0] - len(here)) / max(sum(size), 1)
    mine, other = _Difference(ours.words, here), _Difference(theirs.words, there)
    near = _near(ours.words, here, passages)
    rows = _held_near(near, passages)
    for side, one, against in (("here", mine, other), ("there", other, mine)):
        for name, value in _side(one, against, rows, passages).items():
            values[f"{side}_{name}"] = value
    values["negated_near"] = _negated(mine, other, near, passages)
    values["same_words"] = float(
        sorted(slots.compared(ours.words)) == sorted(slots.compared(theirs.words))
    )
    found = slots.evidence(places, ours.words, theirs.words, passages)
    values |= {name: found[of] for name, of in zip(_SLOTS, slots.NAMES, strict=True)}
    denials = polarity.evidence(ours.words, here, theirs.words, there, passages, odds)
    values |= {name: denials[of] for name, of in zip(_NEGATIONS, polarity.NAMES, strict=True)}
    choice = word_choice.evidence(places, ours.words, theirs.words, odds)
    values |= {name: choice[of] for name, of in zip(_CHOICES, word_choice.NAMES, strict=True)}
    scopes = [
        one | two
        for one, two in zip(
            *(
                word_classes.governed(w.words.tokens, w.words.rows, sorted(w.own))
                for w in (mine, other)
            ),
            strict=True,
        )
    ]
    held = word_classes.held(scopes, near, passages)
    values |= {f"{name}_held": share for name, share in zip(word_classes.NAMES, held, strict=True)}
    return values


def _near(words: WordIds, own: frozenset[int], passages: Passages) -> list[tuple[int, int]]:
    """Return the stretches that best support the words which both sentences share."""
    weights = {
        row: weight
        for at, (row, weight, token) in enumerate(
            zip(words.rows, words.row_weights, words.tokens, strict=True)
        )
        if at not in own and row >= 0 and token.form.is_content
    }
    support = passages.support(list(weights), list(weights.values()))
    order = np.argsort(-support, kind="stable")[:_NEAREST].tolist()
    best = [at for at in order if support[at] > 0]
    last = len(passages.places)
    return [
        (max(at * STRIDE - _AROUND, 0), min(at * STRIDE + WINDOW + _AROUND, last)) for at in best
    ]


def _compared_form(token: Token, row: int) -> tuple[int, bool]:
    return row, token.form.is_past


@dataclass(frozen=True, slots=True)
class _Near:
    """The words of the nearest stretches."""

    rows: frozenset[int]
    forms: frozenset[tuple[int, bool]]
    """Each word with whether it is in the past tense."""


def _held_near(near: Sequence[tuple[int, int]], passages: Passages) -> _Near:
    forms = {
        _compared_form(token, passages.row[place])
        for start, end in near
        for place in range(start, end)
        if (token := passages.places[place]) is not None
    }
    return _Near(frozenset(row for row, _ in forms), frozenset(forms))


def _side(one: _Difference, against: _Difference, near: "_Near", passages: Passages) -> Values:
    words, own = one.words, sorted(one.own)
    tokens, rows, weights = words.tokens, words.rows, words.row_weights
    content = [at for at in own if tokens[at].form.is_content]
    absent = [at for at in content if rows[at] < 0]
    close = [at for at in content if rows[at] in near.rows]
    plain = [at for at in own if not tokens[at].form.is_content]
    numbers = [at for at in content if tokens[at].form.is_number]
    names = [at for at in content if tokens[at].is_name]
    joints = [at for at in range(len(rows) - 1) if at in one.own or at + 1 in one.own]
    triples = [at for at in range(len(rows) - 2) if not one.own.isdisjoint((at, at + 1, at + 2))]
    place = {at: n for n, at in enumerate(at for at, t in enumerate(tokens) if t.form.is_content)}
    asked = [at for at in content if rows[at] >= 0][:_MAX_ASKED]
    kept = [company(place[at], words.ids, words.weights, passages) for at in asked]
    whole = _wholes(words, one.own, asked, passages)
    opposite = opposites()
    theirs = {against.words.tokens[at].form.stem for at in against.own}
    classes = word_classes.counted(tokens, own)
    behind = [
        at for at in joints if tokens[at].form.is_number and not tokens[at + 1].form.is_number
    ]

    def facing(others_of: Callable[[str], Sequence[str]]) -> int:
        """Count our words for which the other sentence has one of these others."""
        return sum(not theirs.isdisjoint(others_of(tokens[at].form.stem)) for at in content)

    return {
        "number_joints_lost": sum((rows[at], rows[at + 1]) not in passages.pairs for at in behind),
        "forms_held": sum(_compared_form(tokens[at], rows[at]) in near.forms for at in content),
        "past": sum(tokens[at].form.is_past for at in own),
        "synonyms": facing(synonyms_of),
        "relatives": facing(relatives_of),
        "associates": facing(associates_of),
        "plain": len(plain),
        "plain_near": sum(rows[at] in near.rows for at in plain),
        **{f"{name}_words": n for name, n in zip(word_classes.NAMES, classes, strict=True)},
        "words": len(own),
        "mass": sum(weights[at] for at in content),
        "absent": len(absent),
        "absent_mass": sum(weights[at] for at in absent),
        "near": len(close),
        "near_mass": sum(weights[at] for at in close),
        "negators": sum(tokens[at].form.is_negator for at in own),
        "numbers": len(numbers),
        "numbers_absent": sum(rows[at] < 0 for at in numbers),
        "numbers_far": sum(rows[at] not in near.rows for at in numbers),
        "names": len(names),
        "names_absent": sum(rows[at] < 0 for at in names),
        "names_far": sum(rows[at] not in near.rows for at in names),
        "joints": len(joints),
        "joints_held": sum((rows[at], rows[at + 1]) in passages.pairs for at in joints)
        / max(len(joints), 1),
        "triples_held": sum(
            (rows[at], rows[at + 1], rows[at + 2]) in passages.triples for at in triples
        )
        / max(len(triples), 1),
        "company_least": min(kept, default=1.0),
        "company_mean": sum(kept) / len(kept) if kept else 1.0,
        "whole_least": min(whole, default=1.0),
        "whole_mean": sum(whole) / len(whole) if whole else 1.0,
        "opposed": facing(lambda stem: opposite.get(stem, ())),
    }


def _wholes(
    words: WordIds, own: frozenset[int], asked: Sequence[int], passages: Passages
) -> list[float]:
    """Return, for each word asked for, how much of the shared words is near one of its places.

    A share of their weight, the greatest of its places.
    """
    shared = {
        row: weight
        for at, (row, weight) in enumerate(zip(words.rows, words.row_weights, strict=True))
        if at not in own and row >= 0 and words.tokens[at].form.is_content
    }
    total, found = sum(shared.values()), list[float]()
    for at in asked if total else ():
        best = 0.0
        for place in passages.positions[words.rows[at]][:_MAX_PLACES]:
            near = set(passages.row[max(place - _WHOLE, 0) : place + _WHOLE + 1])
            best = max(best, sum(weight for row, weight in shared.items() if row in near))
        found.append(best / total)
    return found


def _negated(
    mine: _Difference, other: _Difference, near: Sequence[tuple[int, int]], passages: Passages
) -> float:
    """Return the share of nearby occurrences of the negated words that are negated there too.

    The words are those behind a negator that only one of the sentences has.
    """
    scope: set[int] = set()
    for one in (mine, other):
        tokens, rows = one.words.tokens, one.words.rows
        for at in one.own:
            if tokens[at].form.is_negator:
                behind = [rows[n] for n in range(at + 1, len(tokens)) if tokens[n].form.is_content]
                scope.update(behind[:_SCOPE])
    scope.discard(-1)
    found = denied = 0
    for start, end in near:
        left = 0
        for place in range(start, end):
            token = passages.places[place]
            if token is None:
                left = 0
            elif token.form.is_negator:
                left = NEGATION_REACH + 2
            else:
                if passages.row[place] in scope:
                    found += 1
                    denied += left > 0
                left = max(left - 1, 0)
    return denied / found if found else _NOTHING


CONTRASTS = (
    *(f"own_{name}" for name in _OF_READING),
    *(f"more_{name}" for name in _OF_READING),
    *(f"here_{name}" for name in _SIDE),
    *(f"there_{name}" for name in _SIDE),
    "twin", "alike", "negated_near", "same_words",
    *(f"{name}_held" for name in word_classes.NAMES), *_SLOTS, *_NEGATIONS,
    *_CHOICES,
)  # fmt: skip
"""Names of the features, in the order of the model's columns."""

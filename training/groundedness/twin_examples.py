"""Labelled pairs of answers to one question: real pairs, and pairs made from one answer."""

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness.contrast import CONTRASTS, contrast
from evals.evaluators.groundedness.features import Rarity, SentenceReading, read
from evals.evaluators.groundedness.judgement import indexed
from evals.evaluators.groundedness.sentences import sentences_of
from evals.evaluators.groundedness.shared_sentences import key, match_sentences
from evals.evaluators.groundedness.word_odds import WordOdds
from training.groundedness.corruption import KINDS, corrupt
from training.groundedness.data import Labelled
from training.groundedness.edits import harmful, harmless
from training.groundedness.edits.places import Source
from training.groundedness.examples import beside_strangers, touched

_NOT = re.compile(r"\s+(?:not|never)\b|n['’]t\b", re.IGNORECASE)
_AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|can|could|will|would|should|must|may|might|has|have|had|do|does)\b"
    r"(?!\s+(?:not|never|no longer)\b|n't)"
)
_SHORTENED = {"cann't": "can't", "willn't": "won't", "mayn't": "may not", "can not": "cannot"}
_DIGITS = re.compile(r"\d+")
_LOOSE = re.compile(
    r"\s+(?:also|very|often|usually|typically|generally|commonly|however|specifically|that)\b"
)
_EXCHANGED = {
    "such as": "like", "approximately": "about", "about": "around", "however": "but",
    "according to": "based on", "based on": "according to", "usually": "typically",
    "typically": "usually", "generally": "usually", "including": "such as", "often": "frequently",
    "can be": "may be", "and": "as well as", "provided": "given", "given": "provided",
    "mentioned": "stated", "it is": "it's", "is not": "isn't", "do not": "don't", "for": "of",
}  # fmt: skip
_EXCHANGE = re.compile(r"\b(?:" + "|".join(map(re.escape, _EXCHANGED)) + r")\b", re.IGNORECASE)


_AGAIN = {
    "modality": 2,
    "condition left out": 1,
    "negation left out": 2,
    "denying word left out": 1,
    "denying word put in": 1,
    "name": 1,
}
"""How often kinds are made again of each answer: they have many forms."""


@dataclass(frozen=True, slots=True)
class Duel:
    """Two answers on the same passages, the second one's unsupported parts marked, too."""

    one: Labelled
    other: Labelled
    kind: str


@dataclass(frozen=True, slots=True)
class Contrasts:
    """Feature rows of sentences that differ from their counterparts."""

    rows: NDArray[np.float64]
    unsupported: NDArray[np.bool_]
    group: NDArray[np.str_]
    kind: NDArray[np.str_]
    """How the pair was made."""


def made_duels(answers: Sequence[Labelled], seed: int) -> list[Duel]:
    """Pair supported answers with copies that are wrong or reworded in one place."""
    rng = random.Random(seed)  # noqa: S311 - a seeded draw, no secret
    found = list[Duel]()
    for item, other in beside_strangers(answers, rng):
        source = Source(item.context, item.answer, other.answer)
        for kind in KINDS:
            wrong = corrupt(source, kind, rng)
            if wrong is not None:
                found.append(_duel(item, wrong.answer, kind, (wrong.start, wrong.end)))
        found += _more_wrong(item, other, rng)
        found += _reworded(item, rng)
        found += _edited(item, other, rng)
    return found


def _edited(item: Labelled, other: Labelled, rng: random.Random) -> list[Duel]:
    """Return copies with one edit of each kind, harmful and harmless."""
    found, source = list[Duel](), Source(item.context, item.answer, other.answer)
    for rules, is_harmful in ((harmful.TRAINING, True), (harmless.TRAINING, False)):
        for kind, rule in rules.items():
            for _ in range(1 + _AGAIN.get(kind, 0)):
                edit = rule(source, rng)
                if edit is not None and edit.answer != item.answer:
                    span = (edit.start, edit.end) if is_harmful else None
                    found.append(_duel(item, edit.answer, kind, span))
    return found


def duels_of(answers: Sequence[Labelled], corrupted: Sequence[Labelled]) -> list[Duel]:
    """Pair each corrupted answer with its original."""
    by_id = {item.id: item for item in answers}
    return [Duel(by_id[item.id], item, item.kind or "") for item in corrupted]


def real(answers: Sequence[Labelled]) -> list[Duel]:
    """Return all pairs of different models' answers to one question."""
    by_group: dict[str, list[Labelled]] = defaultdict(list)
    for item in answers:
        by_group[item.group].append(item)
    return [Duel(a, b, "real") for of in by_group.values() for a, b in combinations(of, 2)]


def exchanged(answers: Sequence[Labelled], seed: int) -> list[Duel]:
    """Pair answers with copies in which one sentence is replaced by another model's variant."""
    rng = random.Random(seed)  # noqa: S311 - as above
    found = []
    for duel in real(answers):
        one, other = duel.one, duel.other
        a, b = sentences_of(one.answer), sentences_of(other.answer)
        variants = match_sentences([key(s) for s in a], [key(s) for s in b]).pairs
        if not variants:
            continue
        at, there = rng.choice(variants)
        mine, theirs = a[at], b[there]
        text = one.answer[: mine.start] + theirs.text + one.answer[mine.end :]
        moved = len(theirs.text) - len(mine.text)
        spans = [
            (s + moved * (s >= mine.end), e + moved * (s >= mine.end))
            for s, e in one.spans
            if e <= mine.start or s >= mine.end
        ]
        spans += [
            (
                max(s, theirs.start) - theirs.start + mine.start,
                min(e, theirs.end) - theirs.start + mine.start,
            )
            for s, e in other.spans
            if s < theirs.end and e > theirs.start
        ]
        copy = replace(one, answer=text, spans=tuple(sorted(spans)), label=int(bool(spans)))
        found.append(Duel(one, copy, "exchanged"))
    return found


def contrasts(duels: Sequence[Duel], rarity: Rarity, odds: Mapping[str, WordOdds]) -> Contrasts:
    """Return the features of the differing sentences of both sides; `odds` are by group."""
    rows, labels, groups, kinds = [], [], [], []
    context, known = "", dict[str, list[SentenceReading]]()
    for duel in duels:
        passages = indexed((duel.one.context,))
        one, other = duel.one.answer, duel.other.answer
        if duel.one.context != context:
            context, known = duel.one.context, {}
        first = known.get(one) or read(one, sentences_of(one), passages, rarity)
        second = known.get(other) or read(other, sentences_of(other), passages, rarity, first)
        known[one] = first
        if duel.kind == "real":
            known[other] = second
        for item, ours, theirs in _differing(duel, first, second):
            values = contrast(ours, theirs, passages, odds[item.group])
            rows.append([values[name] for name in CONTRASTS])
            labels.append(touched(ours.sentence, item.spans))
            groups.append(item.group)
            kinds.append(duel.kind)
    return Contrasts(
        np.array(rows, dtype=np.float64),
        np.array(labels),
        np.array(groups),
        np.array(kinds),
    )


def _differing(
    duel: Duel, ours: Sequence[SentenceReading], theirs: Sequence[SentenceReading]
) -> Iterator[tuple[Labelled, SentenceReading, SentenceReading | None]]:
    found = match_sentences([key(r.sentence) for r in ours], [key(r.sentence) for r in theirs])
    for a, b in found.pairs:
        yield duel.one, ours[a], theirs[b]
        yield duel.other, theirs[b], ours[a]
    if duel.kind != "real":
        for a in found.ours:
            yield duel.one, ours[a], None
        for b in found.theirs:
            yield duel.other, theirs[b], None


def _duel(item: Labelled, answer: str, kind: str, span: tuple[int, int] | None) -> Duel:
    spans = (span,) if span else ()
    return Duel(item, replace(item, answer=answer, spans=spans, label=len(spans)), kind)


def _more_wrong(item: Labelled, other: Labelled, rng: random.Random) -> list[Duel]:
    """Return pairs with further kinds of errors."""
    found, text = list[Duel](), item.answer
    sentences = [s for s in sentences_of(text) if not s.is_refusal]
    if not sentences:
        return found

    def put(kind: str, start: int, end: int, words: str) -> None:
        found.append(
            _duel(
                item,
                text[:start] + words + text[end:],
                kind,
                (start, max(start + len(words), start + 1)),
            )
        )

    denials = [(s, m) for s in sentences for m in _NOT.finditer(text, s.start, s.end)]
    if denials:
        sentence, match = rng.choice(denials)
        start, end = match.span()
        changed = text[sentence.start : start] + text[end : sentence.end]
        found.append(
            _duel(
                item,
                text[:start] + text[end:],
                "affirmed",
                (sentence.start, sentence.start + len(changed)),
            )
        )
    verbs = [m for s in sentences for m in _AUXILIARY.finditer(text, s.start, s.end)]
    if verbs:
        verb = rng.choice(verbs)
        word = rng.choice((" never", " no longer", " not", "n't"))
        denied = _SHORTENED.get(verb.group() + word, verb.group() + word)
        put("denied", verb.start(), verb.end(), denied)
    digits = [
        m
        for s in sentences
        for m in _DIGITS.finditer(text, s.start, s.end)
        if m.group() in item.context and any(t.start <= m.start() < t.end for t in s.tokens)
    ]
    if digits:
        match = rng.choice(digits)
        value = int(match.group()[:15])
        theirs = [m.group() for m in _DIGITS.finditer(item.context) if m.group() != match.group()]
        options = [
            str(value + 1),
            str(value * 10),
            str(max(value - rng.randint(1, 9), 0)),
            match.group()[::-1],
        ]
        options = [o for o in options if o != match.group()]
        if theirs:
            options += [rng.choice(theirs)] * 3
        put("number_near", match.start(), match.end(), rng.choice(options))
    source = other.answer if rng.random() < 0.5 else other.context
    strangers = [s.text for s in sentences_of(source) if len(s.tokens) >= 6 and not s.is_refusal]
    if strangers:
        at = rng.choice(sentences).end
        put("inserted", at, at, " " + rng.choice(strangers))
        sentence = rng.choice(sentences)
        put("foreign_near", sentence.start, sentence.end, rng.choice(strangers))
    return found


def _reworded(item: Labelled, rng: random.Random) -> list[Duel]:
    """Return pairs with copies that say the same, or less."""
    found, text = list[Duel](), item.answer
    sentences = sentences_of(text)
    if len(sentences) > 1:
        left_out = rng.choice(sentences)
        found.append(_duel(item, text[: left_out.start] + text[left_out.end :], "shortened", None))
    cut = rng.choice(sentences)
    at = rng.choice(cut.tokens).start
    if text[:at].strip():
        found.append(_duel(item, text[:at], "cut", None))
    loose = [m.span() for m in _LOOSE.finditer(text)]
    if loose:
        start, end = rng.choice(loose)
        found.append(_duel(item, text[:start] + text[end:], "loosened", None))
    for _ in range(2):
        places = list(_EXCHANGE.finditer(text))
        if places:
            place = rng.choice(places)
            words = _EXCHANGED[place.group().lower()]
            if place.group()[0].isupper():
                words = words[0].upper() + words[1:]
            found.append(
                _duel(item, text[: place.start()] + words + text[place.end() :], "reworded", None)
            )
    return found

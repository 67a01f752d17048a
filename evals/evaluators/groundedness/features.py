"""Features of each sentence of an answer, measured against the passages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from evals.evaluators.groundedness.acronyms import Acronyms, as_put
from evals.evaluators.groundedness.alignment import Differences, company, differences, opposites
from evals.evaluators.groundedness.arithmetic import Equation, equations
from evals.evaluators.groundedness.bounds import other_bounds
from evals.evaluators.groundedness.conversions import KnownAmounts, as_known, wrong_repeats
from evals.evaluators.groundedness.dates import resolved
from evals.evaluators.groundedness.numerals import unexplained
from evals.evaluators.groundedness.own_numbers import own_numbers
from evals.evaluators.groundedness.passages import STRIDE, WINDOW, Passages
from evals.evaluators.groundedness.question import Question, question_of
from evals.evaluators.groundedness.sentences import Sentence, cited_passages
from evals.evaluators.groundedness.tokens import Token
from evals.evaluators.groundedness.units import other_units
from evals.evaluators.groundedness.word_changes import KINDS, WordChange, splices

_AROUND = 6
"""Places on either side of the nearest window that are compared too."""
_STOP_WORD_WEIGHT = 0.5

Values = dict[str, float]


@dataclass(frozen=True, slots=True)
class Rarity:
    """Rarity of English words: the inverse document frequency of each stem."""

    known: Mapping[str, float]
    unknown: float
    """For stems that are not in `known`."""

    def of(self, stem: str) -> float:
        """Return a stem's rarity."""
        return self.known.get(stem, self.unknown)


@dataclass(frozen=True, slots=True)
class SentenceReading:
    """A sentence's features, and the findings that they are made from."""

    sentence: Sentence
    start: int
    end: int
    """The nearest places of the passages are `range(start, end)`."""
    differences: Differences
    splices: tuple[WordChange, ...]
    absent: tuple[Token, ...]
    """Content words that no passage contains."""
    unexplained: tuple[Token, ...]
    """Absent numbers that neither the question nor the answer's form explains; see `numerals`."""
    missing_passages: tuple[int, ...]
    """Numbers of passages that the sentence names and that do not exist."""
    other_units: tuple[tuple[str, str], ...]
    """Result of `units.other_units`."""
    other_bounds: tuple[tuple[str, str], ...]
    """Result of `bounds.other_bounds`."""
    miscalculated: tuple[str, ...]
    """Equations and conversions as written that are wrong by themselves."""
    words: "WordIds"
    values: Values


class WordIds:
    """A sentence's words as ids of the passages' words; −1 for a word that no passage contains."""

    def __init__(self, sentence: Sentence, passages: Passages, rarity: Rarity) -> None:
        self.tokens = resolved(sentence.tokens, passages.dates, passages.either_dates)
        self.rows = [passages.number_of(token) for token in self.tokens]
        content = [
            (t, row) for t, row in zip(self.tokens, self.rows, strict=True) if t.form.is_content
        ]
        self.content = [token for token, _ in content]
        self.ids = [row for _, row in content]
        self.weights = [rarity.of(t.form.stem) for t in self.content]
        self.row_weights = [
            rarity.of(t.form.stem) if t.form.is_content else _STOP_WORD_WEIGHT for t in self.tokens
        ]
        self.absent = [
            (t, w) for t, i, w in zip(self.content, self.ids, self.weights, strict=True) if i < 0
        ]
        self.held = {i: w for i, w in zip(self.ids, self.weights, strict=True) if i >= 0}
        stems = {t.form.stem: w for t, w in zip(self.content, self.weights, strict=True)}
        self.distinct = len(stems) or 1
        self.total = sum(stems.values()) or 1.0


def read(
    text: str,
    sentences: Sequence[Sentence],
    passages: Passages,
    rarity: Rarity,
    known: Sequence[SentenceReading] = (),
    question: str = "",
) -> list[SentenceReading]:
    """Return each sentence's features, including those of the whole answer.

    `known` are readings of another answer on the same passages; a sentence that both answers have
    is not read again. `question` is the prompt, if known.
    """
    about = question_of(question, passages.texts)
    sums = list(equations([t for sentence in sentences for t in sentence.tokens], text))
    own = own_numbers(sentences, sums, passages, about)
    wrong = [one for one in sums if one.is_wrong]
    read_before = {reading.sentence.text: reading for reading in known}
    readings = [
        _read(text, own.without(sentence), passages, rarity, about, wrong)
        if (before := read_before.get(sentence.text)) is None
        else _moved(before, sentence)
        for sentence in sentences
    ]
    if readings:
        _add_answer(readings, passages, about)
    return readings


def converted(
    readings: Sequence[SentenceReading],
    text: str,
    passages: Passages,
    rarity: Rarity,
    known: KnownAmounts,
    acronyms: Acronyms,
    question: str = "",
) -> Sequence[SentenceReading]:
    """Return the readings with each quantity in the unit of the known amount that it equals.

    What repeats a quantity in another unit is left out, as in `375°F (190°C)`. Of a
    known acronym and its name, one is put for both.
    """

    def words(sentence: Sentence) -> list[Token]:
        return as_put(as_known(sentence.tokens, text, known), text, acronyms)

    sentences = [replace(r.sentence, tokens=words(r.sentence)) for r in readings]
    if all(s.tokens == r.sentence.tokens for s, r in zip(sentences, readings, strict=True)):
        return readings
    found = read(text, sentences, passages, rarity, question=question)
    return [
        replace(new, miscalculated=old.miscalculated)
        for new, old in zip(found, readings, strict=True)
    ]


def matrix(readings: Sequence[SentenceReading]) -> NDArray[np.float64]:
    """Return the features as a matrix: one row per sentence, columns in the order of `NAMES`."""
    return np.array([[r.values[name] for name in NAMES] for r in readings], dtype=np.float64)


def _read(
    text: str,
    sentence: Sentence,
    passages: Passages,
    rarity: Rarity,
    question: Question,
    wrong: Sequence[Equation],
) -> SentenceReading:
    words = WordIds(sentence, passages, rarity)
    support = passages.support(list(words.held), list(words.held.values()))
    best = int(support.argmax())
    start = max(best * STRIDE - _AROUND, 0)
    end = min(best * STRIDE + WINDOW + _AROUND, len(passages.places))
    inside = frozenset(passages.row[start:end])
    found = differences(words.tokens, text, passages, start, end)
    everywhere = splices(words.tokens, words.rows, words.row_weights, passages)
    spliced = tuple(s for s in everywhere if s.instead < 0 or start <= s.instead < end)
    values = _kind(sentence, words)
    values |= _absence(words)
    values["best_support_weighted"] = float(support[best]) / words.total
    values["best_support"] = sum(i in inside for i in words.held) / words.distinct
    values |= _specifics(words, inside, passages)
    values |= _compared(found)
    values |= _spliced(spliced, words, passages)
    values |= _runs(words, passages)
    values |= _attributed(sentence, words, passages)
    values |= _question_features(words, question)
    absent = tuple(token for token, _ in words.absent)
    numbers = unexplained(sentence, absent, text, passages, question)
    values["numbers_unexplained"] = len(numbers)
    missing = tuple(n for n in cited_passages(sentence.text) if passages.lacks(n))
    units = other_units(words.tokens, words.rows, text, passages)
    bounds = other_bounds(words.tokens, words.rows, text, passages)
    return SentenceReading(
        sentence=sentence,
        start=start,
        end=end,
        differences=found,
        splices=spliced,
        absent=absent,
        unexplained=numbers,
        missing_passages=missing,
        other_units=units,
        other_bounds=bounds,
        miscalculated=_miscalculated(sentence, text, wrong),
        words=words,
        values=values,
    )


def _miscalculated(sentence: Sentence, text: str, wrong: Sequence[Equation]) -> tuple[str, ...]:
    own = [one for one in wrong if sentence.start <= one.result.start < sentence.end]
    written = [text[one.terms[0].start : one.result.end] for one in own]
    return (*written, *wrong_repeats(sentence.tokens, text))


def _moved(reading: SentenceReading, sentence: Sentence) -> SentenceReading:
    """Return a reading of the same sentence in another answer, with the offsets moved."""
    by = sentence.start - reading.sentence.start
    absent, numbers = (
        tuple(t._replace(start=t.start + by, end=t.end + by) for t in tokens)
        for tokens in (reading.absent, reading.unexplained)
    )
    return replace(
        reading,
        sentence=sentence,
        absent=absent,
        unexplained=numbers,
        values=dict(reading.values),
    )


def _kind(sentence: Sentence, words: WordIds) -> Values:
    return {
        "words": len(words.tokens),
        "content_words": len(words.content),
        "negators": sum(t.form.is_negator for t in words.tokens),
        "refusal": sentence.is_refusal,
        "about_passages": sentence.is_about_passages,
        "item": sentence.is_item,
        "colon": sentence.text.endswith(":"),
    }


def _absence(words: WordIds) -> Values:
    """Measure the words that no passage contains."""
    absent = {token.form.stem: weight for token, weight in words.absent}
    plain = [weight for token, weight in words.absent if not token.is_name]
    mass, ids = sum(absent.values()), words.ids
    return {
        "absent_mass": mass,
        "absent_share": mass / words.total,
        "absent_max": max(absent.values(), default=0.0),
        "absent_words": len(absent),
        "absent_words_share": len(absent) / words.distinct,
        "absent_plain_max": max(plain, default=0.0),
        "absent_between": sum(
            b < 0 <= a and c >= 0 for a, b, c in zip(ids, ids[1:], ids[2:], strict=False)
        ),
    }


def _specifics(words: WordIds, inside: frozenset[int], passages: Passages) -> Values:
    """Measure whether numbers and names are in the passages, near the same words."""
    values: Values = {}
    for name in ("number", "name"):
        places = [
            at
            for at, token in enumerate(words.content)
            if (token.form.is_number if name == "number" else token.is_name)
        ]
        known = [at for at in places if words.ids[at] >= 0]
        near = [company(at, words.ids, words.weights, passages) for at in known]
        values[f"{name}s"] = len(places)
        values[f"{name}s_absent"] = len(places) - len(known)
        values[f"{name}s_outside"] = sum(words.ids[at] not in inside for at in known)
        values[f"{name}_company"] = min(near, default=1.0)
    return values


def _compared(found: Differences) -> Values:
    return {
        "numbers_swapped": len(found.numbers_swapped),
        "names_swapped": len(found.names_swapped),
        "words_swapped": len(found.words_swapped),
        "antonyms": len(found.antonyms),
        "negations_added": len(found.negations_added),
        "negations_dropped": len(found.negations_dropped),
        "backwards": found.backwards / max(found.matched - 1, 1),
        "names_backwards": found.names_backwards,
    }


def _spliced(found: Sequence[WordChange], words: WordIds, passages: Passages) -> Values:
    values: Values = {"splices": len(found)}
    for kind in KINDS:
        values[f"splice_{kind}"] = max((s.strength for s in found if s.kind == kind), default=0.0)
    opposed = [
        s.strength
        for s in found
        if (other := passages.places[s.instead] if s.instead >= 0 else None)
        and other.form.stem in opposites().get(words.tokens[s.at].form.stem, ())
    ]
    values["splice_antonym"] = max(opposed, default=0.0)
    return values


def _runs(words: WordIds, passages: Passages) -> Values:
    """Measure how much is copied: runs of words that are runs in the passages too."""
    rows = words.rows
    pairs = [pair in passages.pairs for pair in pairwise(rows)]
    triples = [t in passages.triples for t in zip(rows, rows[1:], rows[2:], strict=False)]
    content = [pair in passages.content_pairs for pair in pairwise(words.ids)]
    longest = run = 0
    for held in triples:
        run = run + 1 if held else 0
        longest = max(longest, run)
    longest = longest + 2 if longest else 2 * any(pairs)
    return {
        "pairs_share": sum(pairs) / max(len(pairs), 1),
        "triples_share": sum(triples) / max(len(triples), 1),
        "content_pairs_share": sum(content) / max(len(content), 1),
        "longest_run": longest,
        "longest_run_share": longest / max(len(rows), 1),
    }


def _attributed(sentence: Sentence, words: WordIds, passages: Passages) -> Values:
    """Measure the support by the passages that the sentence names, such as `Passage 2`."""
    named = [place for n in sentence.attributed_to if (place := passages.labelled(n))]
    if not named:
        return {"attributed": 0.0, "attributed_support": -1.0, "attributed_loss": 0.0}
    rows = frozenset[int]().union(*(passages.row[start:end] for start, end in named))
    support = sum(w for i, w in words.held.items() if i in rows) / words.total
    loss = sum(words.held.values()) / words.total - support
    return {"attributed": 1.0, "attributed_support": support, "attributed_loss": loss}


def _question_features(words: WordIds, question: Question) -> Values:
    """Measure the question's words, and words that neither it nor a passage contains."""
    stems, own = question.stems, {t.form.stem for t in words.content}
    unasked = [(token, weight) for token, weight in words.absent if token.form.stem not in stems]
    return {
        "asked_share": len(own & stems) / len(stems) if stems else -1.0,
        "asked_absent": len(words.absent) - len(unasked),
        "unasked_mass": sum({token.form.stem: weight for token, weight in unasked}.values()),
        "unasked_max": max((w for t, w in unasked if not t.form.is_number), default=0.0),
        "names_unasked": sum(token.is_name for token, _ in unasked),
    }


def _add_answer(
    readings: Sequence[SentenceReading], passages: Passages, question: Question
) -> None:
    """Add the features of the whole answer and its question to each sentence."""
    stems, held = question.stems, sum(stem in passages.ids for stem in question.stems)
    shares = [r.values["absent_share"] for r in readings]
    answer: Values = {
        "sentences": len(readings),
        "answer_words": sum(r.values["words"] for r in readings),
        "answer_absent_share": sum(shares) / len(shares),
        "answer_absent_max": max(shares),
        "answer_refusals": sum(r.values["refusal"] for r in readings),
        "answer_items": sum(r.values["item"] for r in readings),
        "answer_unexplained": sum(r.values["numbers_unexplained"] for r in readings),
        "passage_words": len(passages.row),
        "question_held": held / len(stems) if stems else -1.0,
    }
    for at, reading in enumerate(readings):
        reading.values.update(
            answer,
            index=at,
            relative_index=at / max(len(readings) - 1, 1),
            is_last=at == len(readings) - 1,
            before_absent_share=shares[at - 1] if at else -1.0,
            after_absent_share=shares[at + 1] if at + 1 < len(shares) else -1.0,
        )


NAMES = (
    "words", "content_words", "negators", "refusal", "about_passages", "item", "colon",
    "absent_mass", "absent_share", "absent_max", "absent_words", "absent_words_share",
    "absent_plain_max", "absent_between", "best_support_weighted", "best_support",
    "numbers", "numbers_absent", "numbers_outside", "number_company",
    "names", "names_absent", "names_outside", "name_company",
    "numbers_swapped", "names_swapped", "words_swapped", "antonyms", "negations_added",
    "negations_dropped", "backwards", "names_backwards",
    "splices", "splice_number", "splice_name", "splice_word", "splice_added_negation",
    "splice_dropped_negation", "splice_antonym",
    "pairs_share", "triples_share", "content_pairs_share", "longest_run", "longest_run_share",
    "attributed", "attributed_support", "attributed_loss",
    "sentences", "answer_words", "answer_absent_share", "answer_absent_max", "answer_refusals",
    "answer_items", "passage_words", "index", "relative_index", "is_last",
    "before_absent_share", "after_absent_share",
    "numbers_unexplained", "answer_unexplained",
    "question_held", "asked_share", "asked_absent", "unasked_mass", "unasked_max", "names_unasked",
)  # fmt: skip
"""Names of the features, in the order of the model's columns."""

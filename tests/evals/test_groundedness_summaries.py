"""Summaries with edited copies, from a file that holds the copies alone."""

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from evals.evaluators.groundedness.tokens import associates_of, form_of, relatives_of

pytest.importorskip("sklearn", reason="training needs it")

from training.groundedness.edited_summaries import HARMFUL, HARMLESS, changed, edited_summaries

SUMMARY = "Ana sold the old mill to a baker in May. He keeps two goats there."
COPIES = (
    (SUMMARY.replace("sold", "gave"), 1),
    (SUMMARY.replace("keeps", "has"), 0),
    (SUMMARY.replace("two goats", "two young goats"), 1),
    (SUMMARY.replace(" in May", ""), 1),
    (SUMMARY.replace("old mill", "ancient mill"), 0),
)


def written(folder: Path, copies: Sequence[tuple[str, int]]) -> Path:
    file = folder / "summedits.jsonl.gz"
    with gzip.open(file, "wt", encoding="utf-8") as lines:
        for number, (answer, label) in enumerate(copies):
            row = {"id": str(number), "doc_key": "mill", "context": "A mill in Ghent is sold."}
            lines.write(json.dumps({**row, "answer": answer, "label": label}) + "\n")
    return file


def test_the_summary_is_what_most_copies_say(tmp_path: Path) -> None:
    """Each copy stands beside it, marked where it differs if it is wrong."""
    duels = edited_summaries(written(tmp_path, COPIES))
    assert {(duel.one.answer, duel.one.label, duel.one.group) for duel in duels} == {
        (SUMMARY, 0, "mill")
    }
    found = [
        (duel.kind, [duel.other.answer[start:end] for start, end in duel.other.spans])
        for duel in duels
    ]
    assert found == [
        (HARMFUL, ["gave"]),
        (HARMLESS, []),
        (HARMFUL, ["young"]),
        (HARMFUL, ["baker."]),
        (HARMLESS, []),
    ]


def test_a_copy_equal_to_its_summary_makes_no_pair(tmp_path: Path) -> None:
    """As do too few copies to tell the summary."""
    duels = edited_summaries(written(tmp_path, [*COPIES, (f"{SUMMARY}\n", 0)]))
    assert [duel.other.answer for duel in duels] == [copy for copy, _ in COPIES]
    assert edited_summaries(written(tmp_path, COPIES[:3])) == []


def test_copies_of_two_summaries_are_kept_apart(tmp_path: Path) -> None:
    """A text has several summaries; a copy belongs to the one that it is like."""
    other = "The village council met on Tuesday and voted against a new road."
    more = [(other.replace("Tuesday", day), 1) for day in ("Monday", "Friday", "Sunday", "Easter")]
    duels = edited_summaries(written(tmp_path, [*COPIES, *more, (other.replace("new", "wide"), 1)]))
    assert {duel.one.answer for duel in duels[:5]} == {SUMMARY}
    assert len({duel.one.answer for duel in duels[5:]}) == 1
    assert all("council" in duel.one.answer for duel in duels[5:])


@pytest.mark.parametrize(
    ("copy", "marked"),
    [
        ("a b c d", []),
        ("a x c d", ["x"]),
        ("a b c x y d", ["x y"]),
        ("a d", ["a d"]),
        ("b c d", ["b"]),
        ("a b c", ["c"]),
        ("x b c y", ["x", "y"]),
    ],
)
def test_what_a_copy_changed(copy: str, marked: list[str]) -> None:
    """New words, or the words around those left out."""
    assert [copy[start:end] for start, end in changed("a b c d", copy)] == marked


def _listed_by(others_of: Callable[[str], Sequence[str]]) -> Callable[[str, str], bool]:
    """Return whether the second of two words is among the first one's others."""
    return lambda one, other: form_of(other).stem in others_of(form_of(one).stem)


def test_relatives_share_a_sense_or_a_wider_one() -> None:
    """An opposite is none, and a word's fellows below a wider word are none."""
    related = _listed_by(relatives_of)
    assert related("removing", "eliminated")
    assert related("offender", "culprit")
    assert related("salmon", "fish")
    assert related("fish", "salmon")
    assert not related("salmon", "herring")
    assert not related("increase", "decrease")
    assert not related("zzz", "fish")


def test_associates_are_listed_under_each_other() -> None:
    """The thesaurus knows exchanges that share no sense, and no opposites of these."""
    associated = _listed_by(associates_of)
    assert associated("recaptured", "regained")
    assert associated("regaining", "recapture")
    assert associated("scheme", "plot")
    assert not associated("increase", "decrease")
    assert not associated("scheme", "scheme")
    assert not associated("zzz", "fish")

"""The lists of equivalent and of related words, made from small files in their sources' forms."""

import gzip
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from training.groundedness.words import main

DATA = {
    "noun": ["00000001 03 n 02 sofa 0 couch 0 001 @ 00000002 n 0000 | a seat for several",
             "00000002 03 n 01 seat 0 000 | to sit on"],
    "verb": ["00000003 30 v 02 increase 0 climb 0 001 ! 00000004 v 0101 | become more",
             "00000004 30 v 01 decrease 0 001 ! 00000003 v 0101 | become less"],
    "adj": ["00000005 00 a 01 wet 0 002 ! 00000006 a 0101 & 00000007 a 0000 | with water",
            "00000006 00 a 01 dry 0 001 ! 00000005 a 0101 | without water",
            "00000007 00 s 01 damp 0 001 & 00000005 a 0000 | a little wet"],
    "adv": [],
}  # fmt: skip
SELDOM = "rare"
THESAURUS = [
    "ascend,climb,drop",  # `drop` does not list it
    "climb,ascend,decrease,increase,rare",
    "damp,dry,soggy,wet",
    "decrease,climb,drop,increase",
    "drop,decrease",
    "dry,damp,wet",
    "felt,sofa",  # the past of another verb
    "increase,climb,decrease",
    "rare,climb",  # occurs too seldom
    "sofa,felt",
    "soggy,damp,two words",
    "wet,damp,dry",
]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Return the lines of the files made from the sources above."""
    spellings = SimpleNamespace(BRITISH_ENGLISH_SPELLINGS={"colour": "color"})
    monkeypatch.setitem(sys.modules, "breame.data.spelling_constants", spellings)
    wordnet, out = tmp_path / "wordnet", tmp_path / "out"
    for folder in (wordnet, out):
        folder.mkdir()
    for part, lines in DATA.items():
        senses = [
            f"{word} {part[0]} 1 0 1 1 {fields[0]}"
            for fields in map(str.split, lines)
            for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        ]
        for name, of in ((f"data.{part}", lines), (f"index.{part}", senses)):
            (wordnet / name).write_text("\n".join(["  1 terms", *of, ""]))
        (wordnet / f"{part}.exc").write_text("mice mouse\n" if part == "noun" else "")
    listed = {word for line in THESAURUS for word in line.split(",") if word.isalpha()}
    (wordnet / "cntlist.rev").write_text(
        "".join(
            f"{word}%1:00:00:: 1 {2 if word == SELDOM else 3}\n"
            for word in sorted({*listed, "couch", "seat", "mouse"})
        )
    )
    (tmp_path / "moby.txt").write_text("\n".join(THESAURUS) + "\n")
    sources = ("--wordnet", str(wordnet), "--moby", str(tmp_path / "moby.txt"))
    main([*sources, "--out", str(out)])
    return {
        file.name.removesuffix(".txt.gz"): gzip.decompress(file.read_bytes()).decode().splitlines()
        for file in out.iterdir()
    }


def test_associates_list_each_other_and_are_no_opposites(made: dict[str, list[str]]) -> None:
    """Left out: one-sided entries, seldom words, pasts, and words of opposite or like synsets."""
    assert made["associates"] == [
        "ascend climb", "climb increase", "damp soggy wet", "decrease drop",
    ]  # fmt: skip


def test_relatives_share_a_sense_or_a_wider_one(made: dict[str, list[str]]) -> None:
    """Opposites are none; what a satellite adjective is like is wider."""
    assert made["relatives"] == ["sofa couch", "sofa couch seat", "increase climb", "damp wet"]


def test_words_hold_spellings_forms_and_synonyms(made: dict[str, list[str]]) -> None:
    """Each line has a mark."""
    assert made["words"] == ["= colour color", "> mice mouse", "~ sofa couch", "~ increase climb"]

"""Make the lists of equivalent and of related words: `python -m training.groundedness.words`.

Reads the database of WordNet 3.0 (a folder with `data.noun`, `noun.exc`, `cntlist.rev`, as
Debian's `wordnet-base` installs it), Moby Thesaurus (`words.txt` of the npm package `moby` 1.1.2),
and the spellings of the package `breame`.
"""

import argparse
import gzip
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import product
from pathlib import Path

from evals.evaluators.groundedness.alignment import opposites
from evals.evaluators.groundedness.tokens import form_of
from evals.evaluators.groundedness.words import ASSOCIATES, FILE, RELATIVES, irregular_pasts

_PARTS = ("noun", "verb", "adj", "adv")
_MOST_SENSES = 3
"""Two words are synonyms if they share a sense that is among this many most frequent of both."""
_LEAST_COMMON = 3
"""The thesaurus lists so much that no word with fewer occurrences in WordNet's texts is kept: half
the file, and nine tenths of the exchanges in edited summaries that it explains."""
_SATELLITE = "s"
"""The kind of an adjective's synset that is like another one."""
_BRITISH = (
    (r"our(?=$|[a-z])", "or"), (r"is(?=e$|ed$|ing$|er$|ation$)", "iz"), (r"ys(?=e$)", "yz"),
    (r"re$", "er"), (r"ae|oe", "e"), (r"ogue$", "og"), (r"ence$", "ense"), (r"ll(?=[a-z])", "l"),
    (r"ey$", "ay"), (r"mme$", "m"), (r"ph", "f"),
)  # fmt: skip
"""Patterns of British spellings, and their American replacements."""
_CLOSED_LIST = """
second minute hour day week month year moment time foot pound yard ounce ton degree point
one two three ten hundred thousand million billion first last all some many most few more less
may might must can could should would will need have be do make get take let go come set put
have give man woman person people thing north south east west
"""
_CLOSED = frozenset(_CLOSED_LIST.split())
"""Units, quantities, modal and light verbs: WordNet's synonyms of these are often wrong."""

Links = Sequence[tuple[str, str]]
"""Pointers of a synset: a mark (`!` opposite, `@` wider, `&` alike), and the other synset."""


def main(argv: Sequence[str] | None = None) -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(prog="python -m training.groundedness.words")
    parser.add_argument("--wordnet", type=Path, required=True, help="folder with data.noun")
    parser.add_argument("--moby", type=Path, required=True, help="Moby Thesaurus")
    parser.add_argument("--out", type=Path, default=FILE.parent, help="folder for the files")
    args = parser.parse_args(argv)
    counts = _counts(args.wordnet)
    known = dict(_spellings())
    more = {
        b: a for b, a in _of_synsets(args.wordnet) if a not in known and b not in known.values()
    }
    spellings = {b: a for b, a in more.items() if a not in more} | known
    lines = [f"= {british} {american}" for british, american in sorted(spellings.items())]
    lines += [f"{mark} {form} {lemma}" for mark, form, lemma in _irregular(args.wordnet, counts)]
    lines += [f"~ {' '.join(group)}" for group in _groups(args.wordnet, counts)]
    _write(args.out / FILE.name, lines)
    _write(args.out / RELATIVES.name, map(" ".join, _relatives(args.wordnet, counts)))
    opposed = frozenset(_opposed(args.wordnet))
    _write(args.out / ASSOCIATES.name, map(" ".join, _associates(args.moby, counts, opposed)))


def _write(file: Path, lines: Iterable[str]) -> None:
    """Write each line once."""
    text = "\n".join(dict.fromkeys(lines)) + "\n"
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def _spellings() -> Iterator[tuple[str, str]]:
    found = import_module("breame.data.spelling_constants").BRITISH_ENGLISH_SPELLINGS
    for british, american in sorted(found.items()):
        if british.isalpha() and american.isalpha() and british.islower():
            yield british, american


def _of_synsets(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (British, American) spellings from WordNet's synsets, with regular endings."""
    for part in _PARTS:
        for _, words in _synsets(folder / f"data.{part}"):
            for british, american in _variants(words):
                yield british, american
                one, other = (w.removesuffix("e") for w in (british, american))
                if part in ("noun", "verb"):
                    yield f"{british}s", f"{american}s"
                if part == "verb":
                    yield from ((f"{one}{end}", f"{other}{end}") for end in ("ed", "ing"))


def _variants(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for british, american in product(words, words):
        if (
            british.isalpha()
            and british.islower()
            and any(
                british != american and re.sub(pattern, instead, british) == american
                for pattern, instead in _BRITISH
            )
        ):
            yield british, american


def _counts(folder: Path) -> Mapping[str, int]:
    """Return the count of each word in WordNet's tagged texts."""
    found: dict[str, int] = defaultdict(int)
    for line in (folder / "cntlist.rev").read_text().splitlines():
        key, _, count = line.split(" ")
        found[key.partition("%")[0]] += int(count)
    return found


def _irregular(folder: Path, counts: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
    """Yield irregular forms that are not also other words: past of verbs as `<`, others as `>`."""
    for part in _PARTS:
        for line in (folder / f"{part}.exc").read_text().splitlines():
            form, *lemmas = line.split()
            is_word = counts.get(form, 0) > 2
            if form.isalpha() and not is_word and counts.get(lemmas[0], 0) > 0:
                is_past = part == "verb" and not form.endswith(("ing", "s"))
                yield "<" if is_past else ">", form, lemmas[0]


def _groups(folder: Path, counts: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield groups of words that share a sense, which is frequent for each of them."""
    for part in _PARTS:
        senses = dict(_senses(folder / f"index.{part}"))
        for synset, words in _synsets(folder / f"data.{part}"):
            usual = [w for w in words if _is_usual(w, counts)]
            known = [w for w in usual if senses[w].index(synset) < _MOST_SENSES]
            if len(known) > 1:
                yield known


def _relatives(folder: Path, counts: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield groups of words that share any sense, or of which one's sense includes the other's."""
    for part in _PARTS:
        words = dict(_synsets(folder / f"data.{part}"))
        usual = {synset: [w for w in of if _is_usual(w, counts)] for synset, of in words.items()}
        for synset, others in _wider(folder / f"data.{part}"):
            own = usual[synset]
            for group in (own, *(own + usual[other] for other in others if own)):
                if len(set(group)) > 1:
                    yield list(dict.fromkeys(group))


def _associates(
    file: Path, counts: Mapping[str, int], opposed: Container[tuple[str, str]]
) -> Iterator[list[str]]:
    """Yield each word with the later ones: the thesaurus lists each of the two under the other.

    It lists opposites, too (`increase`, `decrease`); these are left out.
    """

    def is_opposite(one: str, other: str) -> bool:
        stems = form_of(one).stem, form_of(other).stem
        return (one, other) in opposed or stems[1] in opposites().get(stems[0], ())

    listed = dict[str, set[str]]()
    for line in file.read_text().splitlines():
        head, *others = line.split(",")
        listed.setdefault(head, set()).update(others)
    common = {
        head: {other for other in others if other != head and _is_common(other, counts)}
        for head, others in listed.items()
        if _is_common(head, counts)
    }
    for head in sorted(common):
        mutual = (o for o in common[head] if o > head and head in common.get(o, ()))
        if later := sorted(o for o in mutual if not is_opposite(head, o)):
            yield [head, *later]


def _opposed(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield both orders of words of opposite synsets, of adjectives also of those like them."""
    for part in _PARTS:
        file = folder / f"data.{part}"
        words, linked = dict(_synsets(file)), [(synset, links) for synset, _, links in _links(file)]
        like = {
            synset: [w for s in (synset, *_marked(links, "&")) for w in words[s]]
            for synset, links in linked
        }
        for synset, links in linked:
            for other in _marked(links, "!"):
                yield from product(like[synset], like[other])


def _wider(file: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each synset with those that include it, and an adjective's with the one it is like."""
    for synset, kind, links in _links(file):
        yield synset, _marked(links, "@&$" if kind == _SATELLITE else "@$")


def _links(file: Path) -> Iterator[tuple[str, str, Links]]:
    """Yield each synset with its kind and its pointers."""
    for fields in _entries(file):
        start = 5 + 2 * int(fields[3], 16)
        end = start + 4 * int(fields[start - 1])
        links = zip(fields[start:end:4], fields[start + 1 : end : 4], strict=True)
        yield fields[0], fields[2], list(links)


def _marked(links: Links, marks: str) -> list[str]:
    """Return the synsets of the pointers with these marks."""
    return [other for mark, other in links if mark in marks]


def _is_usual(word: str, counts: Mapping[str, int]) -> bool:
    return word.isalpha() and word.islower() and word not in _CLOSED and counts.get(word, 0) > 0


def _is_common(word: str, counts: Mapping[str, int]) -> bool:
    """Return whether a word is frequent, and no past of a verb that is another word in a list."""
    is_other = word in irregular_pasts()  # such as `felt`, a cloth
    return _is_usual(word, counts) and counts[word] >= _LEAST_COMMON and not is_other


def _senses(file: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each word with its synsets, the most frequent first."""
    for fields in _entries(file):
        yield fields[0], fields[-int(fields[2]) :]


def _synsets(file: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each synset's words."""
    for fields in _entries(file):
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        yield fields[0], [word.partition("(")[0] for word in words]


def _entries(file: Path) -> Iterator[list[str]]:
    """Yield the fields of each entry."""
    lines = file.read_text().splitlines()
    return (line.split() for line in lines if not line.startswith(" "))


if __name__ == "__main__":
    main()

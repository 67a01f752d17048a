"""Equivalent words: British spellings, irregular forms, synonyms, related words.

Synonyms, relatives and irregular forms are from WordNet, © 2006 Princeton University; associates
from Moby Thesaurus, in the public domain; spellings from the package `breame`, Apache-2.0. The
terms are in `words.LICENSE`; `training.groundedness.words` makes the files.
"""

import gzip
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "words.txt.gz"
RELATIVES = FILE.with_name("relatives.txt.gz")
"""Groups of related words, a line each; only pairs of answers need them."""
ASSOCIATES = FILE.with_name("associates.txt.gz")
"""A word a line, followed by later words: a thesaurus lists each of the two under the other."""
_CURATED = """
approximately about around roughly circa|usually generally typically commonly normally often
frequently often commonly|additionally furthermore moreover also besides|however nevertheless yet
therefore thus hence consequently|several various numerous multiple|numerous many
important significant essential crucial vital key|necessary essential needed required|need require
main primary principal chief major|type kind sort variety form|part portion section
area region zone|amount quantity|location place site|example instance|start begin commence
end finish conclude|show demonstrate indicate|say state mention note|give provide supply offer
get obtain acquire receive|use utilize employ|help assist aid|keep maintain retain|let allow permit
enable allow|choose select pick|want wish desire|buy purchase|try attempt|ask inquire
reply answer respond|happen occur|live reside|improve enhance|ensure guarantee
reduce decrease lessen lower|rise increase grow|create make produce|remove eliminate
recommend advise suggest|recommended advised|situate locate|name call|mostly mainly primarily
quick fast rapid swift|quickly rapidly fast swiftly|big large|little small|hard difficult tough
easy simple|sick ill|illness disease sickness|doctor physician|child kid|movie film|car automobile
job occupation work|home house|mistake error|method technique approach way
goal aim purpose objective|result outcome|benefit advantage|drawback disadvantage
company firm business|money cash|wide broad|entire whole|complete total entire
completely entirely totally fully wholly|nearly almost|slowly gradually|enough sufficient
specific particular certain|different distinct various diverse|wealthy rich
smart intelligent clever|typical usual common|frequent common|pupil student|contain include hold
include contain|like including|think believe|eat consume|construct build|look appear seem
near close|within inside|near nearby|cheque check|provided given|mentioned stated|correct right
shut close|gift present|begin start|additional extra further|because since|although though
possible feasible|short brief|long lengthy|small tiny|best ideal optimal|famous renowned
easily readily|easily simply|combine mix blend|symptom sign|employee worker
people individual person|medication medicine drug|earn make|include comprise|increase raise boost
raise rise|prevent avoid|prevent stop|information detail|country nation|teacher instructor
salary pay wage|step stage phase|find discover|occasionally sometimes|idea concept notion
problem issue|fix repair|speak talk|component part element|feature characteristic trait
attempt effort|decide determine|permit enable|examine inspect|verify check confirm
normal regular ordinary|unusual uncommon rare|enormous huge massive|accurate precise exact
useful helpful|dangerous hazardous risky|required mandatory compulsory|annual yearly
correctly properly|immediately instantly promptly|regularly routinely|initially originally
currently presently|previously formerly|primarily chiefly|directly straight|constantly continually
simultaneously concurrently|eventually ultimately finally|lastly finally|nutritious nourishing
physician clinician|attorney lawyer|consumer customer|dwelling residence home|garbage trash waste
photo picture image|total overall|safe secure|wash clean|show reveal display|exam test
explain describe|inform tell notify|place put|quick speedy|beneficial helpful useful
delicious tasty|difficult challenging|gather collect|divide separate split|stir mix
accomplish achieve attain|modify change alter|replace substitute|stop halt cease|launch start
route path|trip journey|rule regulation law|consequence result effect|impact effect influence
likelihood probability chance|capability ability capacity|client customer|treatment therapy
beverage drink|shop store|fee charge|earnings income|duty responsibility|opinion view
category class|process procedure|middle center|edge border boundary|aid help|cause trigger
suitable appropriate|beautiful lovely|damage harm|notable remarkable|distinguish differentiate
founded established started
"""
"""Common synonyms that WordNet lacks, or has only in rarer senses."""
_PASTS = {
    "made": "make", "built": "build", "written": "write", "chosen": "choose", "spoken": "speak",
    "paid": "pay", "forgotten": "forget", "gone": "go", "found": "find",
}  # fmt: skip
"""Irregular pasts that WordNet has also as words of their own."""


@cache
def _entries() -> list[tuple[str, list[str]]]:
    return [(line[0], line[2:].split(" ")) for line in _lines(FILE)]


def _lines(file: Path) -> list[str]:
    return gzip.decompress(file.read_bytes()).decode().splitlines()


@cache
def base_forms() -> dict[str, str]:
    """Return the American spellings of British words, and the lemmas of irregular forms."""
    return {words[0]: words[1] for mark, words in _entries() if mark in "=<>"} | _PASTS


@cache
def irregular_pasts() -> frozenset[str]:
    """Return the irregular past tenses and participles of verbs."""
    return frozenset(words[0] for mark, words in _entries() if mark == "<") | _PASTS.keys()


@cache
def known_stems(stem_of: Callable[[str], str]) -> frozenset[str]:
    """Return the stems of all words in the file."""
    return frozenset(stem_of(word) for _, words in _entries() for word in words)


def synonyms(stem_of: Callable[[str], str]) -> dict[str, tuple[str, ...]]:
    """Return each stem's synonyms, as stems, in usual senses of both words."""
    curated = [group.split() for group in _CURATED.strip().replace("\n", "|").split("|")]
    groups = (words for mark, words in _entries() if mark == "~")
    return _together([*_without_pasts(groups), *curated], stem_of)


def relatives(stem_of: Callable[[str], str]) -> dict[str, tuple[str, ...]]:
    """Return the stems that share any sense with each stem, or one that includes the other's."""
    return _together(_without_pasts(map(str.split, _lines(RELATIVES))), stem_of)


def associates(stem_of: Callable[[str], str]) -> dict[str, tuple[str, ...]]:
    """Return the stems that a thesaurus lists under each stem, and each stem under them."""
    lines = map(str.split, _lines(ASSOCIATES))
    return _together(([head, other] for head, *others in lines for other in others), stem_of)


def _without_pasts(groups: Iterable[list[str]]) -> Iterator[list[str]]:
    pasts = irregular_pasts()  # in a group these are other words, such as `felt`, a cloth
    return ([word for word in group if word not in pasts] for group in groups)


def _together(
    groups: Iterable[list[str]], stem_of: Callable[[str], str]
) -> dict[str, tuple[str, ...]]:
    """Return, for each stem, the others of its groups."""
    found: dict[str, set[str]] = defaultdict(set)
    for group in groups:
        stems = {stem_of(word) for word in group}
        for stem in stems:
            found[stem] |= stems - {stem}
    return {stem: tuple(sorted(others)) for stem, others in found.items() if others}

"""Detect an answer that switches to a script that the conversation does not use."""

import re
import unicodedata
from collections import Counter
from functools import lru_cache

_MIN_LETTERS = 8
_MIN_SHARE = 0.02
_ASKED = re.compile(
    r"translat|\bin (?:[A-Z][a-z]+ )?(?:Arabic|Armenian|Bengali|Bulgarian|Chinese|Georgian|Greek|"
    r"Hebrew|Hindi|Japanese|Korean|Mandarin|Persian|Russian|Serbian|Tamil|Thai|Ukrainian|Urdu)\b|"
    r"\b(?:Arabic|Chinese|Greek|Hebrew|Hindi|Japanese|Korean|Russian|Thai)\b",
    re.IGNORECASE,
)
_MERGED = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "FULLWIDTH": "LATIN", "HANGUL": "HANGUL"}
_MATHEMATICAL = frozenset({"GREEK", "MATHEMATICAL", "DOUBLE-STRUCK", "MICRO", "OHM", "MODIFIER"})


def switched_script(text: str, prompt: str) -> str | None:
    """Return a script of the answer that the prompt neither uses nor asks for.

    It must have at least eight letters and 2 % of the answer's letters. Greek counts as
    mathematics. A switch between languages of one script, such as English and German, is not found.
    """
    if _ASKED.search(prompt):
        return None
    scripts = _scripts(text)
    total, known = sum(scripts.values()), _scripts(prompt)
    for script, count in scripts.most_common():
        foreign = script not in known and script not in _MATHEMATICAL
        # If the prompt has no letters or was not recorded, the answer's main script is expected.
        main = not known and script == scripts.most_common(1)[0][0]
        if foreign and not main and count >= _MIN_LETTERS and count >= _MIN_SHARE * total:
            return f"{count} letters of {script.capitalize()}"
    return None


def _scripts(text: str) -> Counter[str]:
    return Counter(_script(character) for character in text if character.isalpha())


@lru_cache(maxsize=4096)
def _script(character: str) -> str:
    name = unicodedata.name(character, "UNKNOWN").split()[0]
    return _MERGED.get(name, name)

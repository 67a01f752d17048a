"""Separate refusals ("the passages do not say") from claims in the same sentence."""

import re
from itertools import pairwise

REFUSAL = re.compile(
    r"\b(?:(?:can(?:no|')t|cannot|could not|couldn't|unable to|not able to|not possible to)\s+"
    r"(?:\w+\s+){0,2}?(?:answer|find|determine|tell|say|help|provide|be\s+(?:answered|determined))"
    r"|(?:no|not enough|insufficient|lack of)\s+(?:\w+\s+){0,2}?"
    r"(?:information|mention|details?|data)"
    r"|(?:do|does|did)(?: not|n't)\s+(?:\w+ly\s+)?(?:contain|mention|provide|say|specify|state|know"
    r"|include|have|give|address|offer|discuss|answer|tell|explain|cover|describe|name|identify|reveal|clarify)"
    r"|never\s+(?:mentions?|says?|states?|specif(?:y|ies)|explains?|addresses|tells?)"
    r"|(?:is|are|was|were)(?: not|n't)\s+(?:\w+ly\s+)?(?:mentioned|provided|specified|stated|given"
    r"|available|included|discussed|answered|covered|described|addressed|enough information)"
    r"|(?:is|are)\s+silent(?=\s+(?:on|about|regarding|as to|here)\b|\s*[.,;])"
    r"|(?:(?<!.)|(?<=^\s)|(?<=[.!?…]\s))(?:silent|not (?:mentioned|stated"
    r"|specified|given|provided|covered|addressed))"
    r"(?=\s+(?:on|about|regarding|as to|here|there|in|by)\b|\s*[.,;…]|\s*$)"
    r"|(?:nothing|nowhere) in (?:the|these|this|any of the) (?:\w+ )?"
    r"(?:passages?|context|documents?|texts?|sources?|articles?)"
    r"|none of the (?:\w+ )?(?:passages|documents|texts|sources|articles)\s+"
    r"(?:mentions?|says?|states?|explains?|gives?))\b",
    re.IGNORECASE,
)
_JOINT = re.compile(
    r"(?:[,;:]|\s[-–—])\s+|(?<=\w)[–—](?=\w)|\s+(?=\()"
    r"|\s+(?=(?:but|yet|however|although|though|whereas|while)\s)",
    re.IGNORECASE,
)
_ADVERSATIVE = re.compile(
    r"(?:but|however|yet|still|nevertheless|nonetheless|instead|and|so|that said|in fact"
    r"|actually)\b[\s,]*",
    re.IGNORECASE,
)
_DEPENDENT = re.compile(
    r"(?:because|as|since|which|who|whom|whose|that|if|whether|based|about|such|or|nor|including"
    r"|like|especially|specifically|particularly|regarding|given|according|to|for|in|on|of|at|with"
    r"|without|by|from|see|e\.g|i\.e|therefore|thus|hence|i|we|please|unable|cannot|making|leaving)\b",
    re.IGNORECASE,
)
_CONCESSIVE = re.compile(r"(?:while|although|though|even though|despite)\b", re.IGNORECASE)
_ABOUT = re.compile(
    r"\b(?:passages?|context|documents?|texts?|sources?|notes?|articles?|information|question"
    r"|answer|provided|given|based|sorry|unfortunately)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"\(([^()]*)\)[\s.!?,;]*")
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|did|can|could|will|would|may|might|must|should"
    r"|[a-z]{3,}ed)\b|\b(?:it|he|she|they|we|there)(?:'|’)s?\b",
    re.IGNORECASE,
)
_FEWEST_WORDS = 3
"""A clause beside a refusal needs at least this many words to be a claim."""


def claims_beside(text: str, start: int, end: int) -> list[int]:
    """Return where to cut a sentence, so that a refusal and a claim become separate.

    "The passages do not say, but it was in Denmark" is cut before `but`.
    """
    if REFUSAL.search(text, start, end) is None:
        return []
    joints = [m.end() for m in _JOINT.finditer(text, start, end) if start < m.end() < end]
    bounds = [start, *joints, end]
    kinds = [
        _is_claim(text[a:b], text[start:end], is_first=at == 0)
        for at, (a, b) in enumerate(pairwise(bounds))
    ]
    cuts, last = [], kinds[0]
    for at, kind in zip(joints, kinds[1:], strict=True):
        if kind is not None and last is not None and kind != last:
            cuts.append(at)
        last = kind if kind is not None else last
    return cuts


def _is_claim(clause: str, sentence: str, *, is_first: bool) -> bool | None:
    """Return whether a clause is a claim; `None` if it continues the clause before it."""
    if REFUSAL.search(clause) is not None:
        return False
    if clause.startswith("("):
        return True if _is_aside(clause) else None
    lead = _ADVERSATIVE.match(clause)
    rest = clause[lead.end() :] if lead else clause
    if lead is None and (_DEPENDENT.match(rest) or (is_first and not _CONCESSIVE.match(sentence))):
        return False if is_first and _ABOUT.search(rest) else None
    return True if len(re.findall(r"\w+", rest)) >= _FEWEST_WORDS else None


def _is_aside(clause: str) -> bool:
    """Return whether a clause is a claim in parentheses, with a verb of its own."""
    match = _ASIDE.fullmatch(clause)
    if match is None or _DEPENDENT.match(match[1]) or _ABOUT.search(match[1]):
        return False
    return _VERB.search(match[1]) is not None

"""Separate refusals ("the passages do not say") from claims in the same sentence."""

import re
from collections.abc import Sequence
from itertools import pairwise

from evals.evaluators.groundedness.hearsay import HEARSAY
from evals.evaluators.groundedness.plain import spaced

REFUSAL = re.compile(
    spaced(
        r"\b(?:(?:can(?:no|')t|cannot|could not|couldn't|unable to|not able to|not possible to)\s+"
        r"(?:\w+\s+){0,2}?"
        r"(?:answer|find|determine|tell|say|help|provide|be\s+(?:answered|determined))"
        r"|(?:no|not enough|insufficient|lack of)\s+(?:\w+\s+){0,2}?"
        r"(?:information|mention|details?|data)"
        r"|(?:do|does|did)(?: not|n't)\s+(?:\w+ly\s+)?"
        r"(?:contain|mention|provide|say|specify|state|know|include|have|give|address|offer|discuss"
        r"|answer|tell|explain|cover|describe|name|identify|reveal|clarify)"
        r"|never\s+(?:mentions?|says?|states?|specif(?:y|ies)|explains?|addresses|tells?)"
        r"|(?:is|are|was|were)(?: not|n't)\s+(?:\w+ly\s+)?"
        r"(?:mentioned|provided|specified|stated|given|available|included|discussed|answered"
        r"|covered|described|addressed|enough information)"
        r"|(?:is|are)\s+silent(?=\s+(?:on|about|regarding|as to|here)\b|\s*[.,;])"
        r"|(?:(?<!.)|(?<=^\s)|(?<=[.!?…]\s))(?:silent|not (?:mentioned|stated"
        r"|specified|given|provided|covered|addressed))"
        r"(?=\s+(?:on|about|regarding|as to|here|there|in|by)\b|\s*[.,;…]|\s*$)"
        r"|(?:nothing|nowhere) in (?:the|these|this|any of the) (?:\w+ )?"
        r"(?:passages?|context|documents?|texts?|sources?|articles?)"
        r"|none of the (?:\w+ )?(?:passages|documents|texts|sources|articles)\s+"
        r"(?:mentions?|says?|states?|explains?|gives?))\b"
    ),
    re.IGNORECASE,
)
_JOINT = re.compile(
    r"(?:[,;:]|\s[-–—])\s+|(?<=\w)[–—](?=\w)|\s+(?=\()"
    r"|\s+(?=(?:but|yet|however|although|though|whereas|while)\s)"
    r"|\s+(?=and\s+(?:the|these|those|none of the)\s+(?:\w+\s+)?"
    r"(?:passages?|context|documents?|texts?|sources?|articles?)\b)",
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
_STATES_NOTHING = re.compile(
    r"\A(?:(?:it|this|that)(?:'s| is| was| remains)\s+(?:not|im?possible|hard|difficult)"
    r"|there|when|where|how|why|what|after|before|until|once|unless|beyond|besides|apart|aside|you"
    r"|i'm|no|none|nobody|nothing|the (?:exact|precise|specific|actual|full))\b"
    r"|\b(?:unknown|unclear|uncertain|unspecified|unnamed|mention(?:s|ed)?|discuss(?:es|ed)?"
    r"|list(?:s|ed)|cover(?:s|ed)|describe[sd])\b",
    re.IGNORECASE,
)
"""A first clause that says nothing but what the passages have or lack."""
_INTRODUCES = re.compile(
    r"(?:while|although|though|even though)\s+(?:i|we)\b"
    r"|not\s+(?:who|what|when|where|how|why|which)\b",
    re.IGNORECASE,
)
"""What the answerer would like to do, or what else the passages lack."""
_JOINED = re.compile(
    r"(?:but|yet|still|nevertheless|nonetheless|although|though|whereas|and|however)\b|\(",
    re.IGNORECASE,
)
"""Beginning of a clause before which a whole clause stands."""
_WITHOUT_SUBJECT = re.compile(
    r"(?:is|are|was|were|do|does|did|has|have|never|can|could)\b", re.IGNORECASE
)
"""Beginning of a refusal whose subject stands in the clause before it."""
_CONCESSIVE = re.compile(r"(?:while|although|though|even though|despite)\b", re.IGNORECASE)
_ABOUT = re.compile(
    r"\b(?:passages?|context|documents?|texts?|sources?|notes?|articles?|information|question"
    r"|answer|provided|given|based|sorry|unfortunately)\b",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"(?:it|he|she|they|these|those)\s+\w", re.IGNORECASE)
_ASIDE = re.compile(r"\(([^()]*)\)[\s.!?,;]*")
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|did|can|could|will|would|may|might|must|should"
    r"|[a-z]{3,}ed)\b|\b(?:it|he|she|they|we|there)'s?\b",
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
    clauses = [text[a:b] for a, b in pairwise(bounds)]
    kinds = [_is_claim(c, text[start:end], is_first=at == 0) for at, c in enumerate(clauses)]
    if kinds[0] is not True and _states_before_refusal(clauses):
        kinds[0] = True
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
    if _INTRODUCES.match(rest):
        return None
    if lead is None and (_DEPENDENT.match(rest) or (is_first and not _CONCESSIVE.match(sentence))):
        return False if is_first and _ABOUT.search(rest) else None
    return True if len(re.findall(r"\w+", rest)) >= _FEWEST_WORDS else None


def _states_before_refusal(clauses: Sequence[str]) -> bool:
    """Return whether the first clause claims something, and a refusal of its own follows.

    So it is in "Many say it is old, but the passages do not mention it", and not in "The year it
    was built, however, is not mentioned".
    """
    first, *others = clauses
    refusing = next((clause for clause in others if REFUSAL.search(clause)), None)
    opens = _DEPENDENT.match(first) or _INTRODUCES.match(first)
    if refusing is None or opens or REFUSAL.search(first):
        return False
    if HEARSAY.search(first):
        return True
    joined = _JOINED.match(refusing)
    is_subject = _WITHOUT_SUBJECT.match(refusing[joined.end() :].lstrip() if joined else refusing)
    has_verb = _PRONOUN.match(first) or _VERB.search(first)
    is_whole = joined is not None or first.rstrip()[-1:] in ";–—" or has_verb
    says_nothing = _ABOUT.search(first) or _STATES_NOTHING.search(first)
    is_long = len(re.findall(r"\w+", first)) >= _FEWEST_WORDS
    return bool(is_long and is_whole and not is_subject and not says_nothing)


def _is_aside(clause: str) -> bool:
    """Return whether a clause is a claim in parentheses, with a verb of its own."""
    match = _ASIDE.fullmatch(clause)
    if match is None or _DEPENDENT.match(match[1]) or _ABOUT.search(match[1]):
        return False
    return _VERB.search(match[1]) is not None

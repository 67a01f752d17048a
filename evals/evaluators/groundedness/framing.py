"""Find words of a sentence that only present its claim, such as "in summary" or "note that".

"According to the passages" presents a claim; "according to passage 2" is one of its own.
"""

import re
from typing import Final

from evals.evaluators.groundedness.plain import plain, spaced

_TEXTS = (
    r"(?:(?:the|these|those|this|all|both|provided|given|above|following|supplied|available"
    r"|retrieved|attached|two|three) )*"
    r"(?:passages?|texts?|contexts?|documents?|sources?|articles?|excerpts?|information"
    r"|(?:search )?results)\b(?!\s?#?\d)"
    r"(?: (?:provided|given|above|supplied|available|you (?:gave|provided|shared)))?"
)
_SAY = r"(?:says?|states?|mentions?|notes?|explains?|indicates?|tells? us)"
_SAID = r"(?:said|stated|mentioned|noted|explained|indicated|described|written)"
_LEADS: Final = re.compile(
    spaced(
        r"\s*(?:\(?\d{1,2}[.):])?(?:\W*(?:"
        r"(?:according to|based (?:solely |only |purely )?(?:up)?on|as per|per|from|in|going by)"
        rf" {_TEXTS}[,:]"
        rf"|from what (?:i|we) can (?:see|tell|find|gather) (?:in|from) {_TEXTS},"
        rf"|as {_SAID}(?: in| by)? {_TEXTS},|as (?:{_TEXTS}) {_SAY},"
        r"|(?:to (?:summarize|summarise|conclude|sum up|recap|be clear)|all in all|overall"
        r"|first(?:ly)?|second(?:ly)?|third(?:ly)?|finally|lastly|next|then|also|additionally"
        r"|furthermore|moreover|in addition|besides|in fact|indeed|basically"
        r"|however|yet|still|so|nevertheless|nonetheless|even so|conversely"
        r"|(?:in|by) contrast|on the other hand"
        r"|as a matter of fact|essentially|of course|interestingly|specifically|notably"
        r"|importantly|in particular"
        r"|(?:with )?that said|simply put|put simply"
        r"|(?:to answer|in (?:response|answer|reply) to|regarding) (?:your|the|this) question"
        r"|in (?:summary|short|conclusion|brief|sum|essence|other words|a nutshell)"
        r"|(?:to put it|put) (?:simply|briefly)|long story short|bottom line)[,:]"
        r"|(?:the|my|a) (?:(?:short|brief|quick|simple|direct) )?answer"
        r"(?: to (?:your|the|this) question)? is that\b"
        r"|(?:please )?(?:note|remember|keep in mind) that\b"
        r"|it(?: is|'s) (?:also )?(?:important to (?:note|mention)|worth (?:noting|mentioning))"
        r"(?: that)?\b"
        rf"|(?:it (?:is|has been) {_SAID}(?: in {_TEXTS})?|{_TEXTS} (?:also )?{_SAY}) that\b"
        r"|(?:but|and)\b(?! (?:for|not|only|also)\b)"
        r"))+\s*"
    ),
    re.IGNORECASE,
)
_TAIL: Final = re.compile(
    spaced(
        rf"[\s,(—–-](?:according to {_TEXTS}|based on {_TEXTS}|as (?:{_TEXTS}) {_SAY}"
        rf"|as {_SAID}(?: in| by)? {_TEXTS})\W*$"
    ),
    re.IGNORECASE,
)


def claim(sentence: str) -> tuple[int, int]:
    """Return the start and end of a sentence's claim; all of it if nothing else would be left."""
    text = plain(sentence)
    lead, tail = _LEADS.match(text), _TAIL.search(text)
    start = lead.end() if lead else 0
    end = tail.start() if tail else len(text)
    return (start, end) if re.search(r"\w", text[start:end]) else (0, len(text))

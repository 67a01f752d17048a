"""Detect sentences that claim nothing: greetings, offers of help, wishes.

The texts are those that `plain` returns, whose apostrophes are straight.
"""

import re

from evals.evaluators.groundedness.plain import spaced

_TRIGGER = re.compile(
    r"\blet (?:me|us) know\b|\b(?:i|we) hope\b|^hope (?:this|that|it)\b"
    r"|\bhope (?:this|that|it)(?: \w+)? (?:helps?|assists?)\b"
    r"|\bfeel free\b|\bhesitate\b|\b(?:happy|glad|pleased|delighted) to\b|\bwould you like\b"
    r"|\bdo you (?:have|need|want)\b|\bif you(?:'d| would| have| need| want|'re| are)\b"
    r"|\b(?:any|more|further|other|additional) (?:\w+ )?"
    r"(?:questions?|help|assistance|details|information)\b|^as an ai\b"
    r"|\bthank(?:s| you)\b|\bwelcome\b|^have a\b|\bgood luck\b|\banything else\b"
    r"|^(?:if anything|all the best|enjoy)\b"
    r"|\b(?:great|good|excellent|interesting) question\b|\b(?:here|available) to help\b"
    r"|^(?:sure|certainly|absolutely|of course|definitely|my pleasure|no problem|okay|ok|hello|hi"
    r"|hi there|best regards|kind regards|cheers|take care"
    r"|i trust|wishing you|should you|(?:i'm |i am )?glad i could)\b|\bplease ask\b|\bjust ask\b"
    r"|\breach out\b|\bhere(?:'s| is| are)\b",
    re.IGNORECASE,
)
_WORD_LIST = """
a able about above absolutely additional advice afternoon again ai all also always am amazing an and
answer answers any anyone anything anytime appreciate are as ask asking aspect aspects assist
assistance assistant assists at available back based be below best but by can care certainly cheers
clarification clarifications clarify clear concern concerns contact context could course curious
custom day deeper definitely delighted detail details did discuss dive do documents don't elaborate
else enjoy evening everything excellent expand explain explained explanation fantastic feedback feel
find follow following for forward found free from further future general get give given glad gladly
go good great guidance had happen happily happy have hello help helped helpful helping helps here
hesitate hi hope how i i'd i'll i'm if in info information inquiries inquiry insight interested
interesting is issue issues it it's just keep kind kindly know language let like look looking love
lovely luck make matter may me mention might model more morning my need needed needs nice no not now
of offer ok okay on only or other our out part parts pass passage passages pleasant please pleased
pleasure point points possible problem problems provide provided queries query question questions
reach regarding regards rely reply request require response rest return right say search see sense
service share should shout simply so some something soon specific subject summary support sure take
tell text than thank thanks that that's the them then there these they thing things this those
thoughts time to today topic topics touch trust unclear understand up us useful wait want way we
we're weekend welcome what what's whatever when whenever where whether which will wish wishes
wishing with wonderful word work works would you you'd you're you've your yours
"""
_WORDS = frozenset(_WORD_LIST.split())
_OFFER = re.compile(
    r"(?:please |just |and |so )?(?:let (?:me|us) know (?:if|whether) you"
    r"|(?:feel free|don't hesitate|do not hesitate) to (?:ask|reach|contact|let)"
    r"|would you like (?:me |us |to (?:know|hear|see))|do you want (?:me|us) to|shall i|should i)\b"
    r"[^\d,;:\n]{0,120}[.!?]*",
    re.IGNORECASE,
)
"""An offer or a question to the reader, which may name the subject but says nothing about it."""
_SOURCE_NOTE = re.compile(
    spaced(
        r"(?:please )?(?:(?:note|disclaimer|source)[:,]? )?(?:that )?(?:this|my|the above|the)"
        r" (?:answer|response|summary|information|explanation|reply)(?: above)?"
        r" (?:is|was|has been) (?:based|derived|drawn|taken|compiled)"
        r"(?: (?:solely|only|entirely|purely|strictly|exclusively|directly))?"
        r" (?:on|upon|from) (?:(?:the|these|those|all|provided|given|supplied|available) )*"
        r"(?:passages?|texts?|context|documents?|sources?|information|excerpts?|articles?)"
        r"(?: (?:provided|given|above|supplied|you (?:gave|provided)))?[.!]*"
    ),
    re.IGNORECASE,
)
"""A note that the answer comes from the passages."""
_LETTERS = re.compile(r"[^\W_]+(?:'[^\W\d_]+)*")
_SUFFIX = re.compile(r"'(?:s|d|ll|ve|re|m)$")
_BEGINNING = re.compile(r"\s+(?=[A-Z])")
_MAX_CHARACTERS = 200
"""Longest courtesy that is looked for after a sentence without a full stop."""
_ANNOUNCEMENT = re.compile(
    spaced(
        r"\s*(?:(?:sure|certainly|absolutely|of course|okay|ok)(?: thing)?[,!.:]*\s*)?"
        r"(?:based on [^:.!?\n,]{0,60},\s*)?"
        r"(?:here(?:'s| is| are)|below (?:is|are)|the following is)[^:.!?\n]{0,60}:\s*"
    ),
    re.IGNORECASE,
)
_HEADING = re.compile(
    spaced(
        r"[\s*_#]*(?:tl;?dr"
        r"|(?:(?:short|final|quick|direct|brief) )?(?:answer|summary|response|reply)"
        r"|in (?:short|summary|brief)|the answer is(?: as follows)?)[\s*_]*:[\s*_]*"
    ),
    re.IGNORECASE,
)
"""A label of the answer, such as `**Answer:**`."""
_INTERJECTION = re.compile(
    spaced(
        r"\s*(?:sure|certainly|absolutely|of course|definitely|no problem|(?:great|good) question"
        r"|happy to help|thanks for (?:asking|your question))\s*[!.]+\s+"
    ),
    re.IGNORECASE,
)
"""A courtesy before the answer, whose first word may be in lower case."""


def is_courtesy(sentence: str) -> bool:
    """Return whether a sentence is an offer, or has a courtesy's phrase and only its words."""
    text = " ".join(sentence.split()).strip(" *_-")
    words = _words(text)
    if _OFFER.fullmatch(text) or _SOURCE_NOTE.fullmatch(text):
        return True
    if not words or _TRIGGER.search(text) is None:
        return False
    return all(word in _WORDS for word in words)


def courtesy_behind(text: str, start: int, end: int) -> int | None:
    """Return where a courtesy begins at a sentence's end without a full stop before it, if any.

    None if the sentence is nothing but a courtesy.
    """
    if is_courtesy(text[start:end]):
        return None
    for match in _BEGINNING.finditer(text, max(start, end - _MAX_CHARACTERS), end):
        if is_courtesy(text[match.end() : end]):
            return match.end()
    return None


def _words(text: str) -> list[str]:
    words = _LETTERS.findall(text.lower())
    return [_SUFFIX.sub("", word) for word in words]


def announcement(text: str) -> int:
    """Return the length of a text's beginning that only announces the answer, or 0."""
    if (heading := _HEADING.match(text)) is not None:
        return heading.end()
    match = _ANNOUNCEMENT.match(text)
    if match is None:
        spoken = _INTERJECTION.match(text)
        return spoken.end() if spoken else 0
    words = _words(match.group())
    return match.end() if all(word in _WORDS for word in words) else 0

"""Detect sentences that claim nothing: greetings, offers of help, wishes.

The texts are those that `plain` returns, whose apostrophes are straight.
"""

import re

from evals.evaluators.groundedness.plain import spaced
from evals.evaluators.groundedness.refusals import REFUSAL

_TRIGGER = re.compile(
    r"\blet (?:me|us) know\b|\b(?:i|we) hope\b|^hope (?:this|that|it)\b"
    r"|\bhope (?:this|that|it)(?: \w+)? (?:helps?|assists?)\b"
    r"|\bfeel free\b|\bhesitate\b|\b(?:happy|glad|pleased|delighted) to\b|\bwould you like\b"
    r"|\bdo you (?:have|need|want)\b|\bif you(?:'d| would| have| need| want|'re| are)\b"
    r"|\b(?:any|more|further|other|additional) (?:\w+ )?"
    r"(?:questions?|help|assistance|details|information)\b|^as an ai\b"
    r"|\bthank(?:s| you)\b|\bwelcome\b|^have a\b|\bpleasure\b|\bappreciated\b|\bgood luck\b"
    r"|\banything else\b"
    r"|^(?:if anything|all the best|enjoy)\b"
    r"|\b(?:great|good|excellent|interesting) question\b|\b(?:here|available) to help\b"
    r"|^(?:sure|certainly|absolutely|of course|definitely|my pleasure|no problem|okay|ok|hello|hi"
    r"|hi there|best regards|kind regards|cheers|take care"
    r"|i trust|wishing you|should you|(?:i'm |i am )?glad i could)\b|\bplease ask\b|\bjust ask\b"
    r"|\breach out\b|\bhere(?:'s| is| are)\b|^(?:good question|yes)\b",
    re.IGNORECASE,
)
_WISH = re.compile(
    spaced(
        r"(?:(?:good|best of) luck(?: (?:with|on|in|to) [\w' ]{1,40})?"
        r"|(?:all the best|(?:best|kind|warm) (?:regards|wishes))"
        r"(?: (?:with|on|in|to|for) [\w' ]{1,40})?"
        r"|enjoy(?: (?:it|them|(?:your|the|every) \w+(?: \w+)?))?|(?:happy|merry) \w+(?:ing|s)"
        r"|stay (?:safe|healthy|well|tuned|warm|cool|curious)(?: (?:and|out) [\w ]{1,20})?"
        r"|take care(?: of yourself)?|cheers|ciao|(?:good)?bye|(?:talk|speak|chat) soon"
        r"|until next time"
        r"|see you (?:next time|soon|later|around)|(?:i wish|wishing) you [\w', ]{1,40}"
        r"|have (?:fun|a good one|an? (?:\w+ )?(?:day|evening|morning|afternoon|night|week|weekend"
        r"|time|trip)(?: ahead)?)|(?:yours )?sincerely|warmly|best|bon appetit|safe travels"
        r"|(?:and )?that's (?:it|all)(?: for now| i have)?|there you (?:go|have it)"
        r"|(?:(?:i|we) (?:really )?(?:hope|trust)|hope|hopefully) (?:this|that|these|it|you)\b"
        r"[\w', ]{0,80}"
        r"|that should do it|no (?:worries|problem)|anytime|keep me posted"
        r"|(?:thanks|thank you)(?: (?:again|so much|very much))?"
        r" for (?:(?:your|the|all) )?\w+(?: \w+)?)"
        r"(?:, [\w ]{1,20})?[.!, ]*"
    ),
    re.IGNORECASE,
)
"""A wish, thanks or a farewell."""
_WORD_LIST = """
a able about above absolutely additional advice afternoon again ai all also always am amazing an
and answer answers any anyone anything anytime appreciate appreciated are as ask asking aspect
aspects assist assistance assistant assists at available back based be below best brief briefly but
by can care certainly cheers clarification clarifications clarify clarity clear clears concern
concerns contact context could course curious custom day deeper definitely delighted detail details
did discuss discussion dive do documents don't elaborate else enjoy evening everything excellent
expand explain explained explanation explore fantastic feedback feel find follow following for
forward found free from fun further future general get give given glad gladly go good great
guidance had happen happily happy have hello help helped helpful helping helps here hesitate hi
hope hopefully how i i'd i'll i'm if in info information inquiries inquiry insight interested
interesting is isn't issue issues it it's just keep kind kindly know language learn let like look
looking love lovely luck make matter may me mention might model more morning my need needed needs
nice no not now of offer ok okay on only or other our out part parts pass passage passages pleasant
please pleased pleasure point points possible problem problems provide provided queries query
question questions reach regarding regards rely reply request require response rest return right
say search see sense service share shed should shout simply sincerely so some something soon
specific subject suggestion suggestions summary support sure take tell text than thank thanks that
that's the them then there these they thing things this thorough those thoughts time to today topic
topics touch trust unclear understand understanding up us useful wait want was wasn't way we we're
weekend welcome were what what's whatever when whenever where whether which will wish wishes
wishing with wonderful wondering word work works would yes you you'd you're you've your yours
"""
_WORDS = frozenset(_WORD_LIST.split())
_SPOKEN = re.compile(
    r"\b(?:i|i'm|i'd|i'll|i've|me|my|let's)\b|\banything else\b"
    r"|^(?:hopefully|hope|looking forward|ask away)\b",
    re.IGNORECASE,
)
"""In what the answerer says of itself."""
_SPOKEN_LIST = """
ahead answered away bit break breaks chat chatting checklist comes confusion conversation depth
disposal double doubt down endeavors example examples finding finds fine follow goes hear heard
important into journey keen learning longer makes mind missed mistakes next note overview posted
project ready remain research ride send short shorter solved sort sounds stay step steps studies
summarize table think thought together trying version walk
"""
_SPOKEN_WORDS = _WORDS.union(_SPOKEN_LIST.split())
_OFFER = re.compile(
    spaced(
        r"(?:(?:please |just |and |so )?"
        r"(?:(?:let|tell) (?:me|us) (?:know )?(?:if|whether|how|what|which)"
        r"|(?:feel free|don't hesitate|do not hesitate) to (?:ask|reach|contact|let|share)"
        r"|would you like (?:me |us |to (?:know|hear|see))|do you want (?:me|us) to"
        r"|shall i|should i"
        r"|if (?:you|any|anything|something|this|that|it|there)\b[^\d;:\n.]{0,80}"
        r" (?:i|i'm|i'll|i'd|let me|tell me|ask me)"
        r"|(?:i|i'm|i'll|i'd) [^\d;:\n.]{1,80} if (?:you|anything|something))\b"
        r"[^\d;:\n]{0,120}[.!?]*)"
    ),
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
_BEFORE = re.compile(r"[\W_]*")
_BEHIND = re.compile(r"[^\w.!?,]*")
_LETTERS = re.compile(r"[^\W_]+(?:'[^\W\d_]+)*")
_SUFFIX = re.compile(r"'(?:s|d|ll|ve|re|m)$")
_BEGINNING = re.compile(r"\s+(?=[A-HJ-Z]|I[a-z])|(?<![,;])(?<!\band)(?<!\bor)\s+(?=I\b)")
_QUESTION = re.compile(
    r"(?:would|do|does|shall|should|can|could|may|is|are|was|what|how|any|want|need)\b[^.!?]*\?\s*",
    re.IGNORECASE,
)
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
        r"|in (?:short|summary|brief|a nutshell)|bottom line|to answer your question"
        r"|the answer is(?: as follows)?)[ *_]*[:\n][\s*_]*"
    ),
    re.IGNORECASE,
)
"""A label of the answer, such as `**Answer:**`."""
_INTERJECTION = re.compile(
    spaced(
        r"\s*(?:sure|certainly|absolutely|of course|definitely|no problem|(?:great|good) question"
        r"|(?:yes, )?(?:i'd be |i am |i'm )?happy to help(?: (?:you )?with (?:that|this))?"
        r"|thanks for (?:asking|your question))\s*[!.—–-]+\s+"
    ),
    re.IGNORECASE,
)
"""A courtesy before the answer, whose first word may be in lower case."""


def is_courtesy(sentence: str) -> bool:
    """Return whether a sentence is an offer, or has a courtesy's phrase and only its words."""
    text = " ".join(sentence.split())
    text = _bare(_bare(text, _BEFORE)[::-1], _BEHIND)[::-1]
    if any(pattern.fullmatch(text) for pattern in (_OFFER, _SOURCE_NOTE, _WISH)):
        return True
    words = _words(text)
    if not words or REFUSAL.search(text):
        return False
    if _SPOKEN.search(text):
        return _SPOKEN_WORDS.issuperset(words)
    return _TRIGGER.search(text) is not None and _WORDS.issuperset(words)


def _bare(text: str, signs: re.Pattern[str]) -> str:
    """Return a text without the signs at its beginning."""
    match = signs.match(text)
    return text[match.end() :] if match else text


def courtesy_behind(text: str, start: int, end: int) -> int | None:
    """Return where a courtesy or a question begins behind a sentence without a full stop, if any.

    None if the sentence is nothing but a courtesy.
    """
    if is_courtesy(text[start:end]):
        return None
    for match in _BEGINNING.finditer(text, max(start, end - _MAX_CHARACTERS), end):
        behind = text[match.end() : end]
        if is_courtesy(behind) or _QUESTION.fullmatch(behind):
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

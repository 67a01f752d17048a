"""Edits that change the meaning in one place; each kind has rules for training and for testing."""

import random
import re
from collections.abc import Sequence

from evals.evaluators.groundedness.sentences import Sentence
from training.groundedness.edits.conversions import wrongly_converted
from training.groundedness.edits.places import (
    Edit,
    Rule,
    Source,
    a_match,
    after_a_match,
    claims,
    exchange,
    left_out,
    one_of,
    put,
    replaced,
)

_DETAILS_TRAINING = (
    " in the early 1990s", ", especially in winter,", " by a team of engineers",
    " for more than a decade", ", mostly in rural areas,", " under strict supervision",
    " at temperatures below freezing", ", according to a recent survey,", " near the coast",
    " with the support of local farmers", " twice a week", " before breakfast",
    " in almost every country", " without any side effects", ", which is rare,",
    " among older women", " for tax reasons", " due to a lack of funding", " by federal law",
    " in the second stage", " made of stainless steel", " during the night",
    " for children", " on Sundays", " in summer", " for beginners", " at home", " by request",
    " with milk", " for students",
)  # fmt: skip
_DETAILS_TEST = (
    " in southern Europe", ", usually on weekends,", " by volunteers",
    " since the Second World War",
    ", particularly among teenagers,", " with a special permit", " on a full stomach",
    ", as researchers at Oxford found,", " near major airports", " for a small fee",
    " every other month", " after a long trial period", " in liquid form", " using solar energy",
    ", which surprised many experts,", " for religious reasons", " at high altitude",
    " under military control", " made from recycled plastic", " at the request of the owner",
)  # fmt: skip
_IS = (
    r"\b(?:is|are|was|were|can|will|has been|have been|may)\s+"
    r"[a-z]{4,}(?:ed|en|ing|able|ful|ant)?\b"
)
_LAST_WORD = r"\b[a-z]{3,}(?=\.(?:\s|$))"
_BEGINNING = r"(?:^|(?<=[.!?] ))(?=(?:The|It|This|You|They|A|An|These|There) [a-z])"
_LEADS_TRAINING = (
    "In Norway, ", "For elderly patients, ", "After the flood, ", "At most universities, ",
    "With a few exceptions, ", "By contract, ", "On weekdays, ", "As of last month, ",
)  # fmt: skip
_DENIALS_TRAINING = ("It is wrong to say that ", "It is not the case that ", "Nobody thinks that ")
_VERB_BEFORE = r"\b(?:is|are|was|were|can|may|will|has|have|should|it|they|you)\b(?= [a-z]{3,})"
_NOUN = (
    r"\b(?:the|a|an|of|in|for|with|to)\s+[a-z]{4,}"
    r"(?=\s+(?:and|is|are|was|of|in|to|that|for)\b)"
)


def _detail_of_another(source: Source, rng: random.Random) -> Edit | None:
    """Insert a phrase from an answer on other passages."""
    phrases = re.findall(
        r"\b(?:in|by|for|with|from|at|during|after|due to) (?:[a-z]+ ){1,3}[a-z]{4,}(?=[.,])",
        source.other,
    )
    if not phrases:
        return None
    return after_a_match(_IS, [f" {rng.choice(phrases)}"])(source, rng)


def _detail_of_the_passages(source: Source, rng: random.Random) -> Edit | None:
    """Insert a phrase from the passages, where it is about something else."""
    phrases = re.findall(
        r"\b(?:in|by|for|with|from|at|during|after) (?:[A-Za-z]+ ){1,3}[a-z]{4,}(?=[.,])",
        source.context,
    )
    phrases = [p for p in phrases if p not in source.answer]
    if not phrases:
        return None
    return after_a_match(_IS, [f" {rng.choice(phrases)}"])(source, rng)


_MODALITY_TRAINING = {
    "may": ("will", "must", "always", "is bound to", "is sure to"),
    "can": ("must", "will always", "needs to", "is obliged to", "inevitably", "should"),
    "might": ("will", "is bound to", "certainly"), "could": ("will", "would have to"),
    "should": ("must", "can", "might like to", "is allowed to", "could", "will"),
    "usually": ("always", "hardly ever", "in all cases"), "often": ("always", "rarely",
    "at all times"), "sometimes": ("every time", "in no case"),
    "some": ("all", "no", "each and every"), "most": ("all", "few", "a handful of"),
    "many": ("all", "few", "next to no"), "several": ("all", "no", "the only"),
    "must": ("may", "can", "would ideally", "is welcome to"),
    "will": ("may", "should", "would perhaps", "can", "has a chance to"),
    "need to": ("can", "should ideally"), "have to": ("may", "can"),
    "only": ("also", "mostly", "among others"), "never": "sometimes",
    "required": ("recommended", "allowed", "desirable"),
    "recommended": ("required", "obligatory", "permitted"),
    "possible": ("certain", "unavoidable"), "possibly": "surely", "all": ("some", "most",
    "a number of"), "always": ("sometimes", "as a rule"), "generally": ("always", "at all times"),
    "typically": ("always", "in all cases"), "commonly": ("always", "hardly ever"),
    "frequently": ("always", "now and then"), "likely": ("certainly", "sure"),
    "every": ("almost every", "nearly every"), "both": ("neither of", "either"),
    "or": "and", "and": "or", "at least": ("at most", "exactly"), "up to": ("at least", "exactly"),
    "approximately": "exactly", "around": "well over",
}  # fmt: skip
_QUALIFIERS_TRAINING = (
    " only", " always", " usually", " rarely", " possibly", " inevitably", " mostly", " just",
)  # fmt: skip
_QUALIFIERS_TEST = (
    " solely", " exclusively", " only", " sometimes", " seldom", " probably", " certainly",
    " allegedly",
)  # fmt: skip
_MODALITY_TEST = {
    "may": ("must", "does definitely"), "might": ("has to", "must"), "can": ("has to",
    "cannot but"),
    "could": ("must", "is certain to"), "should": ("may", "is free to"), "some": "every",
    "several": "all", "most": "every one of the", "many": "hardly any", "sometimes": ("always",
    "never"),
    "usually": ("invariably", "only rarely"), "often": ("invariably", "seldom"),
    "typically": "in every case", "generally": "without exception", "commonly": "seldom",
    "possible": ("certain", "guaranteed"), "possibly": "definitely", "likely": "guaranteed",
    "recommended": ("mandatory", "optional"), "required": ("optional", "recommended"),
    "need to": ("may optionally",), "must": ("could",), "will": ("might",), "all": "a few",
    "always": "occasionally", "only": "mainly", "frequently": "rarely",
}  # fmt: skip
_TENSE_TRAINING = {
    "is": ("used to be", "was once"), "are": ("used to be", "were once"), "has": ("once had",
    "had"),
    "have": ("once had", "had"), "can": "could once", "was": "is", "were": "are",
    "uses": "used to use", "contains": "used to contain", "includes": "used to include",
}  # fmt: skip
_TENSE_TEST = {
    "is": ("was formerly", "will one day be", "was", "has ceased to be"),
    "are": ("were formerly", "will soon be", "were", "have ceased to be"),
    "has": ("no longer has", "formerly had"), "have": ("formerly had", "will have"),
    "was": ("will be", "is still"), "were": ("will be", "are still"),
    "provides": "formerly provided", "includes": "formerly included", "uses": "formerly used",
    "helps": "used to help", "offers": "used to offer", "requires": "once required",
    "contains": "once contained", "causes": "once caused", "can": "was once able to",
}  # fmt: skip
_VERB = r"\b(it|he|she|which|who) ([a-z]{3,}[a-rt-z])s\b"
_TENSES_TRAINING = (
    (_VERB, r"\1 will \2"), (_VERB, r"\1 used to \2"),
    (r"\b(contain|help|need|involv|requir|work|start|play|allow|produc|caus|offer)e?s\b", r"\1ed"),
    (r"\b(it|he|she|they|who|which) ([a-z]{3,}[^\Waeiou])ed\b", r"\1 \2s"),
    (r"\b(it|he|she|they|who|which) (?:had|has)\b", r"\1 will have"),
)  # fmt: skip
_TENSES_TEST = (
    (r"\b(includ|provid|happen|remain|depend|affect|describ|protect)e?s\b", r"\1ed"),
    (r"\b(include|provide|happen|remain|depend|occur|describe|protect)s\b", r"will \1"),
)
_LEFT_OUT_TRAINING = (
    r"\s*,?\s+(?:if|unless|when|while|until|provided that|as long as)\s+[^,.;:]{8,80}(?=[.,;])",
    r"\b(?:if|when|unless|once)\s+[^,.;:]{6,80},\s*",
    r"\s*,?\s+(?:before|after|without|with|for|in)\s+[^,.;:]{10,60}(?=[.,;])",
    r"\b(?:only|at least|up to|no more than|mainly|partly|often|about|mostly)\s+",
)
_LEFT_OUT_TEST = (
    (
        r"\s*,?\s+(?:whenever|except|depending on|in case|in the case of|during|despite"
        r"|only when|only if|even if|within|because|since|although|whereas)"
        r"\s+[^,.;:]{8,80}(?=[.,;])"
    ),
    (
        r"\b(?:before|after|during|in case|in the case of|depending on|for people|for those)\s+"
        r"[^,.;:]{6,80},\s*"
    ),
    (
        r"\b(?:usually|typically|generally|sometimes|approximately|around|nearly|almost"
        r"|primarily|less than|more than|a minimum of|a maximum of)\s+"
    ),
)
_UNITS_TRAINING = {
    "minutes": ("hours", "seconds"), "hours": ("days", "minutes"), "days": ("weeks", "hours"),
    "weeks": ("months", "days"), "months": ("years", "weeks"), "years": ("months", "days"),
    "miles": "kilometers", "feet": ("meters", "inches"), "inches": ("centimeters", "feet"),
    "pounds": ("ounces", "kilograms"), "percent": "percentage points", "grams": "milligrams",
    "million": "billion", "degrees fahrenheit": "degrees celsius",
}  # fmt: skip
_UNITS_TEST = {
    "minutes": ("days", "weeks"), "hours": ("weeks", "seconds"), "days": ("months", "minutes"),
    "weeks": ("years", "hours"), "months": ("days", "decades"), "years": ("decades", "weeks"),
    "miles": ("yards", "metres"), "feet": ("yards", "miles"), "inches": ("millimeters", "yards"),
    "pounds": ("grams", "tons"), "ounces": ("pounds", "grams"), "cups": ("tablespoons", "quarts"),
    "tablespoons": ("cups", "teaspoons"), "teaspoons": ("cups", "tablespoons"),
    "milligrams": "grams", "grams": "kilograms", "mg": ("g", "mcg"), "calories": "joules",
    "dollars": ("euros", "pounds"), "cents": "dollars", "million": "thousand",
    "billion": "million", "thousand": "million", "gallons": ("liters", "pints"),
    "kilometers": "miles", "meters": "feet", "hour": "minute", "day": "month", "week": "year",
    "year": "month", "month": "week",
}  # fmt: skip
_AFTER_NUMBER = r"(?<=[0-9] )"


def _currency(others: str) -> Rule:
    def rule(source: Source, rng: random.Random) -> Edit | None:
        text = source.answer
        found = [
            m for s in claims(text) for m in re.finditer(r"\$(?=\d)", text[: s.end])
            if m.start() >= s.start
        ]  # fmt: skip
        return put(text, *rng.choice(found).span(), rng.choice(others)) if found else None

    return rule


def _degrees(source: Source, rng: random.Random) -> Edit | None:
    text = source.answer
    found = [
        m for s in claims(text) for m in re.finditer(r"(?<=°)\s?[FC]\b|(?<=\d)%", text[: s.end])
        if m.start() >= s.start
    ]  # fmt: skip
    if not found:
        return None
    match = rng.choice(found)
    other = {"F": "C", "C": "F", "%": " per mille"}[match.group().strip()]
    return put(text, *match.span(), other)


_NOT = (
    r"\s+(?:not|never)\b(?!\s+only)",
    r"(?<!ca)(?<!wo)n['’]t\b",
    r"\bno\s+(?=[a-z]{3})",
    r"\bdo(?:es)? not\s+(?=[a-z]{3})",
)
_NOT_TEST = (
    r"\s+(?:not|never)\b(?!\s+only)",
    r"\bno\s+(?=[a-z])",
    r"(?<=do|es|id|re|as|is)n['’]t\b",
)
_WITHOUT = {
    "without": "with",
    "unable": "able",
    "none": "all",
    "cannot": "can",
    "neither": "both",
    "can't": "can",
    "won't": "will",
    "unlikely": "likely",
    "impossible": "possible",
    "no": ("some", "a"),
    "never": ("always", "often"),
    "rarely": "often",
    "nor": "and",
    "unclear": "clear",
    "unknown": "known",
    "avoid": ("use", "choose"),
    "instead of": "as well as",
}
_TURNED_TEST = (
    (r"\bdoes(?: not|n['’]t) ([a-z]{3,}[a-rt-xz])\b", r"\1s"),
    (r"\bdid(?: not|n['’]t) ([a-z]{3,}[a-df-xz])\b", r"\1ed"),
    (r"\bno longer\b", "still"),
    (r"\b(is|are|was|were|can|could|should|will|would)(?: not|n['’]t)\b", r"\1 indeed"),
    (r"\bnot (?:a|an|the)\b", "the"),
    (r"\bhardly\b", "readily"),
)
_DENIED_VERBS_TRAINING = (
    "contain|help|need|require|involve|allow|mean|refer|depend|come|give|take|say|live"
)
_DENIED_VERBS_TEST = (
    "provide|include|cause|make|increase|reduce|offer|describe|show|suggest|affect|support"
)
_DENIED_TRAINING = (
    (rf"\b({_DENIED_VERBS_TRAINING})s\b(?= [a-z])", r"does not \1"),
    (r"\b(they|you|we|people) (have|need|want|use|get|make|find|work|look|feel)\b",
     r"\1 do not \2"),
    (r"\b(it|he|she|they|who|which) ([a-z]{3,}[^\Waeiou])ed\b", r"\1 did not \2"),
    (r"\b(?:has|have|had) (?:a|an|the)\b", "has no"),
)  # fmt: skip
_DENIED_TEST = (
    (rf"\b({_DENIED_VERBS_TEST})s\b(?= [a-z])", r"does not \1"),
    (rf"\b({_DENIED_VERBS_TEST})s\b(?= [a-z])", r"fails to \1"),
    (r"\b(they|you|we|people) (enjoy|see|know|think|take|eat|feel|become|live)\b",
     r"\1 don't \2"),
    (r"\b(became|began|won|made|went|took|came|gave)\b", r"never \1"),
)  # fmt: skip
_ADVICE = re.compile(
    r"(?:^|(?<=[.:] ))(?!The|This|That|These|Those|For|From|With|And|But|They|You|Some)"
    r"[A-Z][a-z]{2,}(?= (?:the|a|an|your|it|them|all|any|with|in|on|to)\b)",
    re.MULTILINE,
)
"""A word that begins a sentence and is likely a verb that tells what to do."""


def _forbidden(words: Sequence[str]) -> Rule:
    """Return a rule that turns what a sentence tells to do into what it forbids."""
    return replaced(_ADVICE, lambda match, rng: f"{rng.choice(words)} {match.group().lower()}")


_DENYING_TRAINING = {
    "with": "without", "able": "unable", "can": ("cannot", "can't"), "will": ("won't",),
    "always": "never", "often": "rarely", "likely": "unlikely", "possible": "impossible",
    "clear": "unclear", "known": "unknown", "both": "neither", "use": "avoid",
    "all": "none of the", "some": "no", "any": "no", "a": "no",
}  # fmt: skip
"""Words that deny, for those that they deny: `_WITHOUT` the other way round."""
_DENYING_TEST = {
    "able": "not able", "enough": "not enough", "necessary": "unnecessary", "safe": "unsafe",
    "many": "no", "every": "no", "usually": "hardly ever", "including": "excluding",
    "important": "unimportant", "common": "uncommon", "even": "not even", "healthy": "unhealthy",
}  # fmt: skip
_FORBIDDING_TRAINING = ("Do not", "Never")
_FORBIDDING_TEST = ("You must not", "Don't", "It is wrong to")
_PUT_IN = one_of(
    after_a_match(r"\b(?:with|has|have|had|of)\b(?= [a-z])", (" no",)),
    after_a_match(r"\b(?:and|or|but|to)\b(?= [a-z])", (" not",)),
)
"""Negations elsewhere than behind an auxiliary."""


def _turned(pattern: str, instead: str) -> Rule:
    """Return a rule that replaces one match of a pattern by its expanded template."""
    return replaced(re.compile(pattern), lambda match, _: match.expand(instead))


_PASSAGE = re.compile(r"\b(passage)s?\s+(\d{1,2})\b", re.IGNORECASE)


def _wrong_passage(source: Source, rng: random.Random) -> Edit | None:
    """Change the number of a cited passage."""
    text = source.answer
    held = [n for n in (1, 2, 3) if f"passage {n}:" in source.context]
    found = [
        m
        for s in claims(text)
        for m in _PASSAGE.finditer(text, s.start, s.end)
        if len(s.attributed_to) == 1
    ]
    if not found or len(held) < 2:
        return None
    match = rng.choice(found)
    other = rng.choice([n for n in held if str(n) != match[2]])
    return put(text, match.start(2), match.end(2), str(other))


def _names(sentence: Sentence) -> list[tuple[int, int]]:
    return [
        (t.start, t.end)
        for t in sentence.tokens[1:]
        if t.is_name and t.form.is_content and not t.form.is_number and t.form.stem != "passag"
    ]


def _other_name(source: Source, rng: random.Random) -> Edit | None:
    """Replace a name by another name from the same passages."""
    text = source.answer
    ours = [span for s in claims(text) for span in _names(s)]
    theirs = {source.context[a:b] for s in claims(source.context) for a, b in _names(s)}
    if not ours:
        return None
    start, end = rng.choice(ours)
    others = sorted(n for n in theirs if n.lower() != text[start:end].lower() and len(n) > 2)
    return put(text, start, end, rng.choice(others)) if others else None


_NOUN_ALONE = re.compile(
    r"(?:(?<=\bthe )|(?<=\bof )|(?<=\bin )|(?<=\bby )|(?<=\bfor ))"
    r"(?!passage|text|following|question)[a-z]{4,}"
    r"(?=(?: (?:of|is|are|and|was|were|to|in|that|for|by)\b)|[.,])"
)


def _other_noun(source: Source, rng: random.Random) -> Edit | None:
    """Replace a noun by another one from the same passages."""
    text = source.answer
    match = a_match(_NOUN_ALONE, text, rng)
    if match is None:
        return None
    theirs = {m.group() for m in _NOUN_ALONE.finditer(source.context)}
    others = sorted(noun for noun in theirs if noun[:4] != match.group()[:4])
    return put(text, *match.span(), rng.choice(others)) if others else None


_HE_AND_SHE = {"he": "she", "she": "he", "him": "her", "himself": "herself"}
_HIS_AND_HER = {"his": "her", "her": "his", "hers": "his"}


def _number(source: Source, rng: random.Random) -> Edit | None:
    text = source.answer
    found = [
        m for s in claims(text) for m in re.finditer(r"\d+", text[: s.end])
        if m.start() >= s.tokens[0].start and m.group() in source.context
    ]  # fmt: skip
    if not found:
        return None
    match = rng.choice(found)
    value = int(match.group()[:9])
    other = value + rng.choice((1, 2, 3, 7, 10, -1, -2)) if value > 3 else value + 3
    return put(text, *match.span(), str(other))


_NEGATE = after_a_match(
    r"\b(?:is|are|was|were|can|could|will|would|should|may|might)\b(?!\s+(?:not|never)|n't)",
    [" not", " never"],
)
_OPPOSITES_TEST = {
    "increase": "decrease", "increases": "decreases", "increased": "decreased", "more": "less",
    "higher": "lower", "high": "low", "larger": "smaller", "before": "after", "after": "before",
    "first": "last", "long": "short", "hot": "cold", "warm": "cool", "best": "worst",
    "safe": "dangerous", "strong": "weak", "early": "late", "easy": "difficult", "old": "new",
    "reduce": "increase", "reduces": "increases", "good": "bad", "positive": "negative",
    "left": "right", "north": "south", "east": "west", "minimum": "maximum", "large": "small",
}  # fmt: skip


def _appended(source: Source, rng: random.Random) -> Edit | None:
    """Append a sentence from an answer on other passages."""
    others = [s.text for s in claims(source.other) if len(s.tokens) >= 6]
    text = source.answer
    return put(text, len(text), len(text), f" {rng.choice(others)}") if others else None


TRAINING: dict[str, Rule] = {
    "detail": one_of(
        after_a_match(_IS, _DETAILS_TRAINING),
        after_a_match(_NOUN, _DETAILS_TRAINING),
        after_a_match(_LAST_WORD, _DETAILS_TRAINING),
        after_a_match(_BEGINNING, _LEADS_TRAINING),
        _detail_of_another,
        _detail_of_the_passages,
    ),
    "modality": exchange(_MODALITY_TRAINING),
    "qualifier put in": after_a_match(_VERB_BEFORE, _QUALIFIERS_TRAINING),
    "tense": exchange(_TENSE_TRAINING),
    "tense of a verb": one_of(*(_turned(*pair) for pair in _TENSES_TRAINING)),
    "condition left out": one_of(*map(left_out, _LEFT_OUT_TRAINING)),
    "wrong passage": _wrong_passage,
    "unit": one_of(exchange(_UNITS_TRAINING), _currency("£€"), _degrees),
    "negation left out": one_of(*map(left_out, _NOT)),
    "denying word left out": exchange(_WITHOUT),
    "negation put in": _PUT_IN,
    "denying word put in": exchange(_DENYING_TRAINING),
    "advice turned into a ban": _forbidden(_FORBIDDING_TRAINING),
    "verb denied": one_of(
        *(_turned(*pair) for pair in _DENIED_TRAINING),
        after_a_match(_BEGINNING, _DENIALS_TRAINING),
    ),
    "name": _other_name,
    "noun": _other_noun,
    "he or she": exchange(_HE_AND_SHE),
}
"""Rules by kind."""
HELD_OUT: dict[str, Rule] = {
    "detail inserted": one_of(
        after_a_match(_IS, _DETAILS_TEST), after_a_match(_NOUN, _DETAILS_TEST),
    ),
    "modality": exchange(_MODALITY_TEST),
    "qualifier put in": after_a_match(_VERB_BEFORE, _QUALIFIERS_TEST),
    "tense": exchange(_TENSE_TEST),
    "tense of a verb": one_of(*(_turned(*pair) for pair in _TENSES_TEST)),
    "condition or qualifier left out": one_of(*map(left_out, _LEFT_OUT_TEST)),
    "wrong passage": _wrong_passage,
    "unit": one_of(exchange(_UNITS_TEST), _currency("€¥"), _degrees),
    "negation left out": one_of(*map(left_out, _NOT_TEST)),
    "negation turned into a statement": one_of(*(_turned(*pair) for pair in _TURNED_TEST)),
    "verb denied": one_of(*(_turned(*pair) for pair in _DENIED_TEST)),
    "name of the same passages": _other_name,
    "noun of the same passages": _other_noun,
    "his or her": exchange(_HIS_AND_HER),
    "number": _number,
    "wrong conversion": wrongly_converted,
    "negation added": _NEGATE,
    "opposite": exchange(_OPPOSITES_TEST),
    "sentence appended": _appended,
    "advice turned into a ban": _forbidden(_FORBIDDING_TEST),
    "denying word put in": exchange(_DENYING_TEST),
}  # fmt: skip
"""Rules by kind that training does not use, except those without a choice of words."""

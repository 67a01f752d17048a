"""Edits that keep the meaning; each kind has rules for training and others for testing."""

import random
import re

from training.groundedness.edits import acronyms
from training.groundedness.edits.conversions import converted
from training.groundedness.edits.places import (
    Edit,
    Rule,
    Source,
    claims,
    exchange,
    exchange_all,
    one_of,
    put,
)


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split())


_UK_TRAINING = _pairs("""
color=colour colors=colours flavor=flavour flavors=flavours neighbor=neighbour neighbors=neighbours
center=centre centers=centres organize=organise organized=organised organization=organisation
realize=realise realized=realised recognize=recognise recognized=recognised
traveling=travelling traveled=travelled canceled=cancelled program=programme programs=programmes
defense=defence license=licence gray=grey behavior=behaviour behaviors=behaviours fiber=fibre
""")
_UK_TEST = _pairs("""
favorite=favourite honor=honour labor=labour harbor=harbour rumor=rumour odor=odour vapor=vapour
humor=humour tumor=tumour savory=savoury meter=metre meters=metres liter=litre liters=litres
theater=theatre caliber=calibre kilometers=kilometres centimeters=centimetres apologize=apologise
analyze=analyse analyzed=analysed characterized=characterised specialized=specialised
specialize=specialise emphasize=emphasise emphasizes=emphasises minimize=minimise
minimizing=minimising maximize=maximise categorized=categorised stabilize=stabilise
summarize=summarise summarized=summarised utilize=utilise utilized=utilised utilizing=utilising
utilizes=utilises pasteurized=pasteurised sterilized=sterilised moisturizer=moisturiser
fertilizer=fertiliser customize=customise authorized=authorised hospitalized=hospitalised
prioritize=prioritise optimize=optimise visualize=visualise standardized=standardised
immunization=immunisation oxidized=oxidised crystallized=crystallised labeled=labelled
labeling=labelling modeling=modelling modeled=modelled fueled=fuelled signaling=signalling
catalog=catalogue dialog=dialogue anesthesia=anaesthesia anemia=anaemia estrogen=oestrogen
pediatric=paediatric diarrhea=diarrhoea esophagus=oesophagus hemoglobin=haemoglobin
leukemia=leukaemia orthopedic=orthopaedic aluminum=aluminium skillful=skilful fulfill=fulfil
enrollment=enrolment offense=offence pretense=pretence check=cheque aging=ageing
jewelry=jewellery plow=plough tire=tyre mold=mould molds=moulds molded=moulded cozy=cosy
whiskey=whisky yogurt=yoghurt percent=per-cent practicing=practising airplane=aeroplane
judgment=judgement acknowledgment=acknowledgement maneuver=manoeuvre counselor=counsellor
colored=coloured colorful=colourful flavored=flavoured flavoring=flavouring favorable=favourable
neighborhood=neighbourhood organizations=organisations organizing=organising realizes=realises
""")
_SYNONYMS_TRAINING = {
    "help": "assist", "helps": "assists", "show": "demonstrate", "shows": "demonstrates",
    "use": "employ", "used": "employed", "important": "significant", "get": "obtain",
    "often": "frequently", "usually": "normally", "quickly": "rapidly", "buy": "purchase",
    "many": "numerous", "about": "approximately", "also": "additionally", "such as": "like",
    "however": "nevertheless", "including": "such as", "start": "begin", "keep": "maintain",
    "need": "require", "needs": "requires", "allow": "permit", "allows": "permits",
    "mentioned": "stated", "provided": "given", "based on": "according to",
}  # fmt: skip
_SYNONYMS_TEST = {
    "large": "big", "begin": "start", "begins": "starts", "began": "started", "big": "large",
    "small": "little", "fast": "quick", "quick": "rapid", "easy": "simple", "hard": "difficult",
    "difficult": "hard", "smart": "intelligent", "rich": "wealthy", "sick": "ill",
    "entire": "whole",
    "whole": "entire", "main": "primary", "primary": "main", "various": "different",
    "common": "frequent", "typical": "usual", "beginning": "start", "error": "mistake",
    "children": "kids", "physician": "doctor", "doctor": "physician", "car": "automobile",
    "movie": "film", "house": "home", "job": "occupation", "area": "region", "region": "area",
    "method": "technique", "type": "kind", "types": "kinds", "kind": "type", "kinds": "types",
    "purpose": "aim", "amount": "quantity", "result": "outcome", "results": "outcomes",
    "location": "place", "part": "portion", "parts": "portions", "end": "finish",
    "ends": "finishes", "build": "construct", "built": "constructed", "choose": "select",
    "happens": "occurs", "occur": "happen", "occurs": "happens", "contains": "holds",
    "increase": "rise", "decrease": "reduce", "reduce": "lessen", "improve": "enhance",
    "create": "make", "created": "made", "make": "create", "remove": "take away",
    "ensure": "guarantee", "ask": "inquire", "answer": "reply", "try": "attempt",
    "want": "wish", "think": "believe", "say": "state", "said": "stated", "called": "named",
    "located": "situated", "commonly": "frequently", "generally": "usually",
    "typically": "usually", "frequently": "often", "approximately": "roughly",
    "additionally": "furthermore", "furthermore": "moreover", "therefore": "thus",
    "overall": "all in all", "several": "a number of", "wide": "broad", "necessary": "needed",
    "essential": "crucial", "sufficient": "enough", "enough": "sufficient",
    "entirely": "completely",
    "completely": "totally", "slowly": "gradually", "nearly": "almost", "almost": "nearly",
    "rapidly": "quickly", "assist": "help", "obtain": "get", "purchase": "buy",
    "require": "need", "requires": "needs", "permit": "allow", "demonstrate": "show",
    "utilize": "use", "commence": "start", "conclude": "end", "select": "choose",
    "reside": "live", "consume": "eat", "recommended": "advised", "different": "distinct",
    "specific": "particular", "particular": "specific", "example": "instance",
    "benefits": "advantages", "benefit": "advantage", "disease": "illness", "illness": "sickness",
    "student": "pupil", "company": "firm", "companies": "firms", "money": "cash",
}  # fmt: skip
_CONTRACTIONS_TRAINING = {
    "it is": "it's", "is not": "isn't", "do not": "don't", "does not": "doesn't",
    "are not": "aren't", "cannot": "can't", "there is": "there's",
}  # fmt: skip
_CONTRACTIONS_TEST = {
    "that is": "that's", "was not": "wasn't", "were not": "weren't", "did not": "didn't",
    "has not": "hasn't", "have not": "haven't", "should not": "shouldn't", "would not": "wouldn't",
    "could not": "couldn't", "will not": "won't", "they are": "they're", "you are": "you're",
    "we are": "we're", "you will": "you'll", "it will": "it'll", "you have": "you've",
    "they have": "they've", "can not": "can't", "he is": "he's", "she is": "she's",
    "it is": "it's", "is not": "isn't", "do not": "don't", "does not": "doesn't",
    "are not": "aren't", "cannot": "can't",
}  # fmt: skip
_ENDINGS_TRAINING = (
    "I hope this helps!", "Let me know if you have any other questions.",
    "Feel free to ask if you need more details.", "Is there anything else I can help you with?",
    "If you would like further information, just ask.",
)  # fmt: skip
_ENDINGS_TEST = (
    "Please let me know if you have any further questions.",
    "Please let me know if you need anything else!", "Hope that helps!",
    "Don't hesitate to reach out if you need more help.", "Have a great day!",
    "If you have any more questions, I'm happy to help.", "I'd be glad to clarify anything above.",
    "Thanks for asking!", "Would you like me to explain any of this further?",
    "Please feel free to ask for clarification.", "Happy to provide more details if useful.",
    "I hope this gives you a good starting point!", "Let me know how you get on.",
    "If any of this is unclear, tell me and I'll rephrase it.", "Have a lovely weekend!",
    "I can put this into a table if you'd like.", "Good luck with everything!",
    "Is there a particular part you want to explore?", "Thanks again for reaching out.",
    "That's everything I could find.", "Would a summary be useful?", "Enjoy your day!",
    "I'm around if you want to talk it through.", "Wishing you a great week.",
    "Say the word and I'll go on.", "Hopefully that's what you needed!", "Speak soon!",
)  # fmt: skip
_OPENINGS_TRAINING = ("Sure! ", "Certainly. ", "Great question! ", "Here is the answer: ")
_OPENINGS_TEST = (
    "Of course! ", "Absolutely! ", "Thanks for your question. ", "Happy to help! ",
    "Good question. ", "Sure, here is what I found: ",
)  # fmt: skip


def _courtesy(endings: tuple[str, ...], openings: tuple[str, ...]) -> Rule:
    def rule(source: Source, rng: random.Random) -> Edit | None:
        text = source.answer
        if rng.random() < 0.3:
            return put(text, 0, 0, rng.choice(openings))
        joint = rng.choice((" ", "\n\n"))
        return put(text, len(text), len(text), joint + rng.choice(endings))

    return rule


def _closing(endings: tuple[str, ...]) -> Rule:
    def rule(source: Source, rng: random.Random) -> Edit | None:
        text = source.answer
        return put(text, len(text), len(text), f" {rng.choice(endings)}")

    return rule


_SENTENCE_END = re.compile(r"(?<=[a-z0-9)])([.!?])(?=\s|$)")


def _cited(style: str) -> Rule:
    """Return a rule that adds a citation marker to each sentence; `{}` stands for its number."""

    def rule(source: Source, rng: random.Random) -> Edit | None:
        def marked(match: re.Match[str]) -> str:
            marker = style.format(rng.randint(1, 3), rng.randint(4, 6))
            return marker + match[1] if style.startswith(" ") else match[1] + marker

        edited = _SENTENCE_END.sub(marked, source.answer)
        return None if edited == source.answer else Edit(edited, 0, len(edited))

    return rule


def _bullets(mark: str, *, strip_end: bool = False) -> Rule:
    """Return a rule that writes each sentence as a list item."""

    def rule(source: Source, _: random.Random) -> Edit | None:
        pieces = [p for p in re.split(r"(?<=[.!?])\s+|\n+", source.answer.strip()) if p.strip()]
        if len(pieces) < 2:
            return None
        lines = [
            mark.format(n) + (p.rstrip(".") if strip_end else p) for n, p in enumerate(pieces, 1)
        ]
        edited = "\n".join(lines)
        return Edit(edited, 0, len(edited))

    return rule


def _emphasis(mark: str) -> Rule:
    def rule(source: Source, rng: random.Random) -> Edit | None:
        sentences = claims(source.answer)
        if not sentences:
            return None
        token = rng.choice(rng.choice(sentences).tokens)
        word = source.answer[token.start : token.end]
        return put(source.answer, token.start, token.end, f"{mark}{word}{mark}")

    return rule


def _rewritten(pattern: str, instead: str) -> Rule:
    """Return a rule that replaces every match."""

    def rule(source: Source, _: random.Random) -> Edit | None:
        edited = re.sub(pattern, instead, source.answer)
        return None if edited == source.answer else Edit(edited, 0, len(edited))

    return rule


_blank_lines = _rewritten(r"(?<=[.!?]) (?=[A-Z])", "\n\n")


def _curly(source: Source, _: random.Random) -> Edit | None:
    edited = re.sub(r"\"([^\"]*)\"", "“\\1”", source.answer.replace("'", "’"))
    return None if edited == source.answer else Edit(edited, 0, len(edited))


_LEADS_TEST = (
    "According to the provided text, ", "Based on the passages, ", "From the passages, ",
    "In summary, ", "Overall, ", "Note that ", "In short, ", "It is worth noting that ",
    "From what I can tell from the passages, ", "As stated in the passages, ",
    "The passages state that ", "To summarize, ",
)  # fmt: skip
_TAILS_TEST = (
    ", as stated in the passages",
    ", according to the text",
    " (as the passages mention)",
    ", based on the information provided",
)
_LABELS_TEST = ("**Answer:** ", "Answer: ", "TL;DR: ", "Short answer: ", "## Answer\n\n")


def _framed(source: Source, rng: random.Random) -> Edit | None:
    """Present one sentence as what the passages say, or as a summary."""
    sentences = [s for s in claims(source.answer) if s.text[:1].isupper() and not s.is_item]
    if not sentences:
        return None
    text, one = source.answer, rng.choice(sentences)
    if rng.random() < 0.3 and one.text.endswith("."):
        return put(text, one.end - 1, one.end - 1, rng.choice(_TAILS_TEST))
    first = one.text.split(maxsplit=1)[0]
    begins = first.lower() if first in {"The", "It", "This", "You", "They", "A", "An"} else first
    return put(text, one.start, one.start + len(first), rng.choice(_LEADS_TEST) + begins)


def _labelled(source: Source, rng: random.Random) -> Edit | None:
    return put(source.answer, 0, 0, rng.choice(_LABELS_TEST))


def _in_turn(*rules: Rule) -> Rule:
    """Return a rule that applies several rules in sequence."""

    def rule(source: Source, rng: random.Random) -> Edit | None:
        text, applied = source.answer, 0
        for one in rules:
            edit = one(source._replace(answer=text), rng)
            if edit is not None:
                text, applied = edit.answer, applied + 1
        return Edit(text, 0, len(text)) if applied > 1 else None

    return rule


TRAINING: dict[str, Rule] = {
    "spelling": exchange_all(_UK_TRAINING),
    "citations": one_of(_cited(" [{0}]"), _cited(" [{0}][{1}]")),
    "courtesy": _courtesy(_ENDINGS_TRAINING, _OPENINGS_TRAINING),
    "synonym": exchange(_SYNONYMS_TRAINING),
    "contraction": exchange(_CONTRACTIONS_TRAINING),
    "bullets": _bullets("- "),
    "layout": one_of(_emphasis("**"), _blank_lines),
}
"""Rules by kind."""
HELD_OUT: dict[str, Rule] = {
    "US to UK spelling": exchange_all(_UK_TEST),
    "UK to US spelling": exchange_all({uk: us for us, uk in _UK_TEST.items()}),
    "citations [n]": _cited(" [{0}]"),
    "other citations": one_of(
        _cited("[{0}]"), _cited(" [{0}, {1}]"), _cited("[^{0}]"), _cited(" (source {0})"),
        _cited(" [doc {0}]"), _cited("【{0}】"),
    ),
    "closing courtesy": _closing(_ENDINGS_TEST),
    "any courtesy": _courtesy(_ENDINGS_TEST, _OPENINGS_TEST),
    "one synonym": exchange(_SYNONYMS_TEST),
    "contractions": exchange_all(_CONTRACTIONS_TEST),
    "sentences as bullets": one_of(_bullets("- "), _bullets("* "), _bullets("• "),
    _bullets("{}. ")),
    "bullets without full stops": _bullets("- ", strip_end=True),
    "layout": one_of(_emphasis("*"), _emphasis("__"), _blank_lines, _curly),
    "framing": _framed,
    "label": _labelled,
    "ranges and degrees": one_of(
        _rewritten(r"(\d) to (\d)", r"\1–\2"), _rewritten(r"(\d) ?[–-] ?(\d)", r"\1 to \2"),
        _rewritten(r" ?°F", " degrees Fahrenheit"), _rewritten(r" degrees Fahrenheit", "°F"),
    ),
    "other spelling of a value": one_of(
        _rewritten(r"\b[Aa]bout (?=\d)", "approx. "), _rewritten(r"\bat least (\d+)\b", r"\1+"),
        _rewritten(r"(\d) inch(?:es)?\b", r'\1"'), _rewritten(r"\bfirst\b", "1st"),
        _rewritten(r"\bsecond(?= [a-z]+est\b)", "2nd"), _rewritten(r"(\d{4})s\b", r"\1's"),
        _rewritten(r"\btwice\b", "two times"),
        _rewritten(
            r"(?:\bfrom |(?<![\d.,/])(?<!\bbetween ))(\d+) to (\d+)\b", r"between \1 and \2"
        ),
    ),
    "converted quantity": converted,
    "acronym": acronyms.rewritten,
    "blanks and apostrophes": one_of(
        _rewritten(" ", "  "), _rewritten(" ", "\u00a0"), _rewritten("\n", "\r\n"),
        _rewritten("'", "’"),
    ),
    "synonyms, contractions, citations": _in_turn(
        exchange(_SYNONYMS_TEST), exchange(_SYNONYMS_TEST), exchange_all(_CONTRACTIONS_TEST),
        _cited(" [{0}]"),
    ),
}  # fmt: skip
"""Rules by kind that training does not use."""

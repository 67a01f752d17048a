"""Phrases and closed-class words that can stand for each other, each with one in its place."""

from collections.abc import Mapping

from evals.evaluators.groundedness.tokens import tokens_of

_PHRASAL_VERBS = {
    "carry out": "perform", "find out": "discover", "get through": "pass", "get to": "reach",
    "get rid of": "remove", "go up": "rise", "go down": "fall", "come back": "return",
    "go back": "return", "put off": "postpone", "call off": "cancel", "hand in": "submit",
    "fill in": "complete", "fill out": "complete", "throw away": "discard",
    "take away": "remove", "take out": "remove", "take place": "happen", "turn down": "reject",
    "point out": "note", "give back": "return", "bring about": "cause", "rely on": "depend on",
    "make sure": "ensure", "set up": "establish", "refer to as": "call", "know as": "call",
    "known as": "call", "help to": "help", "take part": "participate", "call for": "require",
    "calls for": "require", "lead to": "cause", "result in": "cause", "talk about": "discuss",
    "refer to": "mean", "made up of": "consist of", "is made up of": "consists of",
    "are made up of": "consist of", "is composed of": "consists of",
    "are composed of": "consist of", "comprise": "consist of", "serve to": "be used to",
    "serves to": "is used to", "locate": "find",
    "stay away from": "avoid", "stays away from": "avoids",
    "keep away from": "avoid", "steer clear of": "avoid",
}  # fmt: skip
"""Verbs with a particle, and the verbs that say the same."""
_VERB_FORMS = {
    "has": "have", "had": "have", "possess": "have", "gets": "get", "got": "get",
    "needs": "need", "advise": "recommend",
}  # fmt: skip
_CHANGES = {"fall": "drop decline decrease fell", "rise": "increase rose"}
"""Verbs for a change of a number."""
_OTHER_FORMS = (("get ", "gets "), ("get ", "got "))
_CONNECTIVES = {
    "but": "however", "yet": "however", "nonetheless": "however", "even so": "however",
    "so": "thus", "as a result": "thus", "for this reason": "thus", "accordingly": "thus",
    "due to the fact that": "because", "owing to the fact that": "because",
    "despite the fact that": "although", "because of": "due to", "owing to": "due to",
    "on account of": "due to",
    "though": "although", "even though": "although", "in spite of": "despite",
    "whereas": "while", "whilst": "while", "till": "until", "in case": "if",
    "in the event of": "if", "in the event that": "if", "whether or not": "whether",
    "as soon as": "once", "prior to": "before", "subsequent to": "after", "following": "after",
    "next": "then", "afterwards": "then", "afterward": "then", "in order to": "to",
    "so as to": "to", "as well as": "and",
    "which is why": "thus", "that is why": "thus",
    "in addition": "also", "in the course of": "during", "throughout": "during",
    "whenever": "when", "inside": "in",
    "after that": "then", "all in all": "overall", "instead of": "rather than",
    "as opposed to": "rather than", "except for": "except", "apart from": "except",
    "aside from": "except", "other than": "except", "with the exception of": "except",
    "such as": "like", "for example": "like", "for instance": "like", "e.g.": "like",
    "with regard to": "about", "in regard to": "about", "with respect to": "about",
    "regarding": "about", "concerning": "about", "by means of": "through", "via": "through",
    "close to": "near", "upon": "on", "amongst": "among", "amidst": "amid", "towards": "toward",
    "stands in": "is in", "is located in": "is in", "are located in": "are in",
    "provided that": "if", "next to": "beside", "beneath": "under", "plus": "and",
    "furthermore": "also", "moreover": "also", "additionally": "also", "i.e.": "that is",
    "on the other hand": "however", "in contrast": "however", "by contrast": "however",
    "conversely": "however", "given passages": "passages", "provided passages": "passages",
    "passages provided": "passages", "passages given": "passages", "given context": "context",
    "provided context": "context",
    "near to": "near", "there exists": "there is", "there exist": "there are",
}  # fmt: skip
_MODALS = {
    "might": "may", "ought to": "should", "have to": "must", "has to": "must", "need to": "must",
    "needs to": "must", "will need to": "must", "will have to": "must", "require to": "must",
    "is required to": "must", "are required to": "must", "is able to": "may", "are able to": "may",
    "is capable of": "may", "are capable of": "may", "is unable to": "can not",
    "are unable to": "can not", "is going to": "will", "are going to": "will",
    "it is advisable to": "you should", "it is recommended to": "you should",
    "it is advised to": "you should", "it is best to": "you should", "one can": "you may",
    "it is possible to": "you may",
}  # fmt: skip
_QUANTIFIERS = {
    "a number of": "several", "a variety of": "various", "a wide variety of": "various",
    "a range of": "various", "a wide range of": "various", "a lot of": "many",
    "lots of": "many", "plenty of": "many", "a great many": "many", "a large number of": "many",
    "the majority of": "most", "each": "every", "everybody": "everyone",
    "those with": "people with", "those who": "people who", "individuals with": "people with",
    "individuals who": "people who",
    "somebody": "someone", "anybody": "anyone", "nobody": "no one", "less than": "under",
    "fewer than": "under", "below": "under", "more than": "over", "greater than": "over",
    "above": "over", "a minimum of": "at least", "no less than": "at least",
    "not less than": "at least", "no fewer than": "at least", "a maximum of": "up to",
    "no more than": "up to", "not more than": "up to", "at most": "up to",
    "as much as": "up to", "as many as": "up to", "approx": "about", "circa": "about",
    "a few": "some", "a person": "someone", "an individual": "someone", "any kind of": "any",
    "any type of": "any", "some kind of": "some", "all of": "all", "every one of": "all",
    "one time": "once", "two times": "twice",
    "first": "1st",
}  # fmt: skip
_VALUES = {
    "half a": "1/2", "half of": "1/2 of", "one half": "1/2", "and a half": "1/2",
    "one and a half": "1 1/2", "a third of": "1/3 of", "one third": "1/3", "thirds": "3",
    "a quarter of": "1/4 of", "one quarter": "1/4", "quarters": "4", "out of": "of",
    "50 percent of": "1/2 of", "half the": "1/2 of",
    "daily": "day", "annually": "year",
    "kwh": "kilowatt hour", "a fortnight": "2 weeks", "every other": "every 2",
    "second world war": "world war 2", "first world war": "world war 1", "wwii": "world war 2",
    "ww2": "world war 2", "wwi": "world war 1", "annum": "year", "24/7": "24 hours day",
    "monday to friday": "weekdays", "monday through friday": "weekdays",
    "monday until friday": "weekdays", "monday friday": "weekdays",
    "saturday to sunday": "weekends", "saturday and sunday": "weekends",
    "saturday sunday": "weekends", "saturdays and sundays": "weekends",
    "around the clock": "24 hours day", "12 noon": "noon", "mph": "miles hour",
    "kph": "kilometers hour", "fl oz": "fluid ounces",
}  # fmt: skip
_ADVERBS = {
    "at all times": "always", "occasionally": "sometimes", "at times": "sometimes",
    "on occasion": "sometimes",
    "from time to time": "sometimes", "seldom": "rarely", "for the most part": "mostly",
    "in particular": "particularly", "specifically": "particularly",
    "especially": "particularly", "in general": "generally", "well-known": "famous",
    "right away": "immediately", "at once": "immediately",
    "nowadays": "today", "at present": "currently", "at the moment": "currently",
    "right now": "currently", "years of age": "years old",
    "with ease": "easily",
}  # fmt: skip
_ABBREVIATIONS = {
    "U.S.": "US", "USA": "US", "U.S.A.": "US", "United States": "US",
    "United States of America": "US", "U.K.": "UK", "United Kingdom": "UK", "E.U.": "EU",
    "European Union": "EU", "hrs": "hour", "hr": "hour", "mins": "minute", "secs": "second",
    "yrs": "year", "lbs": "pound", "kms": "kilometer", "TV": "television", "mom": "mother",
    "dad": "father", "app": "application", "e-mail": "email", "web site": "website",
    "web page": "webpage", "health care": "healthcare", "child care": "childcare",
    "day care": "daycare", "life style": "lifestyle", "time frame": "timeframe",
    "smart phone": "smartphone", "cell phone": "cellphone",
    "U.S. dollars": "dollars", "US dollars": "dollars", "bucks": "dollars", "Dr.": "doctor",
    "Mt.": "mount", "Saint": "St", "vs.": "versus", "A.D.": "AD", "Ph.D.": "PhD", "ca.": "about",
    "CE": "AD", "BCE": "BC", "e-book": "ebook",
    "on-line": "online", "co-operate": "cooperate", "co-ordinate": "coordinate",
    "all right": "alright", "data base": "database", "work place": "workplace",
}  # fmt: skip

PAST_FORMS = frozenset(["got", "had", "known", "fell", "rose"])
"""Pasts that the words around them do not show."""


def _stems(words: Mapping[str, str]) -> dict[tuple[str, ...], tuple[str, ...]]:
    def stems(text: str) -> tuple[str, ...]:
        return tuple(token.form.stem for token in tokens_of(text))

    return {stems(phrase): stems(instead) for phrase, instead in words.items()}


VERBS = _stems(
    {
        **_VERB_FORMS,
        **_PHRASAL_VERBS,
        **{
            other + phrase.removeprefix(verb): instead
            for verb, other in _OTHER_FORMS
            for phrase, instead in _PHRASAL_VERBS.items()
            if phrase.startswith(verb)
        },
        **{
            f"{verb} {by}": f"{instead} {by}"
            for instead, verbs in _CHANGES.items()
            for verb in verbs.split()
            for by in ("by", "to", "from")
        },
    }
)
"""Those of `PHRASES` that have a tense."""
PHRASES = VERBS | _stems(
    {
        **_CONNECTIVES,
        **_MODALS,
        **_QUANTIFIERS,
        **_VALUES,
        **_ADVERBS,
        **_ABBREVIATIONS,
        **{
            f"{each} {unit}": unit
            for each in ("each", "every")
            for unit in ("hour", "day", "week", "month", "year")
        },
        **{
            f"{once} {a} {unit}": unit
            for once in ("once", "one time")
            for a in ("a", "per", "every")
            for unit in ("day", "week", "month", "year")
        },
    }
)
"""The stems of words, and the stems that stand in their place. None of these is replaced again."""

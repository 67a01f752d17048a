"""Find appeals to unnamed others, such as "most people say" or "it is widely believed"."""

import re

from evals.evaluators.groundedness.plain import spaced

_SAY = (
    r"(?:says?|said|tells?|believes?|thinks?|describes?|considers?|regards?|claims?|agrees?|credits?"
    r"|holds?|argues?|suggests?|assumes?|calls?|sees?|attributes?|maintains?|rates?|reports?|finds?"
    r"|notes?|trace|date|place|complain|recommend|praise|warn|swear|insist)"
)
_OTHERS = (
    r"(?:people|experts?|historians?|scholars|researchers|scientists|specialists|locals|observers"
    r"|critics|commentators|visitors|tourists|travell?ers|residents|sources|authorities|accounts"
    r"|fans|folks|users|owners|buyers|customers|reviewers|others|legend|tradition|rumou?r)"
)
_ADVERB = (
    r"(?:widely|generally|commonly|usually|often|popularly|typically|traditionally|frequently)"
)
_TOLD = (
    r"(?:known|believed|thought|said|described|considered|regarded|held|accepted|assumed|called"
    r"|credited|attributed|seen|understood)"
)
HEARSAY = re.compile(
    spaced(
        rf"\b(?:(?:most|many|some|several|few|other)(?:\s+\w+){{0,2}}?|{_OTHERS})"
        rf"\s+(?:\w+ly\s+|(?:would|will|do|often|have)\s+)*{_SAY}\b"
        rf"|\b{_ADVERB}\s+{_TOLD}\b|\b{_TOLD}\s+{_ADVERB}\b"
        r"|\bit(?:'s| is)\s+(?:said|believed|thought|known|rumou?red)\b"
        r"|\b(?:legend|rumou?r|tradition|word) has it\b"
        r"|\b(?:common|general|popular)\s+(?:knowledge|belief|opinion|wisdom)\b"
    ),
    re.IGNORECASE,
)

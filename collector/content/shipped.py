"""The redaction patterns shipped with Draftgate."""

from typing import Final

from collector.content import canonical
from collector.content.checksums import cards, ibans, phones
from collector.content.redaction import Pattern

SHIPPED: Final = (
    Pattern(
        "private_key",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s\\]*"
        r"(?:-----END [A-Z ]*PRIVATE KEY-----)?",
    ),
    Pattern("jwt", r"\beyJ[\w-]{6,}\.eyJ[\w-]{6,}\.[\w-]*"),
    Pattern(
        "api_key",
        r"\b(?:sk-[\w-]{16,}|(?:AKIA|ASIA)[0-9A-Z]{16}\b|gh[oprsu]_[0-9A-Za-z]{36,}"
        r"|github_pat_\w{22,}|xox[abeoprs]-[\w-]{10,}|AIza[\w-]{35}|hf_[0-9A-Za-z]{30,}"
        r"|dgk_[0-9a-f]{8}_[0-9a-f]{64})",
    ),
    Pattern("email", r"[\pL\pN._%+-]+@[\pL\pN-]+(?:\.[\pL\pN-]+)+", canonical=canonical.lower),
    Pattern(
        "iban",
        r"\b[A-Z]{2}[0-9]{2}(?: ?[0-9A-Z]{4}){2,7}(?: ?[0-9A-Z]{1,3}\b)?",
        ibans,
        canonical.without_spaces,
    ),
    Pattern("card", r"\b[0-9][0-9 -]{11,}[0-9]\b", cards, canonical.digits),
    Pattern(
        "phone",
        r"\+[0-9][0-9 ().\x{2011}/-]{6,20}[0-9]\b"
        r"|\b00[1-9][0-9]{0,2}[ .()/-][0-9 ().\x{2011}/-]{5,18}[0-9]\b"
        r"|\([0-9]{2,5}\)[ ./-]?[0-9]{3,4}(?:[ .-]?[0-9]{2,4}){1,3}\b"
        r"|\b[2-9][0-9]{2}[ .-][0-9]{3}[ .-][0-9]{4}\b",
        phones,
        canonical.phone,
    ),
    Pattern(
        "ip",
        r"\b(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\b"
        r"|\b(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}\b"
        r"|\b(?:[0-9A-Fa-f]{1,4}:){1,6}(?::[0-9A-Fa-f]{1,4}){1,6}\b",
        canonical=canonical.lower,
    ),
)
"""In the order of application: distinctive forms before runs of digits."""

OPTIONAL: Final = frozenset({"ip"})
"""Applied only on request: IP addresses are often the subject of a trace."""


def shipped() -> tuple[Pattern, ...]:
    """Return the patterns applied by default."""
    return tuple(pattern for pattern in SHIPPED if pattern.name not in OPTIONAL)

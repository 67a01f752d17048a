"""Whether so few draft tokens were accepted that the drafting, or the sampling, is broken."""

from math import sqrt
from typing import Final

COLLAPSED_BELOW: Final = 0.1
"""The share of draft tokens; n-gram drafts on text that repeats nothing still reach about it."""
_LEAST_DRAFTED: Final = 200
_Z: Final = 3.09
"""Of the normal law's upper thousandth."""


def acceptance_collapsed(accepted_tokens: int, draft_tokens: int) -> bool:
    """Say whether the share accepted is below a tenth, by Wilson's upper limit at 99.9 %.

    Of fewer than 200 draft tokens, and of counts that no engine can mean, nothing is said.
    Source: E. B. Wilson, Journal of the American Statistical Association 22 (1927) 209–212.
    """
    n = draft_tokens
    if n < _LEAST_DRAFTED or not 0 <= accepted_tokens <= n:
        return False
    share, z2 = accepted_tokens / n, _Z**2
    reach = _Z * sqrt(share * (1 - share) / n + z2 / (4 * n**2))
    return (share + z2 / (2 * n) + reach) / (1 + z2 / n) < COLLAPSED_BELOW

"""Detection of an acceptance rate so low that the drafting, or the sampling, must be broken."""

from math import sqrt
from typing import Final

COLLAPSED_BELOW: Final = 0.1
"""Threshold; n-gram drafts reach about this acceptance rate even on text without repetition."""
_LEAST_DRAFTED: Final = 200
_Z: Final = 3.09
"""The normal distribution's 99.9th percentile."""


def acceptance_collapsed(accepted_tokens: int, draft_tokens: int) -> bool:
    """Return whether the acceptance rate is below 0.1 by Wilson's upper limit at 99.9 %.

    False for fewer than 200 draft tokens, and for impossible counts.
    Source: E. B. Wilson, Journal of the American Statistical Association 22 (1927) 209–212.
    """
    n = draft_tokens
    if n < _LEAST_DRAFTED or not 0 <= accepted_tokens <= n:
        return False
    share, z2 = accepted_tokens / n, _Z**2
    reach = _Z * sqrt(share * (1 - share) / n + z2 / (4 * n**2))
    return (share + z2 / (2 * n) + reach) / (1 + z2 / n) < COLLAPSED_BELOW

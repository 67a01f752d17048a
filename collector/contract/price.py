"""The price of a route, as generations carry it."""

import json
import math
import re
from dataclasses import dataclass

from collector.contract.documents import from_document, to_document

_CURRENCY = re.compile("[A-Z]{3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePrice:
    """The price of one route: by accelerator-hour, or by token.

    Raises `ValueError` for a price of both kinds or of neither, and for impossible numbers.
    """

    currency: str
    """Such as USD."""
    per_accelerator_hour: float | None = None
    accelerators: int = 1
    """Accelerators behind the route, all replicas together."""
    per_million_input_tokens: float | None = None
    per_million_cached_input_tokens: float | None = None
    """`None`: cached input tokens cost as much as others."""
    per_million_output_tokens: float | None = None

    def __post_init__(self) -> None:
        both = (self.per_million_input_tokens, self.per_million_output_tokens)
        by_token = (*both, self.per_million_cached_input_tokens)
        by_hour = self.per_accelerator_hour is not None or self.accelerators != 1
        needed = (self.per_accelerator_hour,) if by_hour else both
        if by_hour == any(price is not None for price in by_token) or None in needed:
            raise ValueError(
                "wanted a price by hour, `per_accelerator_hour` with `accelerators`, or one by "
                "token, `per_million_input_tokens` and `per_million_output_tokens`"
            )
        if _CURRENCY.fullmatch(self.currency) is None or self.accelerators < 1:
            raise ValueError("wanted a currency such as USD, and at least one accelerator")
        numbers = (self.per_accelerator_hour, *by_token)
        if any(x is not None and not 0 <= x < math.inf for x in numbers):
            raise ValueError("wanted finite prices of at least 0")

    @property
    def per_hour(self) -> float | None:
        """Price of an hour of the whole route; `None` if it is priced by token."""
        if self.per_accelerator_hour is None:
            return None
        return self.per_accelerator_hour * self.accelerators

    @property
    def text(self) -> str:
        """The JSON that generations carry."""
        known = {key: value for key, value in to_document(self).items() if value is not None}
        return json.dumps(known, sort_keys=True)


def price_of(text: str) -> RoutePrice:
    """Return the price of a generation's JSON; raises `ValueError` if it is none."""
    try:
        return from_document(RoutePrice, json.loads(text))
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc

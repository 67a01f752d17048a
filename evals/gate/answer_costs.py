"""The cost of each answer, by the prices that were recorded with it."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from collector.contract import RoutePrice, price_of
from evals.evidence.columns import Evidence, FloatColumn, Side
from evals.gate.conditions import MAX_LOAD_RATIO
from evals.gate.time_in_use import time_in_use
from evals.policy import Policy
from evals.policy.sections import HourlyPrices


class AnswerCosts(NamedTuple):
    """The cost of every pair's two answers; NaN for an answer whose cost is unknown."""

    currency: str
    """Empty if the prices are in several."""
    baseline: FloatColumn
    candidate: FloatColumn
    in_flight: float | None = None
    """Mean requests in flight at a route, which share the price of an hour; None if no route is
    priced by hour."""
    unknown: str | None = None
    """Why no cost at all is known."""


def answer_costs(evidence: Evidence, policy: Policy) -> AnswerCosts | None:
    """Return the answers' costs; `None` if no answer carries a price.

    By token: Σ tokens · price. By hour: seconds from request to end · price of a second ÷ the mean
    number of requests in flight at a route, the same for both arms. Failed answers have no cost.
    """
    prices = {arm: _prices(side) for side, arm in evidence.arms}
    known = [price for by_text in prices.values() for price in by_text.values() if price]
    if not any(prices.values()):
        return None
    unknown = None
    if len({price.currency for price in known}) != 1:
        unknown = "the answers' prices are not in one currency, or cannot be read"
    in_flight = None
    if unknown is None and any(price.per_hour is not None for price in known):
        unknown, in_flight = _sharing(evidence, policy)
    return AnswerCosts(
        currency=known[0].currency if len({price.currency for price in known}) == 1 else "",
        baseline=_costs(evidence.baseline, prices["baseline"], in_flight),
        candidate=_costs(evidence.candidate, prices["candidate"], in_flight),
        in_flight=in_flight,
        unknown=unknown,
    )


def hourly_prices(evidence: Evidence) -> HourlyPrices | None:
    """Return the recorded prices of an hour; `None` unless each arm has one, in one currency."""
    found = [list(_prices(side).values()) for side, _ in evidence.arms]
    if any(len(one) != 1 for one in found):
        return None
    (baseline,), (candidate,) = found
    if baseline is None or candidate is None or baseline.currency != candidate.currency:
        return None
    if not baseline.per_hour or not candidate.per_hour:
        return None
    return HourlyPrices(baseline_per_hour=baseline.per_hour, candidate_per_hour=candidate.per_hour)


_Prices = Mapping[str, RoutePrice | None]
"""By the text that answers carry; None if it cannot be read."""


def _prices(side: Side) -> _Prices:
    found: dict[str, RoutePrice | None] = {}
    for text in {text for text in side.column("price") if text is not None}:
        try:
            found[text] = price_of(text)
        except ValueError:
            found[text] = None
    return found


def _costs(side: Side, prices: _Prices, in_flight: float | None) -> FloatColumn:
    texts = side.column("price")
    costs = np.full(len(texts), np.nan)
    counted = side.answered & ~side.fallback & (side.output_tokens > 0)
    for text, price in prices.items():
        rows = counted & (texts == text)
        if price is None:
            continue
        if price.per_hour is None:
            costs[rows] = _by_token(side, price)[rows]
        elif in_flight is not None:
            costs[rows] = side.latency_s("e2e")[rows] * price.per_hour / 3600 / in_flight
    return costs


def _by_token(side: Side, price: RoutePrice) -> FloatColumn:
    """Return the cost of every answer at a price by token."""
    read, cached = side.numbers("input_tokens"), side.numbers("cached_input_tokens")
    per_input, per_output = price.per_million_input_tokens, price.per_million_output_tokens
    assert per_input is not None  # noqa: S101  # as a price by token has both
    assert per_output is not None  # noqa: S101
    cost = read * per_input + side.output_tokens * per_output
    if price.per_million_cached_input_tokens is not None:
        cost = cost - cached * (per_input - price.per_million_cached_input_tokens)
    return np.asarray(cost / 1e6)


def _sharing(evidence: Evidence, policy: Policy) -> tuple[str | None, float | None]:
    """Return the requests in flight that share an hour's price, or why they are not known."""
    if policy.design != "paired_replay":
        return (
            "the price of an hour is shared by all requests in flight, of which live traffic "
            "records a part; replay the requests, or give prices by token"
        ), None
    spent = {arm: time_in_use(side) for side, arm in evidence.arms}
    loads = {arm: load for arm, used in spent.items() if (load := used.in_flight) is not None}
    if len(loads) < len(spent):
        return "no usable time of an answer is known", None
    if max(loads.values()) > MAX_LOAD_RATIO * min(loads.values()):
        words = " and ".join(f"{load:.1f} for the {arm}" for arm, load in loads.items())
        return f"the arms ran under other load: in flight {words}", None
    every = spent.values()
    return None, sum(used.flown_s for used in every) / sum(used.busy_s for used in every)

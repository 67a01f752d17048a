"""The judge's settings, read from environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from evals.errors import EvaluatorError

URL = "DRAFTGATE_JUDGE_URL"
MODEL = "DRAFTGATE_JUDGE_MODEL"
API_KEY = "DRAFTGATE_JUDGE_API_KEY"
PRICES = "DRAFTGATE_JUDGE_PRICES"
RATE = "DRAFTGATE_JUDGE_RATE"
CACHE = "DRAFTGATE_JUDGE_CACHE"
BAND = "DRAFTGATE_JUDGE_BAND"
AUDIT = "DRAFTGATE_JUDGE_AUDIT"
VARIABLES: Final = {
    URL: "OpenAI-compatible API of the judge, up to /v1; required by judges.",
    MODEL: "The judge's model; required by judges.",
    API_KEY: "Key of the API. Default: none.",
    PRICES: "US dollars per million input and output tokens, such as 0.15,0.60. Default: none, and "
    "scores have no cost.",
    BAND: "Local scores that judge-cascade asks its judge about. Default: 0.05,0.95.",
    AUDIT: "Share of the other answers that judge-cascade asks about too. Default: 0.02.",
    RATE: "Most requests a second of each worker. Default: no limit.",
    CACHE: "Folder that keeps the judge's answers. Default: none.",
}
"""Each variable's description for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrices:
    """Prices in US dollars a million tokens."""

    input_usd: float
    output_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """A judge's endpoint and its limits."""

    url: str
    """URL of the API, up to `/v1`."""
    model: str
    api_key: str | None = None
    prices: TokenPrices | None = None
    requests_per_s: float | None = None
    """Rate limit of this process; every worker process has its own."""
    cache: Path | None = None
    timeout_s: float = 120.0
    attempts: int = 5
    max_wait_s: float = 60.0
    """Longest pause between two attempts; caps Retry-After too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """Which answers of a cascade the judge sees."""

    low: float = 0.05
    high: float = 0.95
    """Local scores from `low` to `high` are unsure."""
    audited: float = 0.02
    """Share of the other answers, or pairs, that it sees too."""


def cascade(environment: Mapping[str, str] = os.environ) -> Cascade:
    """Read a cascade's terms from environment variables; raises `EvaluatorError`."""
    terms = Cascade()
    if band := environment.get(BAND):
        parts = [_positive(BAND, part) for part in band.split(",")]
        if len(parts) != 2 or not parts[0] <= parts[1] <= 1:
            raise EvaluatorError(f"{BAND}: {band!r}; wanted two scores, such as 0.05,0.95")
        terms = replace(terms, low=parts[0], high=parts[1])
    if share := environment.get(AUDIT):
        audited = _positive(AUDIT, share)
        if audited > 1:
            raise EvaluatorError(f"{AUDIT}: {share!r}; wanted a share of at most 1")
        terms = replace(terms, audited=audited)
    return terms


def from_environment(environment: Mapping[str, str] = os.environ) -> JudgeSettings:
    """Read the settings from environment variables; raises `EvaluatorError`."""
    missing = [name for name in (URL, MODEL) if not environment.get(name)]
    if missing:
        raise EvaluatorError(
            f"no judge is set: {' and '.join(missing)} wanted, such as "
            f"{URL}=http://localhost:8000/v1 and {MODEL}=my-model"
        )
    rate, cache = environment.get(RATE), environment.get(CACHE)
    return JudgeSettings(
        url=environment[URL].rstrip("/"),
        model=environment[MODEL],
        api_key=environment.get(API_KEY) or None,
        prices=read_prices(environment.get(PRICES)),
        requests_per_s=_positive(RATE, rate) if rate else None,
        cache=Path(cache) if cache else None,
    )


def read_prices(text: str | None) -> TokenPrices | None:
    """Read `INPUT,OUTPUT` in US dollars a million tokens; raises `EvaluatorError`."""
    if not text:
        return None
    parts = text.split(",")
    if len(parts) != 2:
        raise EvaluatorError(
            f"{PRICES}: {text!r}; wanted US dollars a million tokens of input and of output, "
            "such as 0.15,0.60"
        )
    return TokenPrices(
        input_usd=_positive(PRICES, parts[0]), output_usd=_positive(PRICES, parts[1])
    )


def _positive(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise EvaluatorError(f"{name}: {text!r}; wanted a number that is not below 0")
    return value

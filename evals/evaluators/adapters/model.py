"""The model that other packages' metrics use as their judge."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from evals.errors import EvaluatorError
from evals.evaluators.judge.settings import API_KEY, MODEL, PRICES, URL, TokenPrices, read_prices


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """A model behind an OpenAI-compatible endpoint."""

    name: str
    url: str | None
    """`None`: the OpenAI client's default, which OPENAI_BASE_URL sets."""
    api_key: str | None
    prices: TokenPrices | None

    def client_options(self) -> dict[str, str]:
        """Return the OpenAI client's arguments; without a URL it reads its own variables."""
        if self.url is None:
            return {}
        # The client requires a key, and must not send OPENAI_API_KEY to this endpoint.
        return {"base_url": self.url, "api_key": self.api_key or "none"}


def from_environment(environment: Mapping[str, str] = os.environ) -> ModelEndpoint | None:
    """Return the judge that the environment variables set, if any."""
    name = environment.get(MODEL)
    if not name:
        return None
    return ModelEndpoint(
        name=name,
        url=environment.get(URL) or None,
        api_key=environment.get(API_KEY) or None,
        prices=read_prices(environment.get(PRICES)),
    )


def required(evaluator: str) -> ModelEndpoint:
    """Return the judge that the environment variables set; raises `EvaluatorError` if none is."""
    model = from_environment()
    if model is None:
        raise EvaluatorError(
            f"{evaluator} asks a model: set {MODEL}, and {URL} for an endpoint of your own such as "
            "http://localhost:8000/v1; without it, OPENAI_API_KEY and OPENAI_BASE_URL count"
        )
    return model

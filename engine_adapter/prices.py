"""The `prices` section of rollout files and routes files."""

from typing import Annotated

from pydantic import Field, model_validator

from collector.contract import Arm, RoutePrice
from engine_adapter.routes import Section

Price = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class PriceSection(Section):
    """The price of one arm's route: by accelerator-hour, or by token."""

    per_accelerator_hour: Price | None = None
    """Price of an hour of one accelerator."""
    accelerators: Annotated[int, Field(gt=0)] = 1
    """Accelerators behind the route, all replicas together."""
    per_million_input_tokens: Price | None = None
    """Price of a million input tokens of a hosted API; give the output's, too."""
    per_million_cached_input_tokens: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = (
        None
    )
    """Price of a million input tokens read from a cache; default: that of all input tokens."""
    per_million_output_tokens: Price | None = None
    """Price of a million output tokens of a hosted API; give the input's, too."""

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> "PriceSection":
        RoutePrice(currency="XXX", **self.model_dump())
        return self


class Prices(Section):
    """The prices of both arms' routes, in one currency; each answer keeps the price of its time."""

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    """Three capital letters (ISO 4217), such as `USD`; the same for both arms."""
    baseline: PriceSection
    """Price of the baseline's route."""
    candidate: PriceSection
    """Price of the candidate's route; of several candidates, of each."""

    def of(self, arm: Arm) -> str:
        """Return the price of an arm's route, as generations carry it."""
        section: PriceSection = getattr(self, arm.value)
        return RoutePrice(currency=self.currency, **section.model_dump()).text

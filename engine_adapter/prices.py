"""The `prices` section of rollout files and routes files."""

from typing import Annotated

from pydantic import Field, model_validator

from collector.contract import Arm, RoutePrice
from engine_adapter.routes import Section

Price = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class PriceSection(Section):
    """The price of one arm's route: by accelerator-hour, or by token."""

    per_accelerator_hour: Price | None = None
    accelerators: Annotated[int, Field(gt=0)] = 1
    """Accelerators behind the route, all replicas together."""
    per_million_input_tokens: Price | None = None
    per_million_cached_input_tokens: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = (
        None
    )
    """Default: cached input tokens cost as much as others."""
    per_million_output_tokens: Price | None = None

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> "PriceSection":
        RoutePrice(currency="XXX", **self.model_dump())
        return self


class Prices(Section):
    """The prices of both arms' routes, in one currency."""

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    """An ISO 4217 code, such as USD."""
    baseline: PriceSection
    candidate: PriceSection

    def of(self, arm: Arm) -> str:
        """Return the price of an arm's route, as generations carry it."""
        section: PriceSection = getattr(self, arm.value)
        return RoutePrice(currency=self.currency, **section.model_dump()).text

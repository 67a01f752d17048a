"""The policy's sections other than its rules: design, sampling, validity, prices and more."""

import math
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import PlainValidator, model_validator

from collector.contract import LATENCIES
from evals.policy.reading import (
    STRICT,
    Integer,
    Number,
    PolicySection,
    one_of,
    within,
    word_for_none,
    wrong,
)
from evals.stats.spending import ever_passes, last_level

Design = Literal["paired_replay", "mirror", "split"]
Latency = Annotated[str, one_of(LATENCIES)]
Control = Literal["optional", "required"]
OpenUnit = Annotated[Number, within("a number between 0 and 1", lambda value: 0 < value < 1)]
Positive = Annotated[Integer, within("at least 1", lambda count: count >= 1)]
Milliseconds = Annotated[Number, within("milliseconds above 0", lambda ms: ms > 0)]
Price = Annotated[Number, within("a price above 0", lambda price: price > 0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingDesign:
    """How the requests were drawn."""

    __pydantic_config__: ClassVar = STRICT

    warmup_drop: Annotated[Integer, within("at least 0", lambda count: count >= 0)] = 0
    """Pairs dropped from the start of the rollout, besides the rollout file's `load.warmup`."""
    candidate_share: OpenUnit = 0.5
    """The candidate's planned share of split traffic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """The longest disturbance that the verdict must allow for."""

    stretch: int = 1
    """Successive requests that one disturbance may affect together."""
    stretch_s: float | None = None
    """The same in seconds; `stretch` is then the number of requests that start in that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidityRules:
    """Conditions for deciding anything."""

    __pydantic_config__: ClassVar = STRICT

    srm_p_min: OpenUnit = 0.001
    """A p value of the sample ratio below this is a mismatch."""
    drift_p_min: OpenUnit = 0.01
    """A p value of the drift below this is drift."""
    drift_min_correlation: Annotated[
        Number, within("a number from 0 to below 1", lambda value: 0 <= value < 1)
    ] = 0.03
    """A smaller rank correlation with time is no drift; 0.03 explains less than a thousandth of the
    variance, and 0 counts every drift."""
    client_lag_p99_max_frac: OpenUnit = 0.01
    """Maximum p99 of the load generator's lag, as a share of the metric's median; for `tpot`, of
    the lag per token after the first."""
    aa_control: Control = "optional"
    """Whether to decide nothing without an A/A control (`--control`)."""
    speculation: Control = "required"
    """Whether to pass only if the candidate's counts show drafts; `optional` is for other changes,
    and engines without counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """The continuous test for harm: the share of requests slower than a threshold."""

    latency: Latency = "ttft"
    threshold_s: float | None = None
    """`None`: the baseline's p99 over the first pairs, then fixed."""
    margin: float = 0.005
    """The acceptable difference of the shares of slower requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Judging while traffic flows; statistics of bounded differences always use bets."""

    looks: tuple[int, ...] = (300, 600, 1_200, 2_400, 5_000)
    """Numbers of pairs at which unbounded statistics are tested."""
    spend: tuple[float, ...] = (0.001, 0.003, 0.006, 0.010, 0.04013)
    """The level of each look; since looks are correlated, all together pass wrongly in .05."""
    rollback: Rollback | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lossless:
    """The rules for a candidate that claims to be lossless."""

    alpha: float = 0.01
    """Maximum probability that greedy answers pass, or fail, wrongly."""
    max_tie_gap: float | None = None
    """`None`: two ulp of the model's dtype at the logit, or the control's noise."""
    hazard_ratio_max: float = 1.5
    """Maximum ratio of the rates of divergences, candidate over A/A control: per character, or per
    token if a model rescored."""
    tolerance: float = 0.005
    """Bias of the sampling audit's means that numerical error may cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRules:
    """How often the arms' servers must be started."""

    __pydantic_config__: ClassVar = STRICT

    min: Positive
    """Independent launches needed for cells of times or cost to decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """The bounds within which a request counts as good; at least one."""

    __pydantic_config__: ClassVar = STRICT

    ttft_ms: Milliseconds | None = None
    """Maximum milliseconds to the first token, reasoning included."""
    ttfo_ms: Milliseconds | None = None
    """Maximum milliseconds to the first token of text or tool calls."""
    tpot_ms: Milliseconds | None = None
    """Maximum milliseconds per output token."""
    e2e_ms: Milliseconds | None = None
    """Maximum milliseconds of the whole request."""
    share: OpenUnit | None = None
    """Share of good requests that a rate must hold, for `draftgate sweep --rates`."""

    def __post_init__(self) -> None:
        """Raise `ValueError` without any bound."""
        if not self.bounds_ms:
            raise ValueError(f"wanted at least one bound of {', '.join(self._bounds)}")

    @property
    def bounds_ms(self) -> dict[str, float]:
        """The bounds that are given, by their key."""
        return {key: ms for key, ms in self._bounds.items() if ms is not None}

    @property
    def _bounds(self) -> dict[str, float | None]:
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name.endswith("_ms")}

    @property
    def seconds(self) -> dict[str, float]:
        """The bounds in seconds, by their metric."""
        return {key.removesuffix("_ms"): ms / 1000 for key, ms in self.bounds_ms.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyPrices:
    """The price of an hour of each route, in one currency."""

    __pydantic_config__: ClassVar = STRICT

    baseline_per_hour: Price
    """Price of an hour of the baseline's route."""
    candidate_per_hour: Price
    """Price of an hour of the candidate's route, in the same currency."""


def scaled(alpha_pass: float, looks: tuple[int, ...] | None = None) -> Live:
    """Return looks that spend `alpha_pass` in total; the last one spends the rest."""
    plain, share = Live(), alpha_pass / 0.05
    looks = looks or plain.looks
    earlier = tuple(round(level * share, 12) for level in plain.spend[:-1])
    return Live(looks=looks, spend=(*earlier, last_level(looks, earlier, alpha_pass)))


def divided(live: Live, parts: int, alpha_pass: float) -> Live:
    """Return the looks with divided levels; the last one spends what `alpha_pass` leaves."""
    earlier = tuple(round(level / parts, 12) for level in live.spend[:-1])
    return replace(live, spend=(*earlier, last_level(live.looks, earlier, alpha_pass)))


def _dependence(stretch: object) -> Dependence:
    if type(stretch) is int and stretch >= 1:
        return Dependence(stretch=stretch)
    text = str(stretch)
    try:
        seconds = float(text[:-1]) if text.endswith("s") else 0.0
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise ValueError(f"wanted requests, such as 25, or seconds, such as 30s; got {text}")
    return Dependence(stretch_s=seconds)


class DependenceSection(PolicySection):
    """The longest disturbance that the verdict must allow for."""

    stretch: Annotated[
        Dependence, PlainValidator(_dependence, json_schema_input_type=int | str)
    ] = Dependence()
    """Longest disturbance that must not slip through: consecutive requests (`25`; default: 1), or
    seconds (`30s`: the most requests that start in them)."""


class RollbackSection(PolicySection):
    """The continuous test for harm: the share of requests slower than a threshold."""

    metric: Literal["slo_exceedance"]
    """The share of requests slower than the threshold."""
    latency: Latency = "ttft"
    """The time that is compared."""
    threshold: Annotated[
        float | None, word_for_none("baseline_p99", "seconds above 0", lambda s: s > 0)
    ] = None
    """Seconds, or `baseline_p99`: that of the first 300 pairs."""
    margin: OpenUnit = 0.005
    """Acceptable difference of the arms' shares."""

    @property
    def rollback(self) -> Rollback:
        """The test for harm."""
        return Rollback(latency=self.latency, threshold_s=self.threshold, margin=self.margin)


class LiveSection(PolicySection):
    """Judging while traffic flows."""

    bounded: Literal["betting_eprocess"] = "betting_eprocess"
    """How shares and scores are judged."""
    looks: tuple[Positive, ...] = ()
    """Numbers of pairs (split traffic: answers per arm) at which everything else is judged;
    default: 300, 600, 1200, 2400, 5000."""
    spend: tuple[OpenUnit, ...] = ()
    """Level of each look, together at most `alpha.pass`; default: 0.001, 0.003, 0.006, 0.010,
    0.04013, scaled to `alpha.pass`, of which the last look gets the rest."""
    rollback: RollbackSection | None = None
    """Test for harm, on which `watch` switches the candidate off."""

    @model_validator(mode="after")
    def _has_a_level_for_each_look(self) -> "LiveSection":
        looks, levels = self.looks or Live().looks, self.spend or Live().spend
        if len(looks) != len(levels):
            where = ("spend",) if self.spend else ()
            raise wrong(f"wanted a level for each of {len(looks)} looks, got {len(levels)}", *where)
        if any(b <= a for a, b in pairwise(looks)):
            raise wrong("wanted growing numbers of pairs", "looks")
        return self

    def check_spend(self, alpha_pass: float) -> None:
        """Raise if the given levels pass wrongly more often than the policy allows."""
        spent = ever_passes(self.looks or Live().looks, self.spend) if self.spend else 0.0
        if spent > alpha_pass * (1 + 1e-6):
            message = f"wanted at most alpha.pass = {alpha_pass:g} over all, got {spent:.4g}"
            raise wrong(message, "live", "spend")

    def live(self, alpha_pass: float) -> Live:
        """Return the rules; without levels in the file, the looks spend `alpha_pass` in total."""
        looks = self.looks or Live().looks
        return Live(
            looks=looks,
            spend=self.spend or scaled(alpha_pass, looks).spend,
            rollback=None if self.rollback is None else self.rollback.rollback,
        )


class GreedySection(PolicySection):
    """The comparison of greedy answers."""

    max_tie_gap: Annotated[
        float | None, word_for_none("auto", "a gap of at least 0", lambda gap: gap >= 0)
    ] = None
    """Gap of logits that is a tie: a number, or `auto`: two ulp of the model's dtype, or the
    control's noise."""
    hazard_ratio_max: Annotated[Number, within("a ratio above 1", lambda ratio: ratio > 1)] = 1.5
    """Maximum rate of divergences, relative to the A/A control's: per character, or per token if
    a model rescored."""


class SampledSection(PolicySection):
    """The audit of sampled answers."""

    tolerance: OpenUnit = 0.005
    """Bias that numerical error may cause."""


class LosslessSection(PolicySection):
    """The rules for a candidate that claims to be lossless."""

    greedy: GreedySection = GreedySection()
    """Comparison of greedy answers."""
    sampled: SampledSection = SampledSection()
    """Audit of sampled answers."""

    def lossless(self, alpha: float) -> Lossless:
        """Return the rules at a level."""
        return Lossless(
            alpha=alpha,
            max_tie_gap=self.greedy.max_tie_gap,
            hazard_ratio_max=self.greedy.hazard_ratio_max,
            tolerance=self.sampled.tolerance,
        )

"""Records of the advice; `collector.contract.to_document` makes them JSON."""

from dataclasses import dataclass
from enum import StrEnum

from collector.contract import Arm, LoadAdaptation, MayShip


class Action(StrEnum):
    """The advised action on speculation in one scope."""

    KEEP = "keep"
    CHANGE_K = "change_k"
    DISABLE = "disable"
    UNKNOWN = "not_enough_evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An estimate with one-sided 95 % limits; an unknown limit is `None`."""

    estimate: float
    lower: float | None = None
    upper: float | None = None

    def inverse(self) -> "Estimate":
        """Return the estimate of 1/x: of a speed-up, the time as candidate/baseline."""
        lower, upper = (None if end is None else 1 / end for end in (self.upper, self.lower))
        return Estimate(estimate=1 / self.estimate, lower=lower, upper=upper)


@dataclass(frozen=True, slots=True, kw_only=True)
class KForecast:
    """The forecast for k draft tokens a step."""

    k: int
    extrapolated: bool
    """Whether k exceeds the longest logged draft."""
    tokens_a_step: Estimate | None
    step_s: float | None
    """`None` if the cost of such a step is unknown."""
    tpot_speedup: Estimate | None
    gain: Estimate | None
    """Speed-up divided by that of the k served now, minus 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Measured seconds of a step."""

    baseline_step_s: float
    step_s: float
    verify_s: float | None
    """Fixed part of a step; known, like `draft_s`, only if several k were recorded."""
    draft_s: float | None
    """Seconds per draft token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Factors of (k + 1) / observed speed-up of a token; their product is that ratio."""

    acceptance: float
    """(k + 1) / tokens a step: the loss from rejected drafts."""
    cost: float
    """Time of a verify step / time of a baseline step."""
    rest: float
    """Predicted / observed speed-up: everything else, such as steps without a draft."""
    side: str
    """`acceptance` or `cost`, whichever is larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wasted:
    """Draft tokens that were proposed and not accepted."""

    draft_tokens: int
    wasted_tokens: int
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A shorter k worth recording, if only one k is recorded and costs cannot be split."""

    k: int
    gain_at_most: float
    """Upper limit: assumes that the target's pass costs a baseline step, drafting the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeAdvice:
    """The advice for one cohort, or for one load of a cohort."""

    cohort: str | None
    """`None`: all pairs."""
    load: tuple[int, int] | None
    """Minimum and maximum of requests in flight; `None`: every load."""
    action: Action
    """Restricted to what the verdict allows."""
    reason: str
    judged: MayShip | None
    """The newest verdict's answer for the scope; `None`: the rollout has no verdict."""
    missing: tuple[str, ...]
    pairs: int
    left_out: int
    """Pairs without both durations, or with a failed side."""
    k: int | None
    """The k served now."""
    best_k: int | None
    """The fastest k up to the longest recorded; `None` if the cost of only one k is known."""
    e2e_speedup: Estimate | None
    tpot_speedup: Estimate | None
    predicted_tpot_speedup: float | None
    predicted_e2e_speedup: float | None
    steps: int
    acceptance_survival: tuple[float, ...]
    """Entry j is P(accepted ≥ j + 1)."""
    cost: Cost | None
    break_even_tokens_a_step: float | None
    """Tokens a step at which the candidate is as fast as the baseline, at its measured cost."""
    gap: Gap | None
    wasted: Wasted | None
    trial: Trial | None
    by_k: tuple[KForecast, ...]

    @property
    def predicted_tpot_time(self) -> float | None:
        """The predicted time of a token, candidate/baseline."""
        speedup = self.predicted_tpot_speedup
        return None if speedup is None else 1 / speedup


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A rule for requests that a router should send to an arm; `None` is no condition."""

    to: Arm = Arm.BASELINE
    cohort: str | None
    concurrency_at_least: int | None = None
    concurrency_at_most: int | None = None
    max_tokens_below: int | None = None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The advice on a rollout: all pairs first, then each cohort, then each cohort's loads."""

    rollout: str
    others: tuple[str, ...]
    """Rollouts whose acceptance and cost the forecasts use too."""
    bootstrap_seed: int
    bootstrap_draws: int
    scopes: tuple[ScopeAdvice, ...]
    load_adaptations: tuple[LoadAdaptation, ...]
    """How speculation adapts to the load, as far as counts show it."""
    default: Arm
    """The arm for requests that match no route: the candidate only if the verdict is a pass."""
    routes: tuple[Route, ...]
    """The first route that matches applies."""

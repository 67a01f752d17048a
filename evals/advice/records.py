"""What the advisor says, as records; `collector.contract.to_document` makes them JSON."""

from dataclasses import dataclass
from enum import StrEnum

from collector.contract import Answer, Arm


class Action(StrEnum):
    """What to do with speculation in one scope."""

    KEEP = "keep"
    CHANGE_K = "change_k"
    DISABLE = "disable"
    UNKNOWN = "not_enough_evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """An estimate with one-sided 95 % limits; a limit that is not known is `None`."""

    estimate: float
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KForecast:
    """What drafting k tokens a step would bring."""

    k: int
    extrapolated: bool
    """k is beyond the longest draft that was logged."""
    tokens_a_step: Limits | None
    step_s: float | None
    """`None` where nothing recorded tells what such a step costs."""
    tpot_speedup: Limits | None
    gain: Limits | None
    """Speed-up over that of the k served now, less 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of a step, as measured."""

    baseline_step_s: float
    step_s: float
    verify_s: float | None
    """With `draft_s`, only where several k were recorded."""
    draft_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Where the factor between k + 1 and the observed speed-up of a token goes; parts multiply."""

    acceptance: float
    """(k + 1) / tokens a step: drafts that were not accepted."""
    cost: float
    """A verify step's time / a baseline step's."""
    rest: float
    """What the model leaves out, such as steps without a draft: predicted / observed."""
    side: str
    """`acceptance` or `cost`, the larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wasted:
    """Draft tokens that were proposed and not accepted."""

    draft_tokens: int
    wasted_tokens: int
    share: float | None
    money: float | None
    """Their drafting time at the candidate's price; `None` without a price or t_draft."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A shorter k worth recording, where one k alone does not split the cost."""

    k: int
    gain_at_most: float
    """If the target's pass costs a baseline step and drafting all the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeAdvice:
    """The advice for one cohort, under one load where several were recorded."""

    cohort: str | None
    """`None`: all pairs."""
    load: tuple[int, int] | None
    """Requests in flight, first and last; `None`: whatever the load."""
    action: Action
    """Never more than the verdict allows."""
    reason: str
    judged: Answer | None
    """The newest verdict's answer for the scope; `None`: nobody judged the rollout."""
    missing: tuple[str, ...]
    pairs: int
    left_out: int
    """Pairs without both durations, or with a failed side."""
    k: int | None
    """The k served now."""
    best_k: int | None
    """The fastest k up to the longest recorded; `None` where only one k's cost is known."""
    e2e_speedup: Limits | None
    tpot_speedup: Limits | None
    predicted_tpot_speedup: float | None
    predicted_e2e_speedup: float | None
    steps: int
    acceptance_survival: tuple[float, ...]
    """Entry j is P(accepted ≥ j + 1)."""
    cost: Cost | None
    break_even_tokens_a_step: float | None
    """Tokens a step at which the candidate equals the baseline at its measured step cost."""
    gap: Gap | None
    wasted: Wasted | None
    trial: Trial | None
    by_k: tuple[KForecast, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Requests that a router should send to an arm; an absent bound is none."""

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
    default: Arm
    """Where a router should send what no route names: to the candidate if the verdict is a pass."""
    routes: tuple[Route, ...]
    """The first that matches counts."""

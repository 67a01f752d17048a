"""The rules of a policy: the metrics, and the margins that a rule sets for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import model_validator

from collector.contract import LATENCIES, Role, is_share
from evals.policy.reading import Number, PolicySection, Text, choice, one_of, within, wrong
from evals.stats import Bound

Kind = Literal["latency", "score", "goodput", "failures", "tokens", "cache", "throughput", "cost"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Scope = Literal["pooled", "cohort"]
Pass = Annotated[Number, within("a score above 0 and at most 1", lambda score: 0 < score <= 1)]

QUANTILE_STATS = ("p50_ratio", "p95_ratio", "p99_ratio")
LATENCY_STATS = ("geomean_ratio", *QUANTILE_STATS)
SCORE_STATS = ("diff", "mean_diff")


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, and the rules that a policy can make for it."""

    kind: Kind
    words: str
    stats: tuple[str, ...]
    bound: Bound
    """`max` if more is worse."""
    either: bool = False
    """Whether a rule may set the margin on either side."""
    pass_at: float = 1.0
    """Default for the minimum score of a good answer, for stat `diff`."""
    good: str | None = None
    """The words for good answers in `share of …`, if they differ from `words`."""

    def stat_words(self, stat: str) -> str:
        """Name a stat of this metric, such as `p95 time to first token`."""
        if stat == "geomean_ratio":
            return f"geometric-mean {self.words}"
        if stat == "mean_diff":
            return f"mean {self.words} score"
        if is_share(stat):
            return f"share of {self.good or self.words}"
        return f"{stat.removesuffix('_ratio')} {self.words}"

    @property
    def timed(self) -> bool:
        """Whether it is computed from times, which differ between launches of a server."""
        return self.kind in ("latency", "goodput", "throughput", "cost")

    @property
    def scored(self) -> bool:
        """Whether each answer has a value from 0 to 1, of which more is better."""
        return self.kind in ("score", "goodput")


METRICS: Mapping[str, Metric] = {
    **{
        name: Metric("latency", latency.words, LATENCY_STATS, "max")
        for name, latency in LATENCIES.items()
    },
    "task_completion": Metric(
        "score", "task completion", SCORE_STATS, "min", good="completed tasks"
    ),
    "groundedness": Metric(
        "score", "groundedness", SCORE_STATS, "min", pass_at=0.5, good="grounded answers"
    ),
    "schema_validity": Metric(
        "score", "schema validity", SCORE_STATS, "min", good="answers valid by their schema"
    ),
    "format_intact": Metric("score", "answers of intact format", SCORE_STATS, "min"),
    "parity": Metric("score", "answers equal to the baseline's", SCORE_STATS, "min"),
    "goodput": Metric("goodput", "requests within the bounds of goodput", ("diff",), "min"),
    "failures": Metric("failures", "failed or missing answers", ("diff",), "max"),
    "output_tokens": Metric(
        "tokens", "output tokens", ("geomean_ratio", "mean_ratio"), "max", either=True
    ),
    "cached_input_tokens": Metric("cache", "input tokens read from cache", ("rate_diff",), "min"),
    "throughput": Metric("throughput", "output tokens per second", ("mean_ratio",), "min"),
    "cost_per_1k_output_tokens": Metric(
        "cost", "cost per 1,000 output tokens", ("mean_ratio",), "max"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of the policy; with scope `cohort` it makes one cell per cohort."""

    role: Role
    metric: str
    stat: str
    bound: Bound
    margin: float
    """The worst acceptable value: a candidate/baseline ratio, or a candidate − baseline share."""
    scope: Scope
    cohorts: tuple[str, ...] | None
    """The cohorts that must exist; `None`: those in which the metric applies."""
    pass_at: float
    """Minimum score of a good answer, for stat `diff`."""


class RuleSection(PolicySection):
    """A rule, of the role which its list stands for."""

    role: ClassVar[Role]
    metric: Annotated[str, one_of(METRICS)]
    """The metric compared."""
    stat: str
    """Statistic of the metric, such as `geomean_ratio`, `p95_ratio` or `diff`."""
    max: Number | None = None
    """The worst acceptable value, if more is worse."""
    min: Number | None = None
    """The worst acceptable value, if less is worse."""
    scope: Scope
    """One cell for the pool, or one for each cohort."""
    cohorts: tuple[Text, ...] | None = None
    """Cohorts that must be present; default: all to which the metric applies."""
    pass_at: Pass | None = None
    """Score from which an answer is good, for `diff`; default: 1, of `groundedness` 0.5."""

    @property
    def bound(self) -> Bound:
        """The side on which the metric gets worse, or that of the margin if it may be either."""
        metric = METRICS[self.metric]
        return "min" if metric.either and self.min is not None else metric.bound

    @model_validator(mode="after")
    def _fits_its_metric(self) -> "RuleSection":
        metric = METRICS[self.metric]
        if self.stat not in metric.stats:
            raise wrong(choice(metric.stats, self.stat), "stat")
        self._check_margin(metric)
        if self.cohorts is not None and self.scope != "cohort":
            raise wrong("stands only beside scope: cohort", "cohorts")
        if self.cohorts is not None and len({*self.cohorts}) != (len(self.cohorts) or 1):
            raise wrong("wanted at least one cohort, each once", "cohorts")
        if self.pass_at is not None and (metric.kind != "score" or self.stat != "diff"):
            raise wrong("stands only beside stat: diff of a scored metric", "pass_at")
        return self

    def _check_margin(self, metric: Metric) -> None:
        """Raise unless there is one margin, on the side where the metric gets worse."""
        bound, other = self.bound, "min" if self.bound == "max" else "max"
        given: float | None = getattr(self, bound)
        if getattr(self, other) is not None:
            if given is not None:
                hint = "; write a rule for each" if metric.either else ""
                raise wrong(f"wanted one margin, got both max and min{hint}")
            more = "more" if bound == "max" else "less"
            raise wrong(f"wanted {bound} instead: {more} {metric.words} is worse", other)
        if given is None:
            raise wrong(
                f"wanted the key {bound}, the worst acceptable {self.stat} of {self.metric}"
            )
        if not self.stat.endswith("_ratio"):
            self._check_difference(given)
        elif given <= 0:
            raise wrong(f"wanted a ratio above 0, got {given}", bound)

    def _check_difference(self, margin: float) -> None:
        loss = margin if self.bound == "max" else -margin
        if not 0 <= loss < 1:
            side = "from 0 to 1" if self.bound == "max" else "from -1 to 0"
            raise wrong(f"wanted a difference of shares {side}, got {margin}", self.bound)
        if loss == 0 and self.role is Role.PROVE:
            message = "a margin of 0 cannot be proved by any number of pairs; wanted some slack"
            raise wrong(message, self.bound)

    @property
    def rule(self) -> Rule:
        """The rule, with its defaults."""
        pass_at = METRICS[self.metric].pass_at if self.pass_at is None else self.pass_at
        return Rule(
            role=self.role,
            metric=self.metric,
            stat=self.stat,
            bound=self.bound,
            margin=getattr(self, self.bound),
            scope=self.scope,
            cohorts=self.cohorts,
            pass_at=pass_at,
        )


class ProveRule(RuleSection):
    """A rule: the worst acceptable value of a metric."""

    role = Role.PROVE


class GuardRule(RuleSection):
    """A rule: the worst acceptable value of a metric."""

    role = Role.GUARD


class ReportRule(RuleSection):
    """A rule: the worst acceptable value of a metric."""

    role = Role.REPORT

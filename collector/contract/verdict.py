"""The gate's decision on a rollout, and its evidence.

A verdict is a function of (records, policy): it has the hashes of both and no time. A limit that
does not exist is `None`, never an extreme number.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Final, NamedTuple

from collector.contract.change import Change
from collector.contract.family import Family
from collector.contract.records import Arm
from collector.contract.registration import EvidencePart, Outcome, VerdictHistory

FORMAT_VERSION = 1


def is_share(stat: str) -> bool:
    """Return whether a stat is a difference of shares, shown in percentage points."""
    return stat in ("diff", "rate_diff")


class Role(StrEnum):
    """The effect of a cell's outcome on the release."""

    PROVE = "prove"
    """Must pass."""
    GUARD = "guard"
    """Must not fail."""
    REPORT = "report"
    """Is shown, but decides nothing."""


class Reason(StrEnum):
    """Why a cell is inconclusive."""

    TOO_FEW = "n"
    """The limits are too wide for the margin, or the pairs are fewer than the method needs."""
    TOO_CLOSE = "close"
    """The estimate is so close to the margin that no reasonable number of pairs decides."""
    MISSING = "missing"
    """It was not measured or scored."""
    QUALITY = "quality"
    """Too many spans violate the contract."""
    DRIFT = "drift"
    SRM = "srm"
    CLIENT = "client"
    AA = "aa"
    DEPENDENCE = "dependence"
    """Requests are correlated over stretches of time that are too few or too long."""
    MISMATCH = "mismatch"
    """The arms were not requested, served or judged in the same way."""
    LAUNCHES = "launches"
    """Too few launches of the arms' servers, or launches that differ too much."""
    TREATMENT = "treatment"
    """The candidate did not apply the treatment that is to be judged."""
    STATE = "state"
    """An arm's answers depend on the requests before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One metric in one scope: baseline against candidate, against the policy's margin.

    `estimate`, `lower`, `upper` and `margin` are in the unit of `stat`: a candidate/baseline ratio,
    or a candidate − baseline difference. The limits are one-sided, each at `confidence`.
    """

    metric: str
    stat: str
    """geomean_ratio, p95_ratio, diff, …"""
    cohort: str | None
    """None: all cohorts pooled."""
    role: Role
    outcome: Outcome
    reason: Reason | None
    """Set if and only if the outcome is inconclusive."""
    bound: str
    """`max` or `min`: whether the margin is an upper or a lower bound."""
    margin: float
    unit: str
    """`ratio` or `difference`."""
    confidence: float
    n: int
    """Pairs used for the estimate."""
    n_needed: int | None = None
    """Further pairs needed for this cell to decide; None if unknown or decided."""
    launches: tuple[float | None, ...] = ()
    """The estimate in each launch of the arms' servers, in order of time, if the limits hold over
    launches; None where it is infinite."""
    launches_needed: int | None = None
    """Further launches of each arm needed for this cell to decide."""
    look: int | None = None
    """The declared look at which it was judged, from 1; None without declared looks."""
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    p_fail: float | None = None
    """One-sided p-value for the null hypothesis "no worse than the margin", before Holm; over all
    looks taken if there are declared ones."""
    method: str
    """Name and version of the method, such as `tango-1998/1`."""
    message: str
    """The finding in a sentence, with units."""
    note: str | None = None
    """What the message says besides its numbers and `because`."""
    because: str | None = None
    """Why it is inconclusive; None if decided, and in a lossless cell, whose `note` says it."""


P99_FROM: Final = 100
"""Fewest values that have a p99: of fewer, it would be close to the greatest of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Exact sample percentiles, R-7; `None` if n is 0, and p99 if n is below `P99_FROM`."""

    n: int
    p50: float | None
    p95: float | None
    p99: float | None


class LatencyName(NamedTuple):
    """The names of a latency, which are the same in tables, policies, reports and pages."""

    short: str
    title: str
    """Title of a column of a plain table."""
    words: str


def _names(short: str, title: str, words: str) -> Mapping[str, LatencyName]:
    return {"latency": LatencyName(short, title, words)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmLatency:
    """Latency of one arm in one scope, over the paired generations that succeeded, in seconds."""

    cohort: str | None
    arm: Arm
    generations: int
    errors: int
    ttft_s: Percentiles = field(metadata=_names("TTFT", "First token", "time to first token"))
    ttfo_s: Percentiles = field(
        metadata=_names("TTFO", "First output token", "time to first output token")
    )
    """Time to the first token of the answer; `ttft_s` may be that of the reasoning before it."""
    tpot_s: Percentiles = field(metadata=_names("TPOT", "Each token", "time per output token"))
    e2e_s: Percentiles = field(metadata=_names("end to end", "End to end", "end-to-end latency"))


LATENCIES: Final[Mapping[str, LatencyName]] = {
    one.name.removesuffix("_s"): one.metadata["latency"]
    for one in fields(ArmLatency)
    if "latency" in one.metadata
}
"""Single source of truth for the latencies that are judged and reported, by metric.

A latency's values are in the field `{metric}_s` of `Generation`, in seconds.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Speculation counts of one arm in one scope, and two ratios of their sums."""

    cohort: str | None
    arm: Arm
    generations: int
    """Generations with usable counts."""
    excluded: int
    """Generations that speculated but whose counts are missing or violate the contract."""
    steps: int
    draft_tokens: int
    accepted_tokens: int
    rate: float | None
    """accepted_tokens / draft_tokens; None if nothing was drafted."""
    length: float | None
    """1 + accepted_tokens / steps, bonus token included; None without steps."""
    rate_per_pos: tuple[float, ...]
    """Entry j: accepted / proposed at draft position j."""
    drafts_per_pos: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftsAtLoad:
    """The candidate's drafts at one load."""

    in_flight: tuple[int, int]
    """Range of requests in flight, both ends included."""
    answers: int
    """Answers that count their draft tokens."""
    undrafted: int
    """Of these, answers without a draft token."""
    drafts_per_step: float | None
    """Draft tokens per verify step of the other answers; None without any."""


class LoadAdaptationName(StrEnum):
    """How speculation adapts to the load."""

    OFF_UNDER_LOAD = "speculation_off_under_load"
    """At a high load, more answers are served without drafts."""
    ADAPTIVE_DRAFT_LENGTH = "adaptive_draft_length"
    """The number of drafts per step depends on the load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadAdaptation:
    """A clear difference of the candidate's drafts between its lowest and its highest load."""

    name: LoadAdaptationName
    low: tuple[int, int]
    """Range of requests in flight."""
    high: tuple[int, int]
    at_low: float
    """The share of answers without a draft, or the drafts per step."""
    at_high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergedAnswers:
    """Comparison of both arms' greedy answers, with the position of the first differing token.

    Without a tokenizer, the position is that of the first differing character.
    """

    cohort: str | None
    in_flight: tuple[int, int] | None
    """Range of the candidate's requests in flight, both ends included; None: any load."""
    compared: int
    """Pairs in which both answers were requested at temperature 0, and both are known."""
    diverged: int
    position_p25: float | None
    position_p50: float | None
    position_p75: float | None
    """R-7 percentiles over the answers that differ; None if no position is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerValidity:
    """One arm's answers under a schema or with tools: how many are valid, where others break."""

    judged: int
    """Answers with a score of schema validity; failed requests are not among them."""
    invalid: int
    faults: Mapping[str, int] = field(default_factory=dict)
    """Invalid answers by the score's label: `not_json`, `invalid` under a schema, `no_calls`."""
    position_p25: float | None = None
    position_p50: float | None = None
    position_p75: float | None = None
    """R-7 percentiles of the characters before the place at which an invalid answer breaks; None
    if no place is known."""
    share_p50: float | None = None
    """Median of that position over the answer's length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredAnswers:
    """Validity of both arms' answers in one scope."""

    cohort: str | None
    in_flight: tuple[int, int] | None
    """Range of requests in flight when the answer was asked for, both ends included; None: any
    load."""
    baseline: AnswerValidity
    candidate: AnswerValidity


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelChange:
    """The first answer of a sentinel that differs from the one before it."""

    trace_id: str
    start_unix_ns: int
    number: int
    """Its place among the sentinel's answers, from 2."""
    after: str | None
    """The prompt of the same prefix that the arm was asked directly before."""
    requests: int
    """Requests of the workload that the arm was sent since the answer before."""
    prompt_id: str | None
    """The last of these; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelAnswers:
    """One arm's answers to a greedy prompt that the run asked again and again."""

    sentinel: str
    arm: Arm
    launch: str | None
    """The launch of the server that answered; None if it is not recorded."""
    answers: int
    """Requests that were answered."""
    changed: int
    """Answers other than the most frequent one."""
    depends: bool
    """Whether the answer depends on time or on the neighbour, beyond chance."""
    first_change: SentinelChange | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityCounts:
    """Scores of one metric in one scope, over pairs with a score on both sides."""

    metric: str
    cohort: str | None
    n: int
    unscored: int
    """Pairs with an unscored or missing side."""
    baseline_mean: float | None
    candidate_mean: float | None
    wins: int
    """Pairs in which the candidate's score is higher."""
    losses: int
    ties: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CostComparison:
    """Cost of both arms' answers in one scope, in money per million output tokens."""

    cohort: str | None
    currency: str
    """Empty if the prices are in several."""
    n: int
    """Pairs that both arms answered, and whose cost is known; for split traffic, answers of the
    arm that has fewer."""
    left_out: int
    """Answered pairs whose cost is unknown."""
    in_flight: float | None
    """Mean requests in flight at a route, which share the price of an hour; None if no route is
    priced by hour."""
    confidence: float
    """Of each limit, one-sided."""
    baseline: float | None
    candidate: float | None
    difference: float | None
    """candidate − baseline."""
    lower: float | None
    upper: float | None
    rejected_drafts: float | None
    """Part of `candidate` that was spent on drafts that were rejected."""
    rejected_drafts_lower: float | None
    rejected_drafts_upper: float | None
    notes: tuple[str, ...] = ()
    """Why numbers are None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCapacity:
    """The work of one arm in one scope; a second is one from its first start to its last end."""

    cohort: str | None
    arm: Arm
    requests: int
    """In paired designs those of all pairs, whether or not an answer arrived."""
    good: int | None
    """Requests answered within the policy's bounds of goodput; None without bounds."""
    unknown: int | None
    """Requests of which it is unknown, such as answers without usable times."""
    good_per_s: float | None
    output_tokens_per_s: float | None
    """None if an answer's number of tokens is unknown."""
    in_flight: float | None
    """Mean answers of the scope in flight while there are any."""


class MayShip(StrEnum):
    """Whether the candidate may be released to a cohort."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortAnswer:
    """The verdict for one cohort, from its own cells and the failed cells of the pool."""

    cohort: str
    pairs: int
    answer: MayShip
    because: str
    """The reasons, or the missing evidence, in words."""
    prompts_needed: int | None = None
    """Further workload prompts, over all cohorts, after which its cells that must pass can decide;
    None if more prompts would not decide it, or if the number is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A cohort with few pairs, judged only in the pool, without its own cells."""

    cohort: str
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCounts:
    """The launches of the arms' servers over which a verdict's times were measured."""

    baseline: int
    candidate: int
    independent: int
    """Disjoint groups of launches in which both arms answered."""
    holds_over_launches: bool
    """Whether limits hold over launches; otherwise they hold only for these launches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeLooks:
    """The looks of one scope that a run declared to end when it is decided."""

    cohort: str | None
    """None: all cohorts pooled."""
    pairs: tuple[int, ...]
    """The pairs of each look; empty if no pair of the scope has named them."""
    taken: int
    decided_at: int | None = None
    """The look, from 1, by which all its cells that must pass had passed, or at which one that
    decides failed; None if some are undecided, or if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision on a rollout."""

    format_version: int = FORMAT_VERSION
    rollout: str
    outcome: Outcome
    change: Change | None = None
    """The candidate's change; None if nobody said."""
    family: Family | None = None
    """The family that the rollout is judged in, at levels divided by its size; None if alone."""
    summary: str
    """The verdict in one sentence."""
    reasons: tuple[str, ...]
    """The decisive findings, one sentence each, worst first."""
    not_judged: tuple[str, ...] = ()
    """Cells that must pass or must not fail but could not be judged, each with the reason."""
    undecided: tuple[str, ...] = ()
    """Guards and reported cells that were measured, or have nothing to measure, but decide nothing,
    each with the reason."""
    reported_failing: tuple[str, ...] = ()
    """Cells that are only reported and are beyond their margin."""
    suspicions: tuple[str, ...] = ()
    """Signs that the candidate is broken, whatever the policy requires."""
    cohorts: tuple[CohortAnswer, ...] = ()
    """The answer for each cohort, ordered by name."""
    set_aside: tuple[SetAside, ...] = ()
    """Cohorts without their own cells, by the policy's `cohorts.set_aside_below`."""
    prompts_needed: int | None = None
    """Further workload prompts, with as many repeats as in this run, after which every cell that
    must pass can decide: the maximum over cells. None if the release is decided, or if the number
    is unknown."""
    prompts_needed_for_guards: int | None = None
    """The same for undecided guards, which do not delay the release."""
    launches: LaunchCounts | None = None
    """None if no times are judged, or if not every answer names its launch."""
    launches_needed: int | None = None
    """Further launches of each arm after which every cell that must pass can decide: the maximum
    over cells. None if launches are not lacking."""
    looks: tuple[ScopeLooks, ...] = ()
    """For the pool and each cohort that has cells; empty unless the run ended when decided."""
    assumption: str = ""
    """The longest harm that the verdict protects against, and what protection beyond it needs."""
    pairs: int
    """Prompts and repeats with a generation in either arm."""
    incomplete_pairs: int
    """Of these, pairs with a side that has not arrived."""
    failed_pairs: int
    """Of these, pairs with a side that failed."""
    duplicates: int
    """Later generations with a key that is taken already; ignored."""
    findings: tuple[Finding, ...]
    latency: tuple[ArmLatency, ...]
    acceptance: tuple[Acceptance, ...]
    drafts_by_load: tuple[DraftsAtLoad, ...] = ()
    """Empty unless the candidate counted drafts at several loads."""
    load_adaptations: tuple[LoadAdaptation, ...] = ()
    """How the candidate's speculation adapts to the load, as far as its counts show it."""
    quality: tuple[QualityCounts, ...]
    divergence: tuple[DivergedAnswers, ...] = ()
    """For the pool, for each cohort, and for each load if several were recorded."""
    goodput_ms: Mapping[str, float] = field(default_factory=dict)
    """The policy's bounds of goodput in milliseconds: `ttft_ms`, `tpot_ms`, …"""
    capacity: tuple[ArmCapacity, ...] = ()
    """For the pool and each cohort; empty unless the policy bounds goodput or judges throughput."""
    costs: tuple[CostComparison, ...] = ()
    """For the pool and each cohort; empty if no answer carries a price."""
    structured_answers: tuple[StructuredAnswers, ...] = ()
    """For the pool and each cohort, each at any load, and at each load that has a twentieth of the
    answers, if several have."""
    sentinels: tuple[SentinelAnswers, ...] = ()
    """Answers to the prompts that the run asked again and again, by sentinel, launch and arm."""
    policy_name: str
    policy_hash: str
    """SHA-256 of the canonical policy."""
    data_hash: str
    """SHA-256 of the canonical evidence."""
    versions: Mapping[str, str] = field(default_factory=dict)
    evidence: tuple[EvidencePart, ...] = ()
    """The stored pairs behind it, one entry per rollout; empty for a verdict of `watch`."""
    history: VerdictHistory | None = None
    """None if it was not requested from a collector."""

    @property
    def moves_ramp(self) -> bool:
        """Whether it may move a ramp: a watch's only if it fails, since it includes older pairs."""
        return "watch" not in self.versions or self.outcome is Outcome.FAIL


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVerdict:
    """A verdict as stored by the collector."""

    id: str
    """SHA-256 of the verdict's canonical document: equal verdicts have equal ids."""
    posted_unix_ns: int
    verdict: Verdict
    who: str | None = None
    """Name of the API key that posted it; `local` if no key was needed; None if not recorded."""
    key_id: str | None = None

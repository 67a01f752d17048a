"""The gate's decision on a rollout, and its evidence.

A verdict is a function of (records, policy): it carries the hashes of both and no clock. Where a
limit does not exist it is `None`, never an extreme number.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from collector.contract.records import Arm
from collector.contract.registration import EvidencePart, Outcome, VerdictHistory

FORMAT_VERSION = 1


class Role(StrEnum):
    """The effect of a cell's outcome on the release."""

    PROVE = "prove"
    """Must pass."""
    GUARD = "guard"
    """Must not fail."""
    REPORT = "report"
    """Is shown, and decides nothing."""


class Reason(StrEnum):
    """Why a cell is inconclusive."""

    TOO_FEW = "n"
    """The limits are too wide for the margin, or the pairs are fewer than the method needs."""
    TOO_CLOSE = "close"
    """The estimate lies so near the margin that no reasonable number of pairs decides."""
    MISSING = "missing"
    """Nobody measured or scored it."""
    QUALITY = "quality"
    """Too many spans broke the contract."""
    DRIFT = "drift"
    SRM = "srm"
    CLIENT = "client"
    AA = "aa"
    DEPENDENCE = "dependence"
    """Requests depend on each other over stretches that are too few, or too long."""
    MISMATCH = "mismatch"
    """The arms were not asked, served or judged alike."""
    LAUNCHES = "launches"
    """Too few launches of the arms' servers, or launches that differ too much."""
    TREATMENT = "treatment"
    """The candidate did not do what it is to be judged for."""


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
    """None is the pool of all cohorts."""
    role: Role
    outcome: Outcome
    reason: Reason | None
    """Set exactly if the outcome is inconclusive."""
    bound: str
    """`max` or `min`: the side on which the margin stands."""
    margin: float
    unit: str
    """`ratio` or `difference`."""
    confidence: float
    n: int
    """Pairs that the estimate rests on."""
    n_needed: int | None = None
    """Pairs still needed for this cell to be able to decide; None if unknown or decided."""
    launches: tuple[float | None, ...] = ()
    """The estimate in each launch of the arms' servers, in order of time, if the limits hold over
    launches; None where it has no end."""
    launches_needed: int | None = None
    """Launches of each arm still needed for this cell to be able to decide."""
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    p_fail: float | None = None
    """One-sided p value against "no worse than the margin", before Holm."""
    method: str
    """Name and version of the method, such as `tango-1998/1`."""
    message: str
    """The finding in words, with units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Exact sample percentiles, R-7; `None` where n is 0."""

    n: int
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmLatency:
    """Latency of one arm in one scope, over the paired generations that succeeded, in seconds."""

    cohort: str | None
    arm: Arm
    generations: int
    errors: int
    ttft_s: Percentiles
    ttfo_s: Percentiles
    """Of the first token of the answer itself; `ttft_s` may be of the reasoning before it."""
    tpot_s: Percentiles
    e2e_s: Percentiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Speculation counts of one arm in one scope, and the two ratios made from their sums."""

    cohort: str | None
    arm: Arm
    generations: int
    """Generations whose counts are usable."""
    excluded: int
    """Generations that speculated but whose counts are absent or break the contract."""
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
class DivergedAnswers:
    """Greedy answers of both arms, compared; the position is of the first token that differs.

    Of the first character, where no tokenizer was at hand.
    """

    cohort: str | None
    in_flight: tuple[int, int] | None
    """The candidate's requests in flight, first and last; None: whatever the load."""
    compared: int
    """Pairs of which both answers were asked for at temperature 0, and both are known."""
    diverged: int
    position_p25: float | None
    position_p50: float | None
    position_p75: float | None
    """R-7 percentiles over the answers that differ; None where no position is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityCounts:
    """Scores of one metric in one scope, over pairs that both arms have a score for."""

    metric: str
    cohort: str | None
    n: int
    unscored: int
    """Pairs with at least one side unscored or missing."""
    baseline_mean: float | None
    candidate_mean: float | None
    wins: int
    """Pairs in which the candidate's score is higher."""
    losses: int
    ties: int


class Answer(StrEnum):
    """Whether a cohort may have the candidate."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortAnswer:
    """The verdict's answer for one cohort: by its own cells, and by what failed in the pool."""

    cohort: str
    pairs: int
    answer: Answer
    because: str
    """The reasons, or what is missing, in words."""
    prompts_needed: int | None = None
    """Further workload prompts, of all cohorts, after which its cells that must pass can decide;
    None if more prompts would not settle it, or if nobody knows how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A cohort of a few pairs that the policy has no cell for, in the pool alone."""

    cohort: str
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCounts:
    """The launches of the arms' servers that a verdict's times rest on."""

    baseline: int
    candidate: int
    independent: int
    """Groups of launches that share no launch, in which both arms answered."""
    holds_over_launches: bool
    """Whether limits are taken over launches; else they speak of these launches alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision on a rollout."""

    format_version: int = FORMAT_VERSION
    rollout: str
    outcome: Outcome
    summary: str
    """The verdict in one sentence."""
    reasons: tuple[str, ...]
    """One sentence each: what decided, worst first."""
    not_judged: tuple[str, ...] = ()
    """Cells that must pass or must not fail and could not be judged, each with the reason why."""
    undecided: tuple[str, ...] = ()
    """Guards and reported cells that were measured, or have nothing to measure, and decide nothing,
    each with the reason why."""
    reported_failing: tuple[str, ...] = ()
    """Cells that are only reported, and are beyond their margin."""
    suspicions: tuple[str, ...] = ()
    """Signs that something of the candidate is broken, whatever the policy asks for."""
    cohorts: tuple[CohortAnswer, ...] = ()
    """An answer for each cohort, by name."""
    set_aside: tuple[SetAside, ...] = ()
    """Cohorts that no cell was made for, by the policy's `cohorts.set_aside_below`."""
    prompts_needed: int | None = None
    """Further workload prompts, with as many repeats as in this run, after which every cell that
    must pass can decide: the largest need. None if the release is decided, or if nobody knows
    of any."""
    prompts_needed_for_guards: int | None = None
    """The same for guards that do not decide yet; they do not hold the release up."""
    launches: LaunchCounts | None = None
    """None if no times are judged, or not every answer says which launch gave it."""
    launches_needed: int | None = None
    """Further launches of each arm after which every cell that must pass can decide: the largest
    need. None if launches are not what is lacking."""
    assumption: str = ""
    """How long harm may last that the verdict protects against, and what more would need."""
    pairs: int
    """Prompts and repeats seen in either arm."""
    incomplete_pairs: int
    """Of these, those with a side that never arrived."""
    failed_pairs: int
    """Of these, those with a side that answered with an error."""
    duplicates: int
    """Later generations under a key already taken; ignored."""
    findings: tuple[Finding, ...]
    latency: tuple[ArmLatency, ...]
    acceptance: tuple[Acceptance, ...]
    quality: tuple[QualityCounts, ...]
    divergence: tuple[DivergedAnswers, ...] = ()
    """Of the pool, of each cohort, and of each load where several were recorded."""
    policy_name: str
    policy_hash: str
    """SHA-256 of the canonical policy."""
    data_hash: str
    """SHA-256 of the canonical evidence."""
    versions: Mapping[str, str] = field(default_factory=dict)
    evidence: tuple[EvidencePart, ...] = ()
    """The stored pairs behind it, one entry a rollout; empty for a verdict of `watch`."""
    history: VerdictHistory | None = None
    """None if nobody asked a collector for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVerdict:
    """A verdict as the collector keeps it."""

    id: str
    """SHA-256 of the verdict's canonical document: the same verdict has the same id."""
    posted_unix_ns: int
    verdict: Verdict
    who: str | None = None
    """Name of the API key that posted it; `local` if no key was needed; None if nobody noted it."""
    key_id: str | None = None

    @property
    def moves_ramp(self) -> bool:
        """Whether a ramp heeds it: a watch's does only if it fails, for its pairs are older too."""
        return "watch" not in self.verdict.versions or self.verdict.outcome is Outcome.FAIL

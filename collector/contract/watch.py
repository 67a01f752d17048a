"""The state of `draftgate watch` on a rollout.

One document is both the state from which a restart or another watcher continues, and the data that
the dashboard shows: e-values over the pairs, limits, and past and future looks. Logarithms are
natural. Estimates, limits and margins are as in a `Finding`: a candidate/baseline ratio, or a
candidate − baseline difference.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from collector.contract.records import SwitchChange
from collector.contract.registration import Outcome
from collector.contract.verdict import Reason, Role

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EProcess:
    """Evidence against one hypothesis, valid at every look."""

    limit: float
    """The mean loss, or gain, that the hypothesis allows."""
    n: int = 0
    log_wealth: tuple[float, ...]
    """One entry per bettor; with `limit` and `n`, the whole state."""
    log_e: float = 0.0
    """Log of the current e-value; 0 means no evidence."""
    highest_log_e: float = 0.0
    """Log of the highest e-value so far, which decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectSums:
    """Split traffic: the sums from which the confidence sequence continues."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0
    """Σ(φ − mean)²."""
    counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By cohort (empty string for none): the number of baseline and candidate answers."""
    sums: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By cohort: the sums of their outcomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchLook:
    """One look, declared before the first pair and taken once."""

    pairs: int
    alpha: float
    """The significance level spent at this look."""
    outcome: Outcome | None = None
    """None if not taken yet."""
    reason: Reason | None = None
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    p_fail: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPath:
    """The history of a cell: parallel lists, the oldest entry first, thinned as they grow."""

    time_unix_ns: tuple[int, ...] = ()
    n: tuple[int, ...] = ()
    estimate: tuple[float, ...] = ()
    log_e_pass: tuple[float, ...] = ()
    """Empty if the cell has no e-process, as in split traffic."""
    log_e_fail: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCell:
    """One metric in one scope against one margin, in its current state."""

    metric: str
    """A policy's metric, or `slo_exceedance`: the share slower than the rollback's threshold."""
    stat: str
    cohort: str | None
    """None: all cohorts pooled."""
    role: Role
    bound: str
    margin: float
    pass_at: float
    method: str
    outcome: Outcome = Outcome.INCONCLUSIVE
    """Final once it is a fail; a pass becomes a fail if later pairs show harm."""
    reason: Reason | None = Reason.TOO_FEW
    because: str | None = None
    """The observation in a window that keeps it undecided; None if `reason` suffices."""
    message: str = ""
    n: int = 0
    """Pairs counted; in split traffic, requests."""
    mean: float = 0.0
    """Mean of the differences, candidate − baseline."""
    squares: float = 0.0
    """Σ(difference − mean)²."""
    baseline_sum: float | None = None
    """Sum of the baseline's values over the pairs counted; None if there are none."""
    estimate: float | None = None
    lower: float | None = None
    """One-sided limits, valid at every look if harm lasts no longer than the policy's stretch;
    asymptotic, from 150 pairs on. If there are e-values, they decide."""
    upper: float | None = None
    p_fail: float | None = None
    """P-value for "no worse than the margin", valid at every look; input to Holm's correction."""
    log_e_to_pass: float | None = None
    """The e-value that `passing` must reach."""
    log_e_to_fail: float | None = None
    """The e-value that `failing` must reach, after Holm's correction."""
    passing: EProcess | None = None
    failing: EProcess | None = None
    split: EffectSums | None = None
    looks: tuple[WatchLook, ...] = ()
    """Empty if an e-process or a confidence sequence decides."""
    next_look: int | None = None
    """Number of pairs at which the next look is taken."""
    path: WatchPath = WatchPath()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCohort:
    """Counts of what arrived in one cohort."""

    cohort: str | None
    """None: generations without a cohort. The pool is the sum of all."""
    baseline: int = 0
    candidate: int = 0
    complete: int = 0
    """Pairs whose sides have both arrived; in split traffic, answers."""
    failed: int = 0
    """Of these, pairs with a side that failed."""
    duplicates: int = 0
    """Duplicate generations of these pairs that had arrived when they were counted."""
    scored: Mapping[str, int] = field(default_factory=dict)
    """Pairs with a usable score, by metric."""
    owed: Mapping[str, int] = field(default_factory=dict)
    """Of these pairs, those with the inputs that a metric needs, by metric."""
    unsaid: int = 0
    """Of these pairs, those for which it is not recorded which inputs they have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchDoubt:
    """A reason, found in a window, why no cell may pass; cells can still fail."""

    reason: Reason
    words: str
    metric: str | None = None
    """The only metric affected; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSpeculation:
    """Speculation reported in answers of the candidate's own route."""

    answered: int = 0
    silent: int = 0
    """Answers without any speculation attribute."""
    counted: int = 0
    """Answers with a count of draft tokens."""
    drafted: int = 0
    """Answers with at least one draft token."""
    judged: int = 0
    """Of these, answers that also count the accepted tokens."""
    draft_tokens: int = 0
    """Sum over `judged` answers."""
    accepted_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmServed:
    """How an arm's answers were served, as they report it."""

    fingerprints: tuple[str, ...] = ()
    """Sorted; only some if there are many."""
    methods: tuple[str, ...] = ()
    """Speculation methods, sorted; only some if there are many."""
    silent: int = 0
    """Answers without a fingerprint."""
    requests: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceWatch:
    """The alarm on the candidate's acceptance rate in one cohort: the mean over requests."""

    cohort: str | None
    """None: requests without a cohort."""
    number: int
    """1 for the first cohort that appeared; later ones have less of the false alarms."""
    first: tuple[float, ...] = ()
    """The first requests' rates, until there are enough of them for the reference."""
    reference: float | None = None
    """Mean rate of the first requests; None: too few so far."""
    lately: float | None = None
    """Exponentially weighted mean of the newest rates."""
    stretch: float = 1
    """Requests over which neighbours depend on each other."""
    fall: EProcess | None = None
    """Evidence that the rate fell, from some request on, by more than the limit."""
    drifted: bool = False
    """Stays once it is raised, until the switch is set on again after the watch set it off."""
    message: str = ""
    """The fall in one sentence, once it is raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchAction:
    """A change of the switch by the watch."""

    time_unix_ns: int
    pairs: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """The state of watching a rollout under a policy."""

    format_version: int = FORMAT_VERSION
    rollout: str
    policy_name: str
    policy_hash: str
    arrived_up_to: int = 0
    """The last generation id processed."""
    scored_up_to: int = 0
    """The last score revision processed."""
    count_after: int | None = None
    """Pairs completed after this generation id count; earlier ones are the warm-up. None until the
    warm-up is over."""
    pairs: int = 0
    """Complete pairs that count; in split traffic, requests."""
    speculation: ReportedSpeculation = ReportedSpeculation()
    """Counts of the candidate's answers in these pairs."""
    acceptance: tuple[AcceptanceWatch, ...] = ()
    """By cohort, in the order of appearance."""
    repeats: int = 0
    """Complete pairs excluded because an earlier repeat of their prompt counts."""
    outcome: Outcome = Outcome.INCONCLUSIVE
    summary: str = ""
    reasons: tuple[str, ...] = ()
    posted: str = ""
    """Outcomes of the last posted verdict."""
    threshold_s: float | None = None
    """The rollback's threshold; None: not fixed yet, or the policy has none."""
    exceed_after: int | None = None
    """Pairs completed after this generation id are compared with the threshold."""
    stretch: float = 1
    """Requests in the longest declared stretch of harm, for which the e-values are corrected."""
    recent_starts: Mapping[str, int] = field(default_factory=dict)
    """The newest requests by tenth of the policy's stretch of time; empty if it has none."""
    epoch: int = 0
    """Increases when the switch is set on again after the watch set it off: evidence for a fail
    is then reset, so that only new harm sets it off again."""
    switch_event: int = 0
    """Id of the newest switch event that the watch has processed."""
    actions: tuple[WatchAction, ...] = ()
    workload: Mapping[str, int] = field(default_factory=dict)
    """Planned pairs per cohort, if a run reported them."""
    doubts: tuple[WatchDoubt, ...] = ()
    """Reasons found in any window why cells may not pass."""
    judges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Evaluators and versions by metric; a run should have one each."""
    served: Mapping[str, ArmServed] = field(default_factory=dict)
    """By arm; a run should have one configuration and one speculation method each."""
    rerouted: int = 0
    """Pairs with a side that was answered by another route."""
    shorter: tuple[int, int] = (0, 0)
    """Pairs whose candidate answer is much shorter than the baseline's, and vice versa."""
    times: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Smallest hashes of pairs' times, by what was timed; equal ones were copied."""
    mixes: Mapping[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    """Split traffic: baseline and candidate answers by column and bin of its values."""
    cohorts: tuple[WatchCohort, ...] = ()
    cells: tuple[WatchCell, ...] = ()

    @property
    def place_hash(self) -> str:
        """SHA-256 of the position up to which everything is counted."""
        place = f"{self.rollout} {self.arrived_up_to} {self.scored_up_to} {self.epoch}"
        return hashlib.sha256(place.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWatch:
    """A watch as stored by the collector, one per rollout and policy."""

    version: int
    """Increases by one with every update; an update names the version that it continues."""
    updated_unix_ns: int
    watch: Watch
    key_id: str | None = None
    """Id of the API key that posted it; None if no key was needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchUpdate:
    """The next state of a watch, and the change of the switch to store atomically with it."""

    continues: int
    """The version that this continues; 0 for the first."""
    watch: Watch
    switch: SwitchChange | None = None

"""What `draftgate watch` knows of a rollout while traffic flows.

One document is both the state that a restart, or another watcher, continues, and what a page draws:
e-values over the pairs, limits, and the looks taken and to come. Logarithms are natural. Estimates,
limits and margins are as in a `Finding`: a candidate/baseline ratio, or a candidate − baseline
difference.
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
    """Evidence against one hypothesis, valid at whatever moment one looks."""

    limit: float
    """The mean loss, or gain, that the hypothesis allows."""
    n: int = 0
    log_wealth: tuple[float, ...]
    """One entry a bettor: with `limit` and `n`, the whole state."""
    log_e: float = 0.0
    """Log of the e-value now; 0 is no evidence."""
    highest_log_e: float = 0.0
    """Log of the highest e-value so far: what decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectSums:
    """Split traffic: the sums from which the confidence sequence goes on."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0
    """Σ(φ − mean)²."""
    counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By cohort (`` for none): answers of the baseline, and of the candidate."""
    sums: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By cohort: their outcomes, summed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchLook:
    """One look, declared before the first pair; taken once and never again."""

    pairs: int
    alpha: float
    """The level spent there."""
    outcome: Outcome | None = None
    """None: not taken yet."""
    reason: Reason | None = None
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    p_fail: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPath:
    """How a cell got where it is: parallel lists, the oldest first, thinned as they grow."""

    time_unix_ns: tuple[int, ...] = ()
    n: tuple[int, ...] = ()
    estimate: tuple[float, ...] = ()
    log_e_pass: tuple[float, ...] = ()
    """Empty if the cell has no e-process, as in split traffic."""
    log_e_fail: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCell:
    """One metric in one scope against one margin, as it stands."""

    metric: str
    """A policy's metric, or `slo_exceedance`: the share slower than the rollback's threshold."""
    stat: str
    cohort: str | None
    """None is the pool of all cohorts."""
    role: Role
    bound: str
    margin: float
    pass_at: float
    method: str
    outcome: Outcome = Outcome.INCONCLUSIVE
    """Kept once it is pass or fail, but a pass becomes a fail if harm shows later."""
    reason: Reason | None = Reason.TOO_FEW
    because: str | None = None
    """What a window showed that keeps it undecided; None: the reason says it."""
    message: str = ""
    n: int = 0
    """Pairs counted; in split traffic requests."""
    mean: float = 0.0
    """Of the differences, candidate − baseline."""
    squares: float = 0.0
    """Σ(difference − mean)²."""
    baseline_sum: float | None = None
    """Of the baseline's values, over the pairs counted; None if there are none."""
    estimate: float | None = None
    lower: float | None = None
    """One-sided limits that hold at every moment, if harm lasts no longer than the policy's
    stretch; asymptotic, from 150 pairs on. The e-values decide if there are any."""
    upper: float | None = None
    p_fail: float | None = None
    """P value against "no worse than the margin", valid at every moment; Holm's family takes it."""
    log_e_to_pass: float | None = None
    """The e-value that `passing` must reach."""
    log_e_to_fail: float | None = None
    """The e-value that `failing` must reach, after Holm's correction."""
    passing: EProcess | None = None
    failing: EProcess | None = None
    split: EffectSums | None = None
    looks: tuple[WatchLook, ...] = ()
    """Empty if an e-process or a confidence sequence judges."""
    next_look: int | None = None
    """Pairs at which the next look is taken."""
    path: WatchPath = WatchPath()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCohort:
    """What arrived of one cohort."""

    cohort: str | None
    """None: generations that name none. The pool is the sum of all."""
    baseline: int = 0
    candidate: int = 0
    complete: int = 0
    """Pairs of which both sides arrived; in split traffic answers."""
    failed: int = 0
    """Of these, those with a side that failed."""
    duplicates: int = 0
    """Reruns of these that had arrived when they were counted."""
    scored: Mapping[str, int] = field(default_factory=dict)
    """Pairs that count for a score, by metric."""
    owed: Mapping[str, int] = field(default_factory=dict)
    """Of these pairs, those that carry what a metric needs, by metric."""
    unsaid: int = 0
    """Of these pairs, those of which nobody recorded what they carry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchDoubt:
    """Why nothing passes on what arrived, as first seen in a window; harm fails all the same."""

    reason: Reason
    words: str
    metric: str | None = None
    """The only metric that it touches; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationCounts:
    """What answers that the candidate's own route gave say of speculation."""

    answered: int = 0
    silent: int = 0
    """Answers that say nothing of it."""
    counted: int = 0
    """Answers with a count of draft tokens."""
    drafted: int = 0
    """Answers whose counts show a drafted token."""
    judged: int = 0
    """Answers with drafts that count the accepted tokens, too."""
    draft_tokens: int = 0
    """Of these."""
    accepted_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmServed:
    """What an arm's answers say of how they were served."""

    fingerprints: tuple[str, ...] = ()
    """Sorted; of many some."""
    methods: tuple[str, ...] = ()
    """Of speculation; sorted, of many some."""
    silent: int = 0
    """Answers without a fingerprint."""
    requests: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchAction:
    """An action of the watch on the switch, with its reason."""

    time_unix_ns: int
    pairs: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A rollout under a policy, as far as it has been watched."""

    format_version: int = FORMAT_VERSION
    rollout: str
    policy_name: str
    policy_hash: str
    arrived_up_to: int = 0
    """Generations up to this one are counted; grows in the order of arrival."""
    scored_up_to: int = 0
    """Scores up to this one are counted; grows in the order of their first post."""
    count_after: int | None = None
    """Pairs that completed after this arrival count; earlier ones are the warm-up. None: not
    known before the warm-up is over."""
    pairs: int = 0
    """Complete pairs that count; in split traffic requests."""
    speculation: SpeculationCounts = SpeculationCounts()
    """Of the candidate's answers in these."""
    repeats: int = 0
    """Complete pairs left out, because an earlier repeat of their prompt counts."""
    outcome: Outcome = Outcome.INCONCLUSIVE
    summary: str = ""
    reasons: tuple[str, ...] = ()
    posted: str = ""
    """Outcomes of the verdict that was posted last."""
    threshold_s: float | None = None
    """The rollback's threshold; None: not fixed yet, or none wanted."""
    exceed_after: int | None = None
    """Pairs that completed after this arrival are held against the threshold."""
    stretch: float = 1
    """Requests that the longest declared stretch of harm holds; the e-values allow for it."""
    recent_starts: Mapping[str, int] = field(default_factory=dict)
    """Requests by tenth of the policy's time, of the newest ones; {} where it names none."""
    epoch: int = 0
    """Grows when somebody sets the switch on again after the watch had set it off: the evidence
    for a fail begins anew, so that only new harm sets it off again."""
    switch_event: int = 0
    """Id of the newest event of the switch that the watch has seen."""
    actions: tuple[WatchAction, ...] = ()
    workload: Mapping[str, int] = field(default_factory=dict)
    """Pairs that each cohort is to have, as far as a run said."""
    doubts: tuple[WatchDoubt, ...] = ()
    """What any window showed that keeps cells from passing."""
    judges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Evaluators, in their versions, by metric: one each in the whole run."""
    served: Mapping[str, ArmServed] = field(default_factory=dict)
    """By arm: one configuration and one method each in the whole run."""
    rerouted: int = 0
    """Pairs of which another route answered a side."""
    shorter: tuple[int, int] = (0, 0)
    """Pairs whose candidate's answer is short beside the baseline's, and the other way round."""
    cohorts: tuple[WatchCohort, ...] = ()
    cells: tuple[WatchCell, ...] = ()

    @property
    def place_hash(self) -> str:
        """SHA-256 of the place up to which everything is counted."""
        place = f"{self.rollout} {self.arrived_up_to} {self.scored_up_to} {self.epoch}"
        return hashlib.sha256(place.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWatch:
    """A watch as the collector keeps it: one for each rollout and policy."""

    version: int
    """Grows by one with every update; whoever updates names the one that they continue."""
    updated_unix_ns: int
    watch: Watch
    key_id: str | None = None
    """Id of the API key that posted it; None if no key was needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchUpdate:
    """The next state of a watch, with the switch's change that it calls for, both or neither."""

    continues: int
    """The version that this continues; 0 for the first."""
    watch: Watch
    switch: SwitchChange | None = None

"""Metrics of rollouts, for `GET /metrics`: verdicts, their cells, acceptance, switches and ramps.

Unknown values are absent, never 0. The number of rollouts, cohorts and cells is bounded; those left
out are counted.
"""

import time
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import Final, NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric

from collector.contract import Arm, CostComparison, Finding, Outcome, StoredVerdict, Switch
from collector.store import Store
from collector.store.release import decisions, rollout_states
from collector.store.release.rollout_states import RolloutStates

MOST_ROLLOUTS: Final = 20
MOST_COHORTS: Final = 10
"""Most cohorts of one verdict, besides the pool of all cohorts."""
MOST_CELLS: Final = 200
"""Most cells of one verdict."""
_FRESH_S: Final = 10.0
_CELL: Final = ("rollout", "cohort", "metric", "stat", "role")


class _VerdictFacts(NamedTuple):
    """The exported fields of a verdict."""

    posted_unix_ns: int
    outcome: Outcome
    pairs: int
    cells: tuple[Finding, ...]
    cells_left_out: int
    costs: tuple[CostComparison, ...]
    """The pool's, then those of the cohorts with the most pairs."""


class _Snapshot(NamedTuple):
    states: RolloutStates
    verdicts: dict[str, _VerdictFacts]
    """By verdict id."""


class RolloutMetrics:
    """Metrics of rollouts, read from the database at most once per `_FRESH_S`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._read_s = 0.0
        """Time of the last read, by the monotonic clock."""
        self._snapshot: _Snapshot | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; raises `StoreUnavailableError` instead of yielding stale ones."""
        states, facts = self._current()
        of_rollout = {name: facts[id_] for name, id_ in sorted(states.verdicts.items())}
        yield _gauge(
            "rollouts_left_out",
            f"Rollouts without metrics: {MOST_ROLLOUTS} have them, the last decided on.",
            (),
            [((), states.rollouts.left_out)],
        )
        yield from _verdicts(of_rollout, time.time())
        yield from _cells(of_rollout)
        yield from _costs(of_rollout)
        yield from _arms(states)
        yield from _controls(states)
        yield _acceptance(states)

    def _current(self) -> _Snapshot:
        with self._lock:
            now_s = time.monotonic()
            if self._snapshot is None or now_s >= self._read_s + _FRESH_S:
                self._snapshot, self._read_s = self._read(), now_s
            return self._snapshot

    def _read(self) -> _Snapshot:
        """Read the database; only new verdicts are read, because a verdict never changes."""
        known = self._snapshot.verdicts if self._snapshot else {}
        with self._store.read() as connection:
            states = rollout_states.read(connection, at_most=MOST_ROLLOUTS, now_unix_s=time.time())
            wanted = set(states.verdicts.values())
            new = rollout_states.verdicts_of(connection, wanted - known.keys())
        kept = {id_: one for id_, one in known.items() if id_ in wanted}
        return _Snapshot(states, kept | {id_: _facts(one) for id_, one in new.items()})


def _facts(stored: StoredVerdict) -> _VerdictFacts:
    findings = stored.verdict.findings
    cells = _bounded(findings)
    return _VerdictFacts(
        posted_unix_ns=stored.posted_unix_ns,
        outcome=stored.verdict.outcome,
        pairs=stored.verdict.pairs,
        cells=cells,
        cells_left_out=len(findings) - len(cells),
        costs=tuple(sorted(stored.verdict.costs, key=_by_pairs)[: MOST_COHORTS + 1]),
    )


def _by_pairs(cost: CostComparison) -> tuple[bool, int, str]:
    return (cost.cohort is not None, -cost.n, cost.cohort or "")


def _bounded(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the exported findings: one per cell, of the most important cohorts.

    The pool comes first, then cohorts with a failed cell, then those with the most pairs.
    """
    by_cell: dict[tuple[str, ...], Finding] = {}
    for finding in findings:
        by_cell.setdefault(_labels(finding), finding)
    order: dict[str, tuple[bool, int]] = {}
    for one in by_cell.values():
        if one.cohort is not None:
            mine = (one.outcome is not Outcome.FAIL, -one.n)
            order[one.cohort] = min(order.get(one.cohort, mine), mine)
    chosen = sorted(order, key=lambda cohort: (order[cohort], cohort))[:MOST_COHORTS]
    rank = {None: 0} | {cohort: 1 + index for index, cohort in enumerate(chosen)}
    cells = [one for one in by_cell.values() if one.cohort in rank]
    return tuple(sorted(cells, key=lambda one: rank[one.cohort])[:MOST_CELLS])


def _labels(finding: Finding) -> tuple[str, ...]:
    return (finding.cohort or "", finding.metric, finding.stat, finding.role.value)


def _verdicts(verdicts: dict[str, _VerdictFacts], now_unix_s: float) -> Iterator[Metric]:
    yield _gauge(
        "rollout_verdict",
        "Whether the rollout's newest verdict has this outcome.",
        ("rollout", "outcome"),
        [
            ((name, outcome.value), int(one.outcome is outcome))
            for name, one in verdicts.items()
            for outcome in Outcome
        ],
    )
    now_unix_ns = int(now_unix_s * 1e9)
    yield _gauge(
        "rollout_verdict_age_seconds",
        "Seconds since the newest verdict was posted; absent if that lies in the future.",
        ("rollout",),
        [
            ((name,), decisions.age(one.posted_unix_ns, now_unix_ns))
            for name, one in verdicts.items()
        ],
    )
    yield _gauge(
        "rollout_verdict_pairs",
        "Pairs that the newest verdict rests on.",
        ("rollout",),
        [((name,), one.pairs) for name, one in verdicts.items()],
    )
    yield _gauge(
        "rollout_cells_left_out",
        f"Cells of the newest verdict without metrics: those beyond {MOST_COHORTS} cohorts.",
        ("rollout",),
        [((name,), one.cells_left_out) for name, one in verdicts.items()],
    )


def _cells(verdicts: dict[str, _VerdictFacts]) -> Iterator[Metric]:
    cells = [((name, *_labels(cell)), cell) for name, one in verdicts.items() for cell in one.cells]
    yield _gauge(
        "rollout_cell",
        "Whether a cell of the newest verdict has this outcome; no cohort is the pool of all.",
        (*_CELL, "outcome"),
        [
            ((*labels, outcome.value), int(cell.outcome is outcome))
            for labels, cell in cells
            for outcome in Outcome
        ],
    )
    for name, words in (
        ("estimate", "Estimate, candidate against baseline, in the unit of the stat."),
        ("lower", "Lower limit of the estimate."),
        ("upper", "Upper limit of the estimate."),
        ("margin", "Margin that the limits are held against."),
    ):
        values = [(labels, getattr(cell, name)) for labels, cell in cells]
        yield _gauge(f"rollout_cell_{name}", words, _CELL, values)


def _costs(verdicts: dict[str, _VerdictFacts]) -> Iterator[Metric]:
    """Yield money per million output tokens, by the routes' prices."""
    costs = [
        ((name, cost.cohort or "", cost.currency), cost)
        for name, one in verdicts.items()
        for cost in one.costs
    ]
    labels = ("rollout", "cohort", "currency")
    yield _gauge(
        "rollout_cost_per_million_output_tokens",
        "Cost of a million output tokens, by the newest verdict and the routes' prices.",
        (*labels, "arm"),
        [((*of, arm.value), getattr(cost, arm.value)) for of, cost in costs for arm in Arm],
    )
    for name, words in (
        ("difference", "Cost of a million output tokens, candidate less baseline."),
        ("lower", "Lower limit of this difference."),
        ("upper", "Upper limit of this difference."),
        ("rejected_drafts", "Part of the candidate's cost that rejected drafts took."),
    ):
        values = [(of, getattr(cost, name)) for of, cost in costs]
        yield _gauge(f"rollout_cost_{name}", words, labels, values)


def _arms(states: RolloutStates) -> Iterator[Metric]:
    arms = [((one.rollout, one.arm.value), one) for one in states.arms]
    for name, words in (
        ("generations", "Generations that began in the last hour."),
        (
            "draft_tokens",
            "Draft tokens of the generations of the last hour whose counts are usable.",
        ),
        ("accepted_tokens", "Of these draft tokens, those that were accepted."),
    ):
        values = [(of, getattr(one, name)) for of, one in arms]
        yield _gauge(f"rollout_{name}", words, ("rollout", "arm"), values)


def _controls(states: RolloutStates) -> Iterator[Metric]:
    yield _gauge(
        "rollout_switch_on",
        "Whether the rollout's switch is on; absent if nobody ever set it.",
        ("rollout",),
        [
            ((name,), int(event.state is Switch.ON))
            for name, event in sorted(states.switches.items())
        ],
    )
    yield _gauge(
        "rollout_ramp_percent",
        "Share of the traffic that the candidate is to get.",
        ("rollout",),
        [((name,), step.percent) for name, step in sorted(states.ramps.items())],
    )


def _acceptance(states: RolloutStates) -> Metric:
    compared = {
        name: sorted(alarms, key=lambda one: (not one.drifted, one.number))[:MOST_COHORTS]
        for name, alarms in sorted(states.acceptance.items())
    }
    return _gauge(
        "rollout_acceptance_drifted",
        "Whether the candidate's acceptance rate fell, by its watch; absent before it is compared.",
        ("rollout", "cohort"),
        [
            ((name, one.cohort or ""), int(one.drifted))
            for name, alarms in compared.items()
            for one in alarms
        ],
    )


def _gauge(
    name: str,
    words: str,
    labels: tuple[str, ...],
    values: Iterable[tuple[tuple[str, ...], float | None]],
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"draftgate_{name}", words, labels=labels)
    for of, value in values:
        if value is not None:
            family.add_metric(of, value)
    return family

"""Judge cells at the looks that an until-decided run declared before its first pair.

A look of a cohort judges its first pairs in the declared order, once all of them are complete; a
look of the pool judges the pairs of every cohort's look of that number, so that the pool keeps the
workload's mix whatever cohort went ahead. A cell keeps its first decision. The levels of all looks
together are the policy's, so that the verdict holds whenever the run ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from collector.contract import Finding, Outcome, Reason, Role, ScopeLooks, is_input_band
from evals.errors import PolicyError
from evals.evidence.columns import Evidence
from evals.evidence.declared_looks import DeclaredLooks
from evals.evidence.sentinels import asked_until
from evals.gate.cells import Cell, least_pairs, plan
from evals.gate.judging import (
    corrected_p,
    family_p,
    family_size,
    finding_of,
    measured_cells,
)
from evals.gate.measured import Measurement, Obstacle, within
from evals.gate.measurement import measure
from evals.policy import Policy
from evals.stats.sequential import over_looks, spent_levels

PASS_POWER: Final = 1.5
"""By a share t of the planned pairs, looks have spent t^1.5 of the level to pass: with a smaller
power runs end sooner, and need more pairs at most for the same chance to pass."""
FAIL_POWER: Final = 1.0
"""By a share t, they have spent t of the level at which a cell fails, so that harm ends early."""


@dataclass(frozen=True, slots=True)
class Look:
    """One cell at one look."""

    number: int
    level: float
    """The level at which the cell passes at this look."""
    cell: Cell
    """With the minimum number of pairs for this level."""
    found: Measurement
    p: float | None
    """The p value of harm over all looks, for this look's."""

    @property
    def passes(self) -> bool:
        """Whether the cell passes at this look."""
        interval = self.found.interval
        return self.found.obstacle is None and interval is not None and within(self.cell, interval)


def require_judgeable(policy: Policy) -> None:
    """Raise `PolicyError` if the policy cannot judge at declared looks."""
    if not policy.paired:
        raise PolicyError(f"{policy.name}: is for split traffic, and looks are of pairs")


def at_newest_look(
    evidence: Evidence, looks: DeclaredLooks, policy: Policy
) -> tuple[Evidence, Policy, int]:
    """Return what a lossless policy judges: the pool's newest look, at its share of the level.

    The shares of all looks are equal, so that any look may end the run. Sentinels count if they
    were asked before the look's last pair.
    """
    cohorts = _cohorts(None, evidence)
    number = looks.taken_in(cohorts)
    there = evidence.take(evidence.prompts < 0)
    if number:
        there = _up_to(number, cohorts, evidence)
    until = int(there.started_unix_ns.max(initial=0))
    there = replace(there, sentinels=tuple(asked_until(until, evidence.sentinels)))
    if policy.lossless is not None:
        share = policy.lossless.alpha / looks.count
        policy = replace(policy, lossless=replace(policy.lossless, alpha=share))
    return there, policy, number


def judge_at_looks(
    evidence: Evidence, policy: Policy, control: Evidence | None = None
) -> tuple[Finding, ...]:
    """Return every cell's finding, at the look that decided it or else at its last one."""
    cells = plan(evidence, policy)
    return findings_at(cells, looks_taken(cells, evidence, policy, control), evidence, policy)


def looks_taken(
    cells: Sequence[Cell], evidence: Evidence, policy: Policy, control: Evidence | None = None
) -> list[list[Look]]:
    """Return each cell at all looks that its scope has taken."""
    taken: list[list[Look]] = [[] for _ in cells]
    for cohort in dict.fromkeys(cell.cohort for cell in cells):
        members = [i for i, cell in enumerate(cells) if cell.cohort == cohort]
        for of_scope in _at_scope([cells[i] for i in members], evidence, policy, control):
            for i, look in zip(members, of_scope, strict=True):
                taken[i].append(look)
    return taken


def findings_at(
    cells: Sequence[Cell], taken: Sequence[Sequence[Look]], evidence: Evidence, policy: Policy
) -> tuple[Finding, ...]:
    """Return the findings on cells at the looks taken."""
    corrected = corrected_p(cells, [_least_p(looks) for looks in taken])
    family = family_size(cells)
    return tuple(
        _finding(cell, looks, p, evidence, policy, family)
        for cell, looks, p in zip(cells, taken, corrected, strict=True)
    )


def _at_scope(
    cells: Sequence[Cell], evidence: Evidence, policy: Policy, control: Evidence | None
) -> list[list[Look]]:
    """Return one scope's cells at each look that it has taken, in the order of the looks."""
    looks, cohorts = evidence.looks, _cohorts(cells[0].cohort, evidence)
    if looks is None or (last := looks.taken_in(cohorts)) == 0:
        return []
    sizes = looks.sizes(cohorts)
    numbers = [i + 1 for i, size in enumerate(sizes) if size > (sizes[i - 1] if i else 0)]
    distinct = _shares([sizes[number - 1] for number in numbers])
    levels = spent_levels(distinct, policy.alpha_pass, PASS_POWER)
    found = []
    for place, (number, level) in enumerate(zip(numbers, levels, strict=True)):
        if number > last:
            break
        rules = replace(policy, alpha_pass=level)
        at = [replace(c, min_n=least_pairs(c.rule, c.cohort, rules)) for c in cells]
        measured = measured_cells(at, _up_to(number, cohorts, evidence), rules, control)
        ps = [None if (p := family_p(m)) is None else over_looks(p, place, distinct, FAIL_POWER)
              for m in measured]  # fmt: skip
        found.append([Look(number, level, *one) for one in zip(at, measured, ps, strict=True)])
    return found


def _cohorts(cohort: str | None, evidence: Evidence) -> tuple[str, ...]:
    """Return a scope's cohorts: of the pool or of a band, all that were planned or have come."""
    if cohort is not None and not is_input_band(cohort):
        return (cohort,)
    there = set() if evidence.looks is None else set(evidence.looks.pairs)
    return tuple(sorted(there | set(evidence.workload)))


def _shares(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the looks' sizes in per cent of the last, so that cohorts share their levels."""
    shares = tuple(round(100 * size / sizes[-1]) for size in sizes)
    distinct = all(later > before for before, later in zip((0, *shares), shares, strict=False))
    return shares if distinct else tuple(sizes)


def _up_to(number: int, cohorts: Sequence[str], evidence: Evidence) -> Evidence:
    """Return the pairs of these cohorts' looks up to a number, as the whole planned workload."""
    looks = evidence.looks
    if looks is None:
        return evidence
    rows = (looks.first > 0) & (looks.first <= number)
    scopes = [evidence.scope(cohort or None) for cohort in cohorts]
    rows &= sum(scopes[1:], start=scopes[0])
    planned = {c: looks.pairs[c][number - 1] - _dropped(c, looks, evidence) for c in cohorts}
    found = evidence.take(rows)
    if found.launches is not None:
        found = found.with_launches()  # those of later looks do not count
    return replace(found, workload={c: n for c, n in planned.items() if n > 0})


def _dropped(cohort: str, looks: DeclaredLooks, evidence: Evidence) -> int:
    """Return the pairs of a cohort that were dropped as warm-up."""
    whole = looks.pairs[cohort][-1]
    return max(whole - evidence.workload.get(cohort, whole), 0)


def _until_passed(looks: Sequence[Look]) -> Sequence[Look]:
    """Return the looks up to the first that passes; later ones do not count."""
    passed = next((i for i, look in enumerate(looks) if look.passes), len(looks))
    return looks[: passed + 1]


def _least_p(looks: Sequence[Look]) -> float | None:
    return min((look.p for look in _until_passed(looks) if look.p is not None), default=None)


def _finding(
    cell: Cell,
    looks: Sequence[Look],
    corrected: float | None,
    evidence: Evidence,
    policy: Policy,
    family: int,
) -> Finding:
    if not looks:
        return finding_of(cell, _before_first(cell, evidence, policy), None, policy, family)
    counted, least = _until_passed(looks), _least_p(looks)
    shown = counted[-1]
    if corrected is not None and corrected <= policy.alpha_fail_family:
        shown = next(look for look in counted if look.p == least)
    finding = finding_of(shown.cell, shown.found, corrected, policy, family)
    return replace(finding, look=shown.number, confidence=1 - shown.level, p_fail=least)


def _before_first(cell: Cell, evidence: Evidence, policy: Policy) -> Measurement:
    """Return the measurement of a scope of which no look is complete."""
    cohorts, looks = _cohorts(cell.cohort, evidence), evidence.looks
    none = evidence.take(evidence.prompts < 0)
    if looks is None or not set(cohorts) <= set(looks.pairs):
        return measure(cell, none, policy)
    first = next((size for size in looks.sizes(cohorts) if size), 0)
    there = sum(int(evidence.scope(cohort or None).sum()) for cohort in cohorts)
    words = f"the first look is at {first:,} pairs"
    return Measurement(n=0, prompts=0,
                       obstacle=Obstacle(Reason.TOO_FEW, words, max(first - there, 1)))  # fmt: skip


def scope_looks(
    cells: Sequence[Cell], findings: Sequence[Finding], evidence: Evidence
) -> tuple[ScopeLooks, ...]:
    """Return the looks of the pool and of each cohort that has cells; none without looks."""
    looks = evidence.looks
    if looks is None:
        return ()
    found = []
    scopes = dict.fromkeys(cell.cohort for cell in cells if not is_input_band(cell.cohort))
    for cohort in scopes:
        cohorts = _cohorts(cohort, evidence)
        of = [f for c, f in zip(cells, findings, strict=True) if c.cohort == cohort]
        found.append(
            ScopeLooks(
                cohort=cohort,
                pairs=looks.sizes(cohorts) if set(cohorts) <= set(looks.pairs) else (),
                taken=looks.taken_in(cohorts),
                decided_at=_decided_at(of),
            )
        )
    return tuple(found)


def _decided_at(findings: Sequence[Finding]) -> int | None:
    deciding = [f for f in findings if f.role is not Role.REPORT]
    failed = [f.look for f in deciding if f.outcome is Outcome.FAIL and f.look is not None]
    if failed:
        return min(failed)
    proofs = [f for f in deciding if f.role is Role.PROVE]
    passed = [f.look for f in proofs if f.outcome is Outcome.PASS and f.look is not None]
    return max(passed) if passed and len(passed) == len(proofs) else None

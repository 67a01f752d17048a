"""What the evidence says of one cell, and what can stand in the way of saying it."""

from dataclasses import dataclass, replace

from collector.contract import Reason
from evals.evidence import BoolColumn
from evals.gate.cells import Cell
from evals.policy import Policy
from evals.stats import Bound, Insufficient, Interval

MAX_UNBOUNDED_SHARE = 0.01
"""Share of unknown values above which a mean of unbounded ones decides nothing: up to there each
is taken for the worst that its arm showed, of which more would be a guess."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a cell decides nothing."""

    reason: Reason
    words: str
    n_needed: int | None = None
    launches_needed: int | None = None
    bars_fail: bool = True
    """Whether it leaves no p value but that of certain harm; else it keeps a cell from passing
    alone."""
    bars_harm: bool = False
    """Whether what looks like harm may be its doing, so that no harm is proved either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The limits of one cell, and what stands in the way of using them.

    With answers that only one side has a score for, `lower` and `upper` hold whatever those
    scores would have been; `p_fail` and `p_pass` are then the larger ones.
    """

    n: int
    """Pairs that the estimate rests on."""
    prompts: int
    """Independent clusters among them: repeats of a prompt count once."""
    interval: Interval | None = None
    p_pass: float = 1.0
    """One-sided p value against "worse than the margin"."""
    p_harm: float | None = None
    """One-sided p value against "no worse than the margin" that is exact, or too large, at any
    n and whatever is unknown: it may fail a cell whatever stands in its way."""
    obstacle: Obstacle | None = None
    note: str | None = None
    """What a reader of the numbers must know beside them."""


def too_few(cell: Cell, n: int, prompts: int) -> Obstacle | None:
    """Say how many pairs are lacking; only prompts count, repeats of one do not."""
    if prompts >= cell.min_n:
        return None
    lacking = cell.min_n - prompts
    repeats = -(-lacking * n // prompts) if prompts else lacking
    return Obstacle(
        Reason.TOO_FEW, f"needs {repeats} more {cell.unit} ({cell.min_n} at least)", repeats
    )


def within(cell: Cell, interval: Interval) -> bool:
    """Say whether the limit on the side of the margin exists and is within it."""
    if cell.rule.bound == "max":
        return interval.upper is not None and interval.upper <= cell.rule.margin
    return interval.lower is not None and interval.lower >= cell.rule.margin


def at_worst(
    known: Interval | Insufficient,
    worst: Interval | Insufficient,
    best: Interval | Insufficient,
    *,
    bound: Bound,
) -> Interval | Insufficient:
    """Return limits that hold whatever the unknown values are, around the known ones' estimate.

    `worst` has the unknown values at their worst for the candidate, `best` at their best.
    """
    if isinstance(known, Insufficient):
        return known
    if isinstance(worst, Insufficient):
        return worst
    if isinstance(best, Insufficient):
        return best
    low, high = (best, worst) if bound == "max" else (worst, best)
    doubt = known.doubt or worst.doubt
    return replace(known, lower=low.lower, upper=high.upper, p_fail=best.p_fail, doubt=doubt)


def unknown_decide(
    cell: Cell, known: Interval | Insufficient, held: Interval | Insufficient, words: str
) -> Obstacle | None:
    """Say that a pass hangs on values that nobody knows."""
    if isinstance(known, Insufficient) or not within(cell, known):
        return None
    if not isinstance(held, Insufficient) and within(cell, held):
        return None
    return Obstacle(Reason.MISSING, f"{words}; at their worst they exceed the margin")


def unbounded(words: str, rows: BoolColumn, known: BoolColumn) -> Obstacle | None:
    """Refuse to bound more than a few unbounded values by what others showed."""
    share = 1 - float(known.sum()) / float(rows.sum())
    if share <= MAX_UNBOUNDED_SHARE:
        return None
    return Obstacle(Reason.MISSING, f"{words}, above {MAX_UNBOUNDED_SHARE:.0%} of them")


def unaccounted(left_out: int, policy: Policy, what: str) -> Obstacle | None:
    """Refuse to leave lost requests out where the policy does not prove `failures`."""
    if left_out == 0 or policy.proves_failures:
        return None
    words = f"leaves {left_out} {what} out; prove `failures` in the policy to account for them"
    return Obstacle(Reason.MISSING, words)


def measured(
    found: Interval | Insufficient, n: int, prompts: int, obstacle: Obstacle | None
) -> Measurement:
    """Return a measurement of what a method found."""
    if isinstance(found, Insufficient):
        return insufficient(found, n, prompts, obstacle)
    return Measurement(
        n=n,
        prompts=prompts,
        interval=found,
        p_pass=found.against_worse,
        obstacle=obstacle or doubted(found),
    )


def doubted(found: Interval) -> Obstacle | None:
    """Refuse to pass on limits that may reach too short."""
    return None if found.doubt is None else Obstacle(Reason.DEPENDENCE, found.doubt)


def with_p_pass(found: Measurement, worst: Interval | Insufficient) -> Measurement:
    """Return the measurement with the p value of a pass under the worst that is not known."""
    return found if isinstance(worst, Insufficient) else replace(found, p_pass=worst.against_worse)


def insufficient(
    found: Insufficient, n: int, prompts: int, obstacle: Obstacle | None
) -> Measurement:
    """Return a measurement without limits; an obstacle already known goes first."""
    needed = None if found.n_needed is None else max(found.n_needed - found.n, 1)
    fallback = Obstacle(Reason.TOO_FEW, found.reason, needed)
    return Measurement(n=n, prompts=prompts, obstacle=obstacle or fallback)

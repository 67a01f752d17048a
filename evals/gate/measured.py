"""The measurement of one cell, and the obstacles to deciding it."""

from dataclasses import dataclass, replace

from collector.contract import P99_FROM, Reason
from evals.evidence.columns import BoolColumn
from evals.gate.cells import Cell
from evals.policy import Policy
from evals.stats import Bound, Insufficient, Interval

MAX_UNBOUNDED_SHARE = 0.01
"""Maximum share of unknown values for a mean of unbounded values to decide. Each unknown value is
set to the worst of its arm, which would be a guess for more of them."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a cell decides nothing."""

    reason: Reason
    words: str
    n_needed: int | None = None
    launches_needed: int | None = None
    bars_fail: bool = True
    """Whether only certain harm can still fail the cell; if false, it only prevents a pass."""
    bars_harm: bool = False
    """Whether it may look like harm itself, so that not even certain harm is proved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The limits of one cell, and the obstacle to using them.

    If some values are unknown, `lower` and `upper` hold whatever they are; `p_fail` and `p_pass`
    are then the larger ones.
    """

    n: int
    """Pairs in the estimate."""
    prompts: int
    """Prompts among them; repeats of a prompt count once."""
    interval: Interval | None = None
    p_pass: float = 1.0
    """One-sided p value against "worse than the margin"."""
    p_harm: float | None = None
    """One-sided p value against "no worse than the margin" that is exact or conservative, for any n
    and any unknown values; it may fail a cell despite an obstacle."""
    obstacle: Obstacle | None = None
    note: str | None = None
    """A remark that readers of the numbers need."""


def too_few(cell: Cell, n: int, prompts: int) -> Obstacle | None:
    """Return the obstacle that prompts are too few, `None` if they suffice; repeats count once."""
    if prompts >= cell.min_n:
        return None
    lacking = cell.min_n - prompts
    repeats = -(-lacking * n // prompts) if prompts else lacking
    words = f"needs {cell.counted(repeats, 'more ')} (at least {cell.min_n} in all)"
    return Obstacle(Reason.TOO_FEW, words, repeats)


def within(cell: Cell, interval: Interval) -> bool:
    """Return whether the limit on the margin's side exists and is within the margin."""
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
    """Return the obstacle that a pass depends on unknown values, if it does."""
    if isinstance(known, Insufficient) or not within(cell, known):
        return None
    if not isinstance(held, Insufficient) and within(cell, held):
        return None
    return Obstacle(Reason.MISSING, f"{words}; at their worst they exceed the margin")


def unbounded(words: str, rows: BoolColumn, known: BoolColumn) -> Obstacle | None:
    """Return the obstacle that too many unbounded values are unknown, if they are."""
    share = 1 - float(known.sum()) / float(rows.sum())
    if share <= MAX_UNBOUNDED_SHARE:
        return None
    return Obstacle(Reason.MISSING, f"{words}, above {MAX_UNBOUNDED_SHARE:.0%} of them")


def unaccounted(left_out: int, policy: Policy) -> Obstacle | None:
    """Return the obstacle that lost requests are left out and no rule proves `failures`."""
    if left_out == 0 or policy.proves_failures:
        return None
    return Obstacle(
        Reason.MISSING,
        f"leaves {left_out} failed or incomplete pairs out; prove `failures` in the policy to "
        "account for them",
    )


def measured(
    found: Interval | Insufficient, n: int, prompts: int, obstacle: Obstacle | None
) -> Measurement:
    """Return the measurement for a method's result."""
    if isinstance(found, Insufficient):
        return insufficient(found, n, prompts, obstacle)
    return Measurement(
        n=n,
        prompts=prompts,
        interval=found,
        p_pass=found.against_worse,
        obstacle=obstacle or doubted(found),
    )


def if_it_exists(found: Interval | Insufficient, q: float, n: int) -> Interval | Insufficient:
    """Return the limits of a quantile; too few values have no p99, and no limit of it either."""
    if isinstance(found, Insufficient) or q < 0.99 or n >= P99_FROM:
        return found
    if found.lower is not None or found.upper is not None:
        return found
    return Insufficient(reason=f"fewer than {P99_FROM} values have no p99", n=n, n_needed=P99_FROM)


def doubted(found: Interval) -> Obstacle | None:
    """Return the obstacle that the limits may be too narrow to pass, if they may."""
    return None if found.doubt is None else Obstacle(Reason.DEPENDENCE, found.doubt)


def with_p_pass(found: Measurement, worst: Interval | Insufficient) -> Measurement:
    """Return the measurement with the p value of a pass for the worst unknown values."""
    return found if isinstance(worst, Insufficient) else replace(found, p_pass=worst.against_worse)


def insufficient(
    found: Insufficient, n: int, prompts: int, obstacle: Obstacle | None
) -> Measurement:
    """Return a measurement without limits; an obstacle given takes precedence."""
    needed = None if found.n_needed is None else max(found.n_needed - found.n, 1)
    fallback = Obstacle(Reason.TOO_FEW, found.reason, needed)
    return Measurement(n=n, prompts=prompts, obstacle=obstacle or fallback)

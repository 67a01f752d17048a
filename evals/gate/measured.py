"""What the evidence says of one cell, and what can stand in the way of saying it."""

from dataclasses import dataclass

from collector.contract import Reason
from evals.gate.cells import Cell
from evals.policy import Policy
from evals.stats import Insufficient, Interval


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a cell decides nothing."""

    reason: Reason
    words: str
    n_needed: int | None = None


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
        n=n, prompts=prompts, interval=found, p_pass=1 - found.p_fail, obstacle=obstacle
    )


def insufficient(
    found: Insufficient, n: int, prompts: int, obstacle: Obstacle | None
) -> Measurement:
    """Return a measurement without limits; an obstacle already known goes first."""
    needed = None if found.n_needed is None else max(found.n_needed - found.n, 1)
    fallback = Obstacle(Reason.TOO_FEW, found.reason, needed)
    return Measurement(n=n, prompts=prompts, obstacle=obstacle or fallback)

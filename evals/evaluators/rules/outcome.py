"""The result of a rule."""

from dataclasses import dataclass

from collector.contract import ScoredSpan


@dataclass(frozen=True, slots=True)
class RuleResult:
    """How well an answer meets its reference, and its faults."""

    value: float
    """In [0, 1]."""
    problem: str | None = None
    """The fault; None if there is none."""
    span: ScoredSpan | None = None
    """From where the answer breaks to its end; None if that is not known."""

    @classmethod
    def of(cls, problem: str | None) -> "RuleResult":
        """Return 1 without a problem, 0 with one."""
        return cls(0.0 if problem else 1.0, problem)

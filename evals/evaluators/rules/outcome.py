"""What a rule finds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Found:
    """How far an answer meets its reference, and why not wholly."""

    value: float
    """In [0, 1]."""
    problem: str | None = None

    @classmethod
    def of(cls, problem: str | None) -> "Found":
        """Return right without a problem, wrong with one."""
        return cls(0.0 if problem else 1.0, problem)

"""What a check found."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """What a finding means for the run."""

    ERROR = "error"
    """The comparison would be worthless, or fail."""
    WARNING = "warning"
    """It may show something else than speculation."""
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to know before a run."""

    check: str
    """The check's stable name."""
    severity: Severity
    message: str
    evidence: str
    """What was seen, and where."""
    fix: str


def error(check: str, message: str, *, evidence: str, fix: str) -> Finding:
    """Return an error."""
    return Finding(
        check=check, severity=Severity.ERROR, message=message, evidence=evidence, fix=fix
    )


def warning(check: str, message: str, *, evidence: str, fix: str) -> Finding:
    """Return a warning."""
    return Finding(
        check=check, severity=Severity.WARNING, message=message, evidence=evidence, fix=fix
    )


def note(check: str, message: str, *, evidence: str, fix: str) -> Finding:
    """Return a note."""
    return Finding(check=check, severity=Severity.NOTE, message=message, evidence=evidence, fix=fix)

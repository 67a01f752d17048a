"""Findings of the checks."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters for the run."""

    ERROR = "error"
    """The comparison would be worthless, or fail."""
    WARNING = "warning"
    """The comparison may show an effect of something other than speculation."""
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightFinding:
    """One thing to know before a run."""

    check: str
    """The check's stable name."""
    severity: Severity
    message: str
    evidence: str
    """The observed value, and its source."""
    fix: str


def error(check: str, message: str, *, evidence: str, fix: str) -> PreflightFinding:
    """Return an error."""
    return PreflightFinding(
        check=check, severity=Severity.ERROR, message=message, evidence=evidence, fix=fix
    )


def warning(check: str, message: str, *, evidence: str, fix: str) -> PreflightFinding:
    """Return a warning."""
    return PreflightFinding(
        check=check, severity=Severity.WARNING, message=message, evidence=evidence, fix=fix
    )


def note(check: str, message: str, *, evidence: str, fix: str) -> PreflightFinding:
    """Return a note."""
    return PreflightFinding(
        check=check, severity=Severity.NOTE, message=message, evidence=evidence, fix=fix
    )

"""Findings of the checks."""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial


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


def _found(
    severity: Severity, check: str, message: str, *, evidence: str, fix: str
) -> PreflightFinding:
    return PreflightFinding(
        check=check, severity=severity, message=message, evidence=evidence, fix=fix
    )


error = partial(_found, Severity.ERROR)
warning = partial(_found, Severity.WARNING)
note = partial(_found, Severity.NOTE)

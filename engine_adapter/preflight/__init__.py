"""The checks of `draftgate check`: problems that would spoil a comparison, found before the run."""

from engine_adapter.preflight.examination import examine
from engine_adapter.preflight.findings import PreflightFinding, Severity

__all__ = ["PreflightFinding", "Severity", "examine"]

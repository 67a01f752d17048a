"""`draftgate check`: what would spoil a comparison, found before it is run."""

from engine_adapter.preflight.examination import examine
from engine_adapter.preflight.findings import Finding, Severity

__all__ = ["Finding", "Severity", "examine"]

"""The release gate: a pure function from evidence and policy to a verdict."""

from evals.gate.cells import Cell, plan
from evals.gate.release import decide
from evals.gate.wording import hypothesis

__all__ = ["Cell", "decide", "hypothesis", "plan"]

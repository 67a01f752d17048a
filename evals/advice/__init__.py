"""Advice on speculation: what it brings each cohort, what it costs, and which k to serve with."""

from evals.advice.advisor import advise
from evals.advice.observations import load

__all__ = ["advise", "load"]

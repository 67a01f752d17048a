"""Advice on speculation: its speed-up and cost for each cohort, and which k to serve with."""

from evals.advice.advisor import advise
from evals.advice.observations import load

__all__ = ["advise", "load"]

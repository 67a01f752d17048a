"""Groundedness: whether the retrieved passages support every sentence of an answer."""

from evals.evaluators.groundedness.evaluator import Groundedness

__all__ = ["Groundedness"]

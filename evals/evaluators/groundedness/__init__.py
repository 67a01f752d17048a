"""Whether every sentence of an answer rests on the passages that were retrieved."""

from evals.evaluators.groundedness.evaluator import Groundedness

__all__ = ["Groundedness"]

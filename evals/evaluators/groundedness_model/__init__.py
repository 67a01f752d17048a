"""Groundedness by a small transformer beside the words' measurements; needs an extra."""

from evals.evaluators.groundedness_model.evaluator import GroundednessModel

__all__ = ["GroundednessModel"]

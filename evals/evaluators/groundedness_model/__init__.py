"""Groundedness by a small transformer together with the forests; needs an extra."""

from evals.evaluators.groundedness_model.evaluator import GroundednessModel

__all__ = ["GroundednessModel"]

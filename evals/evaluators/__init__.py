"""Evaluators: each scores one metric of one generation, or of one pair of generations."""

from evals.evaluators.base import AnyEvaluator, Evaluator, Need, PairEvaluator, scored, unscored
from evals.evaluators.format_drift import FormatDrift
from evals.evaluators.function import FunctionEvaluator
from evals.evaluators.groundedness import Groundedness
from evals.evaluators.parity import Parity
from evals.evaluators.registry import make, names, shipped
from evals.evaluators.schema_validity import SchemaValidity
from evals.evaluators.task_completion import TaskCompletion

__all__ = [
    "AnyEvaluator",
    "Evaluator",
    "FormatDrift",
    "FunctionEvaluator",
    "Groundedness",
    "Need",
    "PairEvaluator",
    "Parity",
    "SchemaValidity",
    "TaskCompletion",
    "make",
    "names",
    "scored",
    "shipped",
    "unscored",
]

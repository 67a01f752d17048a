"""Evaluators: each scores one metric of one generation, without a judge model."""

from evals.evaluators.base import Evaluator
from evals.evaluators.groundedness import Groundedness
from evals.evaluators.schema_validity import SchemaValidity
from evals.evaluators.task_completion import TaskCompletion

__all__ = ["Evaluator", "Groundedness", "SchemaValidity", "TaskCompletion", "shipped"]


def shipped() -> tuple[Evaluator, ...]:
    """Return a fresh set of the evaluators, one a metric; the caller closes them."""
    return (TaskCompletion(), Groundedness(), SchemaValidity())

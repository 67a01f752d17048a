"""The available evaluators: shipped ones, other packages' metrics, and entry points.

A package adds an evaluator with an entry point of the group `draftgate.evaluators`. It names a
class, an evaluator object, or a function that maps a generation to a value:

    [project.entry-points."draftgate.evaluators"]
    politeness = "my_package:politeness"
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points

from evals.errors import EvaluatorError
from evals.evaluators.adapters import deepeval, phoenix, ragas
from evals.evaluators.adapters.adapted import AdaptedMetric
from evals.evaluators.base import AnyEvaluator
from evals.evaluators.format_drift import FormatDrift
from evals.evaluators.function import FunctionEvaluator, is_evaluator
from evals.evaluators.groundedness import Groundedness
from evals.evaluators.groundedness_model import GroundednessModel
from evals.evaluators.judge.cascade import JudgeCascade
from evals.evaluators.judge.evaluators import JudgedGroundedness, JudgedTask, Preference
from evals.evaluators.parity import Parity
from evals.evaluators.schema_validity import SchemaValidity
from evals.evaluators.task_completion import TaskCompletion

GROUP = "draftgate.evaluators"
Factory = Callable[[], AnyEvaluator]

_SHIPPED: Mapping[str, Factory] = {
    "reference": TaskCompletion,
    "lexical-support": Groundedness,
    "json-schema": SchemaValidity,
    "format-drift": FormatDrift,
    "parity": Parity,
}
_JUDGES: Mapping[str, Factory] = {
    "judge-groundedness": JudgedGroundedness,
    "judge-cascade": JudgeCascade,
    "judge-task": JudgedTask,
    "judge-preference": Preference,
}
_OPTIONAL: Mapping[str, Factory] = {"groundedness-model": GroundednessModel}
"""Evaluators that need an extra."""
_NAMED = {**_SHIPPED, **_OPTIONAL, **_JUDGES}
_ADAPTED: Mapping[str, Callable[[str], AdaptedMetric]] = {
    "deepeval": deepeval.metric,
    "phoenix": phoenix.metric,
    "ragas": ragas.metric,
}
"""Adapters by the prefix of a name such as `ragas:Faithfulness`. A name such as
`groundedness=ragas:Faithfulness` stores the scores under one of the gate's metrics."""


def names() -> tuple[str, ...]:
    """Return the names of evaluators that `make` accepts, sorted; adapted metrics not included."""
    return tuple(sorted({*_NAMED, *(point.name for point in entry_points(group=GROUP))}))


def shipped() -> tuple[AnyEvaluator, ...]:
    """Return new instances of the shipped evaluators that need no judge; the caller closes them."""
    return tuple(factory() for factory in _SHIPPED.values())


def make(wanted: Sequence[str]) -> tuple[AnyEvaluator, ...]:
    """Return new evaluators by name; the caller closes them.

    Raises `EvaluatorError` for an unknown name, an entry point that is no evaluator, or a metric
    of a package that is not installed.
    """
    added = {point.name: point for point in entry_points(group=GROUP)}
    return tuple(_make_one(name, added) for name in dict.fromkeys(wanted))


def _make_one(name: str, added: Mapping[str, EntryPoint]) -> AnyEvaluator:
    if name in _NAMED:
        return _NAMED[name]()
    if name in added:
        return loaded(added[name])
    as_metric, _, evaluator = name.rpartition("=")
    package, colon, metric = evaluator.partition(":")
    if colon and package in _ADAPTED:
        made = _ADAPTED[package](metric)
        made.metric = as_metric or made.metric
        return made
    others = ", ".join(f"{package}:METRIC" for package in _ADAPTED)
    raise EvaluatorError(f"no evaluator {name!r}; there are {', '.join(names())}, {others}")


def loaded(point: EntryPoint) -> AnyEvaluator:
    """Return the evaluator that an entry point names."""
    try:
        found = point.load()
    except (ImportError, AttributeError) as exc:
        raise EvaluatorError(f"evaluator {point.name!r} ({point.value}): {exc}") from exc
    if isinstance(found, type):
        found = found()
    if is_evaluator(found):
        return found
    if callable(found):
        version = point.dist.version if point.dist else "unversioned"
        return FunctionEvaluator(found, name=point.name, version=version)
    raise EvaluatorError(
        f"evaluator {point.name!r} ({point.value}) is neither a function nor has it name, "
        "version, metric, needs, score and close"
    )

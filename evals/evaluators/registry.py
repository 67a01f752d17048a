"""Which evaluators there are: shipped, made of other packages' metrics, added by entry points.

A package adds one by an entry point of the group `draftgate.evaluators`, which names a class, a
factory without arguments, or a function from a generation to a value:

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
    "judge-task": JudgedTask,
    "judge-preference": Preference,
}
_OPTIONAL: Mapping[str, Factory] = {"groundedness-model": GroundednessModel}
"""Those that need an extra."""
_NAMED = {**_SHIPPED, **_OPTIONAL, **_JUDGES}
_ADAPTED: Mapping[str, Callable[[str], AdaptedMetric]] = {
    "deepeval": deepeval.metric,
    "phoenix": phoenix.metric,
    "ragas": ragas.metric,
}
"""By what stands before the colon of a name such as `ragas:Faithfulness`; one that the gate is to
decide on says as which of its metrics, `groundedness=ragas:Faithfulness`."""


def names() -> tuple[str, ...]:
    """Return what can be asked for by name, sorted."""
    return tuple(sorted({*_NAMED, *(point.name for point in entry_points(group=GROUP))}))


def shipped() -> tuple[AnyEvaluator, ...]:
    """Return a fresh set of the shipped evaluators that need no judge; the caller closes them."""
    return tuple(factory() for factory in _SHIPPED.values())


def make(wanted: Sequence[str]) -> tuple[AnyEvaluator, ...]:
    """Return fresh evaluators of these names, which the caller closes.

    Raises `EvaluatorError` for an unknown name, for an entry point that is no evaluator, and for a
    metric of a package that is not installed.
    """
    added = {point.name: point for point in entry_points(group=GROUP)}
    return tuple(_made(name, added) for name in dict.fromkeys(wanted))


def _made(name: str, added: Mapping[str, EntryPoint]) -> AnyEvaluator:
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

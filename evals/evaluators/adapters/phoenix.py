"""Phoenix's evaluators (arize-phoenix-evals), such as `phoenix:FaithfulnessEvaluator`."""

import inspect
from typing import Any

from evals.errors import EvaluatorError
from evals.evaluators.adapters import model as judge
from evals.evaluators.adapters.adapted import AdaptedMetric, MetricInputs, MetricResult
from evals.evaluators.adapters.packages import (
    Package,
    construction_errors,
    find_metric,
    instantiate,
    require_recorded,
)
from evals.evaluators.base import Need

PACKAGE = Package(prefix="phoenix", distribution="arize-phoenix-evals", minimum=(3, 0))
_NEEDS = {
    "input": None,
    "output": None,
    "text": None,
    "context": Need.CONTEXT,
    "expected": Need.REFERENCE,
    "reference": Need.REFERENCE,
}


def metric(name: str) -> AdaptedMetric:
    """Make an evaluator from the one of this name in `phoenix.evals.metrics`.

    If it needs a model, that is the judge from the environment. Raises `EvaluatorError`.
    """
    evaluator = f"phoenix:{name}"
    found = find_metric(PACKAGE.module("phoenix.evals.metrics"), name, evaluator, _is_evaluator)
    if not isinstance(found, type):
        return adapted(found, name=evaluator)
    if "llm" not in inspect.signature(found).parameters:
        return adapted(instantiate(found, evaluator, {}, _errors()), name=evaluator)
    model = judge.required(evaluator)
    options = {"provider": "openai", "model": model.name, **model.client_options()}
    try:
        llm = PACKAGE.module("phoenix.evals").LLM(**options)
    except _errors() as exc:
        raise EvaluatorError(f"{evaluator}: {exc} (its models need: pip install openai)") from exc
    return adapted(
        instantiate(found, evaluator, {"llm": llm}, _errors()), name=evaluator, model=model.name
    )


def adapted(
    evaluator: Any, *, name: str, model: str | None = None
) -> AdaptedMetric:  # Any: Phoenix's
    """Make an evaluator from an instance of one of Phoenix's evaluators.

    `model` becomes part of the version, so that scores of different models never mix.
    """
    if evaluator.direction != "maximize":
        raise EvaluatorError(
            f"{name}: its direction is {evaluator.direction}, and higher is better for the gate"
        )
    wanted = {n for n, f in evaluator.input_schema.model_fields.items() if f.is_required()}
    require_recorded(name, wanted, _NEEDS.keys())

    def ask(texts: MetricInputs) -> MetricResult:
        fields = {
            "input": texts.question,
            "output": texts.answer,
            "text": texts.answer,
            "context": None if texts.passages is None else "\n\n".join(texts.passages),
            "expected": texts.reference,
            "reference": texts.reference,
        }
        scores = evaluator.evaluate({field: fields[field] for field in wanted})
        if len(scores) != 1:
            return MetricResult(value=[score.score for score in scores])
        (one,) = scores
        label = None if one.label is None else str(one.label)
        return MetricResult(value=one.score, label=label, explanation=one.explanation)

    needs = {need for field in wanted if (need := _NEEDS[field]) is not None}
    version = PACKAGE.version() if model is None else f"{PACKAGE.version()}+{model}"
    return AdaptedMetric(ask, name=name, version=version, needs=needs)


def _is_evaluator(found: Any) -> bool:  # Any: whatever the module holds
    base = PACKAGE.module("phoenix.evals").Evaluator
    return isinstance(found, base) or (isinstance(found, type) and issubclass(found, base))


def _errors() -> tuple[type[Exception], ...]:
    return construction_errors(PACKAGE.module("phoenix.evals.exceptions").PhoenixException)

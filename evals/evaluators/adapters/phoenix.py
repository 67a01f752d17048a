"""Phoenix's evaluators (arize-phoenix-evals), such as `phoenix:FaithfulnessEvaluator`."""

import inspect
from typing import Any

from evals.errors import EvaluatorError
from evals.evaluators.adapters import model as judge
from evals.evaluators.adapters.adapted import AdaptedMetric, MetricResult, Texts
from evals.evaluators.adapters.packages import Package, made, named, only_known, refusals
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
    """Return the evaluator of `phoenix.evals.metrics` that has this name.

    One that asks a model asks the judge of the environment. Raises `EvaluatorError`.
    """
    evaluator = f"phoenix:{name}"
    found = named(PACKAGE.module("phoenix.evals.metrics"), name, evaluator, _is_evaluator)
    if not isinstance(found, type):
        return adapted(found, name=evaluator)
    if "llm" not in inspect.signature(found).parameters:
        return adapted(made(found, evaluator, {}, _refusals()), name=evaluator)
    model = judge.required(evaluator)
    options = {"provider": "openai", "model": model.name, **model.client_options()}
    try:
        llm = PACKAGE.module("phoenix.evals").LLM(**options)
    except _refusals() as exc:
        raise EvaluatorError(f"{evaluator}: {exc} (its models need: pip install openai)") from exc
    return adapted(
        made(found, evaluator, {"llm": llm}, _refusals()), name=evaluator, model=model.name
    )


def adapted(
    evaluator: Any, *, name: str, model: str | None = None
) -> AdaptedMetric:  # Any: Phoenix's
    """Return an evaluator by one of Phoenix's.

    `model` becomes part of the version, so that another one's scores never mix with its own.
    """
    if evaluator.direction != "maximize":
        raise EvaluatorError(
            f"{name}: its direction is {evaluator.direction}, and higher is better for the gate"
        )
    wanted = {n for n, f in evaluator.input_schema.model_fields.items() if f.is_required()}
    only_known(name, wanted, _NEEDS.keys())

    def ask(texts: Texts) -> MetricResult:
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


def _refusals() -> tuple[type[Exception], ...]:
    return refusals(PACKAGE.module("phoenix.evals.exceptions").PhoenixException)

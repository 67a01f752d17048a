"""Ragas's metrics, such as `ragas:Faithfulness`."""

import asyncio
import inspect
import os
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

PACKAGE = Package(prefix="ragas", distribution="ragas", minimum=(0, 4))
_FIELDS = {"user_input", "response", "retrieved_contexts", "reference"}
_LOWER_IS_BETTER = {"NoiseSensitivity"}


def metric(name: str) -> AdaptedMetric:
    """Make an evaluator from the metric of this name in `ragas.metrics.collections`.

    A metric that needs a model uses the judge from the environment. Raises `EvaluatorError`.
    """
    evaluator = f"ragas:{name}"
    collections = _collections()
    found = find_metric(collections, name, evaluator, _is_metric)
    if name in _LOWER_IS_BETTER:
        raise EvaluatorError(f"{evaluator}: lower is better there, and higher for the gate")
    if "llm" not in inspect.signature(found).parameters:
        return adapted(instantiate(found, evaluator, {}, construction_errors()), name=evaluator)
    model = judge.required(evaluator)
    try:
        client = PACKAGE.module("openai").AsyncOpenAI(**model.client_options())
    except construction_errors() as exc:
        raise EvaluatorError(f"{evaluator}: {exc}") from exc
    llm = PACKAGE.module("ragas.llms").llm_factory(model.name, client=client)
    return adapted(
        instantiate(found, evaluator, {"llm": llm}, construction_errors()),
        name=evaluator,
        model=model.name,
    )


def adapted(metric: Any, *, name: str, model: str | None = None) -> AdaptedMetric:  # Any: Ragas's
    """Make an evaluator from an instance of a metric in `ragas.metrics.collections`.

    `model` becomes part of the version, so that scores of different models never mix.
    """
    _collections()
    parameters = inspect.signature(metric.ascore).parameters.values()
    taken = {p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
    require_recorded(
        name, {p.name for p in parameters if p.name in taken and p.default is p.empty}, _FIELDS
    )
    # One event loop for all answers: the client's connections belong to the loop that opened them.
    runner = asyncio.Runner()

    def ask(texts: MetricInputs) -> MetricResult:
        fields = {
            "user_input": texts.question,
            "response": texts.answer,
            "retrieved_contexts": None if texts.passages is None else list(texts.passages),
            "reference": texts.reference,
        }
        given = {k: v for k, v in fields.items() if k in taken and v is not None}
        result = runner.run(metric.ascore(**given))
        return MetricResult(value=result.value, explanation=result.reason)

    needs = {
        need
        for field, need in (("retrieved_contexts", Need.CONTEXT), ("reference", Need.REFERENCE))
        if any(p.name == field and p.default is p.empty for p in parameters)
    }
    version = PACKAGE.version() if model is None else f"{PACKAGE.version()}+{model}"
    return AdaptedMetric(ask, name=name, version=version, needs=needs, close=runner.close)


def _collections() -> Any:  # Any: a module without types
    # Telemetry is off by default; a user who wants it sets the variable.
    os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
    return PACKAGE.module("ragas.metrics.collections")


def _is_metric(found: Any) -> bool:  # Any: whatever the module holds
    base = PACKAGE.module("ragas.metrics.collections").BaseMetric
    return isinstance(found, type) and issubclass(found, base) and found is not base

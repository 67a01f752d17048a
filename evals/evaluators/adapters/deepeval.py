"""DeepEval's metrics, such as `deepeval:FaithfulnessMetric`."""

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

# Before 4.3 some metrics gave higher values to worse answers.
PACKAGE = Package(prefix="deepeval", distribution="deepeval", minimum=(4, 3))
_NEEDS = {
    "input": None,
    "actual_output": None,
    "expected_output": Need.REFERENCE,
    "context": Need.CONTEXT,
    "retrieval_context": Need.CONTEXT,
}


def metric(name: str) -> AdaptedMetric:
    """Make an evaluator from the metric of this name in `deepeval.metrics`.

    A metric that needs a model uses the judge from the environment; if none is set, the model from
    DeepEval's own environment variables. Raises `EvaluatorError`.
    """
    evaluator = f"deepeval:{name}"
    found = find_metric(_metrics(), name, evaluator, _is_metric)
    known: dict[str, Any] = {}  # Any: the package's own objects
    if "model" in inspect.signature(found).parameters and (model := judge.from_environment()):
        known["model"] = _model(model, evaluator)
    return adapted(instantiate(found, evaluator, known, _errors()), name=evaluator)


def adapted(metric: Any, *, name: str) -> AdaptedMetric:  # Any: DeepEval's
    """Make an evaluator from an instance of a metric in `deepeval.metrics`."""
    _metrics()
    wanted = {parameter.value for parameter in metric._required_params}  # noqa: SLF001  # it has no other list
    require_recorded(name, wanted, _NEEDS.keys())
    if metric.requires_trace:
        raise EvaluatorError(
            f"{name} wants a trace by DeepEval, which is not recorded of an answer"
        )
    metric.async_mode = False
    case = PACKAGE.module("deepeval.test_case").LLMTestCase

    def ask(texts: MetricInputs) -> MetricResult:
        passages = None if texts.passages is None else list(texts.passages)
        metric.measure(
            case(
                input=texts.question,
                actual_output=texts.answer,
                expected_output=texts.reference,
                context=passages,
                retrieval_context=passages,
            ),
            _show_indicator=False,
        )
        return MetricResult(
            value=metric.score,
            explanation=metric.reason,
            # DeepEval reports 0 for a model whose price it does not know.
            cost_usd=metric.evaluation_cost or None,
        )

    needs = {need for field in wanted if (need := _NEEDS[field]) is not None}
    version, model = PACKAGE.version(), metric.evaluation_model
    return AdaptedMetric(
        ask,
        name=name,
        version=version if model is None else f"{version}+{model}",
        needs=needs,
    )


def _model(model: judge.ModelEndpoint, evaluator: str) -> Any:  # Any: DeepEval's
    prices = model.prices
    try:
        return PACKAGE.module("deepeval.models").OpenAIModel(
            model=model.name,
            cost_per_input_token=None if prices is None else prices.input_usd / 1e6,
            cost_per_output_token=None if prices is None else prices.output_usd / 1e6,
            **model.client_options(),
        )
    except _errors() as exc:
        raise EvaluatorError(f"{evaluator}: {type(exc).__name__}: {exc}") from exc


def _metrics() -> Any:  # Any: a module without types
    # Telemetry is off by default; a user who wants it sets the variable.
    os.environ.setdefault("DEEPEVAL_TELEMETRY_OPT_OUT", "1")
    return PACKAGE.module("deepeval.metrics")


def _is_metric(found: Any) -> bool:  # Any: whatever the module holds
    base = PACKAGE.module("deepeval.metrics").BaseMetric
    return isinstance(found, type) and issubclass(found, base) and found is not base


def _errors() -> tuple[type[Exception], ...]:
    return construction_errors(PACKAGE.module("deepeval.errors").DeepEvalError)

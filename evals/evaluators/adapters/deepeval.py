"""DeepEval's metrics, such as `deepeval:FaithfulnessMetric`."""

import inspect
import os
from typing import Any

from evals.errors import EvaluatorError
from evals.evaluators.adapters import model as judge
from evals.evaluators.adapters.adapted import AdaptedMetric, MetricResult, Texts
from evals.evaluators.adapters.packages import Package, made, named, only_known, refusals
from evals.evaluators.base import Need

# Before 4.3 some metrics gave more for what is worse.
PACKAGE = Package(prefix="deepeval", distribution="deepeval", minimum=(4, 3))
_NEEDS = {
    "input": None,
    "actual_output": None,
    "expected_output": Need.REFERENCE,
    "context": Need.CONTEXT,
    "retrieval_context": Need.CONTEXT,
}


def metric(name: str) -> AdaptedMetric:
    """Return the metric of `deepeval.metrics` that has this name.

    One that asks a model asks the judge of the environment, and without one what DeepEval's own
    variables name. Raises `EvaluatorError`.
    """
    evaluator = f"deepeval:{name}"
    found = named(_metrics(), name, evaluator, _is_metric)
    known: dict[str, Any] = {}  # Any: the package's own objects
    if "model" in inspect.signature(found).parameters and (asked := judge.from_environment()):
        known["model"] = _model(asked, evaluator)
    return adapted(made(found, evaluator, known, _refusals()), name=evaluator)


def adapted(metric: Any, *, name: str) -> AdaptedMetric:  # Any: DeepEval's
    """Return an evaluator by a metric that was made of `deepeval.metrics`."""
    _metrics()
    wanted = {parameter.value for parameter in metric._required_params}  # noqa: SLF001  # it has no other list
    only_known(name, wanted, _NEEDS.keys())
    if metric.requires_trace:
        raise EvaluatorError(
            f"{name} wants a trace by DeepEval, which is not recorded of an answer"
        )
    metric.async_mode = False
    case = PACKAGE.module("deepeval.test_case").LLMTestCase

    def ask(texts: Texts) -> MetricResult:
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
            # It says 0 of a model whose price it does not know.
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


def _model(asked: judge.Model, evaluator: str) -> Any:  # Any: DeepEval's
    prices = asked.prices
    try:
        return PACKAGE.module("deepeval.models").OpenAIModel(
            model=asked.name,
            cost_per_input_token=None if prices is None else prices.input_usd / 1e6,
            cost_per_output_token=None if prices is None else prices.output_usd / 1e6,
            **asked.client_options(),
        )
    except _refusals() as exc:
        raise EvaluatorError(f"{evaluator}: {type(exc).__name__}: {exc}") from exc


def _metrics() -> Any:  # Any: a module whose types are not there
    # Answers are nobody else's to count; whoever wants to be counted sets the variable.
    os.environ.setdefault("DEEPEVAL_TELEMETRY_OPT_OUT", "1")
    return PACKAGE.module("deepeval.metrics")


def _is_metric(found: Any) -> bool:  # Any: whatever the module holds
    base = PACKAGE.module("deepeval.metrics").BaseMetric
    return isinstance(found, type) and issubclass(found, base) and found is not base


def _refusals() -> tuple[type[Exception], ...]:
    return refusals(PACKAGE.module("deepeval.errors").DeepEvalError)

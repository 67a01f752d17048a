"""A user's own function as an evaluator."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TypeGuard

from collector.contract import Generation, Score
from evals.evaluators.answers import NOT_RECORDED, answer_text
from evals.evaluators.base import AnyEvaluator, Need, scored, unscored

Judgement = float | bool | Score | None
_SIGNED = ("name", "version", "metric", "needs", "close")


class FunctionEvaluator:
    """Scores by a function from a generation to a value in [0, 1], a `Score`, or None.

    The function may say what it needs in an attribute `needs`, and its metric in `metric`; else it
    needs nothing, and the metric is its name. What it raises leaves the answer unscored.
    """

    def __init__(
        self,
        function: Callable[[Generation], Judgement],
        *,
        name: str,
        version: str,
        metric: str | None = None,
        needs: AbstractSet[Need] | None = None,
    ) -> None:
        self._function = function
        self.name = name
        self.version = version
        self.metric = str(metric or getattr(function, "metric", name))
        self.needs: AbstractSet[Need] = (
            needs if needs is not None else frozenset(getattr(function, "needs", ()))
        )

    def score(self, generation: Generation) -> Score | None:
        """Ask the function, where the generation carries what it needs."""
        if not self.needs <= carried(generation):
            return None
        if answer_text(generation) is None:
            return unscored(self, generation, NOT_RECORDED)
        try:
            found = self._function(generation)
        except Exception as exc:  # a stranger's code: its fault is the reason
            return unscored(self, generation, f"{self.name} raised {type(exc).__name__}: {exc}")
        if found is None or isinstance(found, Score):
            return found
        value = float(found)
        if not 0.0 <= value <= 1.0:
            return unscored(self, generation, f"{self.name} returned {value!r}, wanted [0, 1]")
        return scored(self, generation, value)

    def close(self) -> None:
        """Close the function's owner, where it has such a method."""
        close = getattr(self._function, "close", None)
        if callable(close):
            close()


def carried(generation: Generation) -> AbstractSet[Need]:
    """Return what the generation carries of what evaluators may need."""
    content = generation.content
    if content is None:
        return frozenset()
    has = {
        Need.CONTEXT: content.context is not None,
        Need.REFERENCE: content.reference is not None,
        Need.SCHEMA: bool(content.output_schema or content.tool_definitions),
    }
    return frozenset(need for need, there in has.items() if there)


def is_evaluator(found: object) -> TypeGuard[AnyEvaluator]:
    """Say whether an object keeps to the protocol of evaluators."""
    judges = callable(getattr(found, "score", None)) or callable(getattr(found, "score_pair", None))
    return judges and all(hasattr(found, name) for name in _SIGNED)

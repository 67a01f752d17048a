"""A user's own function as an evaluator."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TypeGuard

from collector.contract import Generation, Score
from evals.evaluators.answers import NOT_RECORDED, answer_text
from evals.evaluators.base import AnyEvaluator, Need, scored, unscored

Judgement = float | bool | Score | None
_MEMBERS = ("name", "version", "metric", "needs", "close")


class FunctionEvaluator:
    """Scores with a function that maps a generation to a value in [0, 1], a `Score` or None.

    Optional attributes of the function, `needs` and `metric`, are used unless given here; by
    default it needs nothing and the metric is its name. An exception leaves the answer unscored.
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
        """Call the function if the generation carries the required content."""
        if not self.needs <= needs_met(generation):
            return None
        if answer_text(generation) is None:
            return unscored(self, generation, NOT_RECORDED)
        try:
            found = self._function(generation)
        except Exception as exc:  # user code may raise anything; that is the unscored reason
            return unscored(self, generation, f"{self.name} raised {type(exc).__name__}: {exc}")
        if found is None or isinstance(found, Score):
            return found
        value = float(found)
        if not 0.0 <= value <= 1.0:
            return unscored(self, generation, f"{self.name} returned {value!r}, wanted [0, 1]")
        return scored(self, generation, value)

    def close(self) -> None:
        """Call the function's own `close` if it has one."""
        close = getattr(self._function, "close", None)
        if callable(close):
            close()


def needs_met(generation: Generation) -> AbstractSet[Need]:
    """Return the needs of evaluators that this generation's content meets."""
    content = generation.content
    if content is None:
        return frozenset()
    has = {
        Need.CONTEXT: content.context is not None,
        Need.REFERENCE: content.reference is not None,
        Need.SCHEMA: bool(content.output_schema or content.tool_definitions),
    }
    return frozenset(need for need, is_met in has.items() if is_met)


def is_evaluator(found: object) -> TypeGuard[AnyEvaluator]:
    """Return whether an object has the members of an evaluator."""
    judges = callable(getattr(found, "score", None)) or callable(getattr(found, "score_pair", None))
    return judges and all(hasattr(found, name) for name in _MEMBERS)

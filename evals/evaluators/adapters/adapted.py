"""A metric of another package as an evaluator, whatever the package."""

import math
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from numbers import Real
from traceback import walk_tb

from collector.contract import Generation, Score
from evals.evaluators.answers import NOT_RECORDED, answer_text
from evals.evaluators.base import Need, scored, unscored
from evals.evaluators.conversation import asked_text
from evals.evaluators.function import carried
from evals.evaluators.reference import ExactText, QaAnswers, UnusableReferenceError
from evals.evaluators.reference_reading import parse

_LONGEST = 1000
_ROUNDING = 1e-6
"""How far a value may lie outside [0, 1] by floating-point arithmetic, and is taken for its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What a metric may look at."""

    question: str
    """The messages that went in, each after its role."""
    answer: str
    passages: tuple[str, ...] | None
    reference: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricResult:
    """What a metric said, as it said it."""

    value: object
    label: str | None = None
    explanation: str | None = None
    cost_usd: float | None = None


class AdaptedMetric:
    """Scores by a metric of another package.

    What is raised in the package, or in what it stands on, leaves the answer unscored with the
    reason; so does a value that is no number in [0, 1].
    """

    def __init__(
        self,
        judge: Callable[[Texts], MetricResult],
        *,
        name: str,
        version: str,
        needs: AbstractSet[Need],
        close: Callable[[], None] | None = None,
    ) -> None:
        """Take the call that judges."""
        self.name = name[:255]
        self.version = version[:255]
        # Two packages have a "faithfulness" each: a metric of its own keeps their scores apart.
        self.metric = name.replace(":", "_")[:255]
        self.needs = needs
        self._judge, self._close = judge, close

    def score(self, generation: Generation) -> Score | None:
        """Ask the metric, where the generation carries what it needs as text."""
        if not self.needs <= carried(generation):
            return None
        reference = _reference_text(generation)
        if Need.REFERENCE in self.needs and reference is None:
            return None
        answer = answer_text(generation)
        if answer is None or generation.content is None:
            return unscored(self, generation, NOT_RECORDED)
        texts = Texts(
            question=asked_text(generation),
            answer=answer,
            passages=generation.content.context,
            reference=reference,
        )
        try:
            found = self._judge(texts)
        except Exception as exc:
            # A model's odd reply makes metrics raise anything from KeyError to AttributeError.
            if _raised_here(exc):
                raise
            reason = f"{self.name} raised {type(exc).__name__}: {exc}"
            return unscored(self, generation, reason[:_LONGEST])
        return self._scored(generation, found)

    def close(self) -> None:
        """Release what the metric opened."""
        if self._close is not None:
            self._close()
            self._close = None

    def _scored(self, generation: Generation, found: MetricResult) -> Score:
        value = _in_range(found.value)
        said = None if found.explanation is None else found.explanation[:_LONGEST]
        if value is None:
            reason = f"{self.name} gave {found.value!r}, wanted a number in [0, 1]"
            if said:
                reason = f"{reason}: {said}"
            return unscored(self, generation, reason[:_LONGEST], cost_usd=found.cost_usd)
        return scored(
            self,
            generation,
            value,
            label=found.label,
            explanation=said,
            cost_usd=found.cost_usd,
        )


def _raised_here(exc: Exception) -> bool:
    """Say whether the innermost frame is Draftgate's own: then it is no fault of the package."""
    innermost = None
    for frame, _ in walk_tb(exc.__traceback__):
        innermost = frame
    return innermost is None or innermost.f_globals.get("__name__", "").startswith("evals.")


def _in_range(value: object) -> float | None:
    if not isinstance(value, Real) or not math.isfinite(value):
        return None
    number = float(value)
    if not -_ROUNDING <= number <= 1 + _ROUNDING:
        return None
    return min(1.0, max(0.0, number))


def _reference_text(generation: Generation) -> str | None:
    """Return the one text that the answer should be; `None` where there is none, or several."""
    text = generation.content.reference if generation.content else None
    if text is None:
        return None
    try:
        reference = parse(text)
    except UnusableReferenceError:
        return None
    if isinstance(reference, ExactText):
        return reference.text
    if isinstance(reference, QaAnswers) and len(reference.answers) == 1:
        return reference.answers[0]
    return None

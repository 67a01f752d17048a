"""An evaluator made from another package's metric."""

import math
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from numbers import Real
from traceback import walk_tb

from collector.contract import Generation, Score
from evals.evaluators.answers import NOT_RECORDED, answer_text
from evals.evaluators.base import Need, scored, unscored
from evals.evaluators.conversation import prompt_transcript
from evals.evaluators.function import needs_met
from evals.evaluators.reference import ExactText, QaAnswers, UnusableReferenceError
from evals.evaluators.reference_reading import parse

_MAX_CHARACTERS = 1000
_ROUNDING = 1e-6
"""A value outside [0, 1] by at most this much is a rounding error, and is clamped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInputs:
    """A metric's inputs."""

    question: str
    """The input messages, one `role: text` line each."""
    answer: str
    passages: tuple[str, ...] | None
    reference: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricResult:
    """A metric's result, unchecked."""

    value: object
    label: str | None = None
    explanation: str | None = None
    cost_usd: float | None = None


class AdaptedMetric:
    """Scores with a metric of another package.

    An exception raised in the package or its dependencies leaves the answer unscored, with the
    reason; so does a value that is no number in [0, 1].
    """

    def __init__(
        self,
        judge: Callable[[MetricInputs], MetricResult],
        *,
        name: str,
        version: str,
        needs: AbstractSet[Need],
        close: Callable[[], None] | None = None,
    ) -> None:
        """Wrap `judge`, the call to the package's metric."""
        self.name = name[:255]
        self.version = version[:255]
        # Two packages may both have a "faithfulness"; the prefix keeps their scores apart.
        self.metric = name.replace(":", "_")[:255]
        self.needs = needs
        self._judge, self._close = judge, close

    def score(self, generation: Generation) -> Score | None:
        """Call the metric if the generation carries the required content as text."""
        if not self.needs <= needs_met(generation):
            return None
        reference = _reference_text(generation)
        if Need.REFERENCE in self.needs and reference is None:
            return None
        answer = answer_text(generation)
        if answer is None or generation.content is None:
            return unscored(self, generation, NOT_RECORDED)
        texts = MetricInputs(
            question=prompt_transcript(generation),
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
            return unscored(self, generation, reason[:_MAX_CHARACTERS])
        return self._scored(generation, found)

    def close(self) -> None:
        """Release the metric's resources."""
        if self._close is not None:
            self._close()
            self._close = None

    def _scored(self, generation: Generation, found: MetricResult) -> Score:
        value = _in_range(found.value)
        explanation = None if found.explanation is None else found.explanation[:_MAX_CHARACTERS]
        if value is None:
            reason = f"{self.name} gave {found.value!r}, wanted a number in [0, 1]"
            if explanation:
                reason = f"{reason}: {explanation}"
            return unscored(self, generation, reason[:_MAX_CHARACTERS], cost_usd=found.cost_usd)
        return scored(
            self,
            generation,
            value,
            label=found.label,
            explanation=explanation,
            cost_usd=found.cost_usd,
        )


def _raised_here(exc: Exception) -> bool:
    """Return whether the innermost frame is Draftgate's own; then the package is not at fault."""
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
    """Return the reference if it is a single text, else `None`."""
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

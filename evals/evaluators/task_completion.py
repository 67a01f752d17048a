"""Whether the answer is the right one: exact text, JSON values, or code that passes its tests."""

import math

from collector.contract import Generation, Score
from evals.evaluators.answers import NOT_RECORDED, NotJsonError, answer_text, json_value
from evals.evaluators.base import scored, unscored
from evals.evaluators.code_tests import CodeRunner, Refused, program_of
from evals.evaluators.reference import (
    CodeTests,
    ExactText,
    JsonValue,
    UnusableReferenceError,
    parse,
)

_TOLERANCE = 1e-9


class TaskCompletion:
    """1 where the answer is what its reference says, else 0.

    Applies where a generation carries a reference. Owns the process that runs code, which it
    starts at the first program.
    """

    name = "reference"
    version = "1"
    metric = "task_completion"

    def __init__(self, runner: CodeRunner | None = None) -> None:
        self._runner = runner or CodeRunner()

    def score(self, generation: Generation) -> Score | None:
        """Compare the answer with its reference."""
        text = generation.content.reference if generation.content else None
        if text is None:
            return None
        if (answer := answer_text(generation)) is None:
            return unscored(self, generation, NOT_RECORDED)
        try:
            reference = parse(text)
        except UnusableReferenceError as exc:
            return unscored(self, generation, str(exc))
        if isinstance(reference, CodeTests):
            return self._run(generation, reference, answer)
        problem = _text_problem if isinstance(reference, ExactText) else _json_problem
        found = problem(answer, reference)  # type: ignore[arg-type]  # chosen by its type above
        return self._verdict(generation, found)

    def close(self) -> None:
        """End the process that runs code."""
        self._runner.close()

    def _run(self, generation: Generation, reference: CodeTests, answer: str) -> Score:
        result = self._runner.run(program_of(reference, answer), reference.tests)
        if isinstance(result, Refused):
            return unscored(self, generation, result.reason)
        return self._verdict(generation, result.problem)

    def _verdict(self, generation: Generation, problem: str | None) -> Score:
        if problem is None:
            return scored(self, generation, 1.0, label="correct")
        return scored(self, generation, 0.0, label="wrong", explanation=problem)


def _text_problem(answer: str, reference: ExactText) -> str | None:
    """Return where the texts part, white space aside; `None` where they are equal."""
    got, wanted = answer.split(), reference.text.split()
    if got == wanted:
        return None
    same = next((i for i, (g, w) in enumerate(zip(got, wanted, strict=False)) if g != w), None)
    at = min(len(got), len(wanted)) if same is None else same
    return f"word {at + 1}: wanted {_word(wanted, at)}, got {_word(got, at)}"


def _word(words: list[str], at: int) -> str:
    return repr(words[at][:60]) if at < len(words) else "the end"


def _json_problem(answer: str, reference: JsonValue) -> str | None:
    try:
        value = json_value(answer)
    except NotJsonError as exc:
        return f"not JSON: {exc}"
    return difference(value, reference.value)


def difference(got: object, wanted: object, at: str = "answer") -> str | None:
    """Return where two JSON values differ, `None` where they are equal.

    Numbers are equal within one part in 10⁹, whether written whole or not; true is not 1; the
    order of keys does not matter, that of a list does.
    """
    if isinstance(wanted, dict) and isinstance(got, dict):
        return _object_difference(got, wanted, at)
    if isinstance(wanted, list) and isinstance(got, list):
        if len(got) != len(wanted):
            return f"{at}: wanted {len(wanted)} items, got {len(got)}"
        found = (
            difference(g, w, f"{at}[{i}]") for i, (g, w) in enumerate(zip(got, wanted, strict=True))
        )
        return next((problem for problem in found if problem), None)
    if _is_number(got) and _is_number(wanted):
        equal = _close(got, wanted)
    else:
        equal = type(got) is type(wanted) and got == wanted
    return None if equal else f"{at}: wanted {_short(wanted)}, got {_short(got)}"


def _object_difference(got: dict[str, object], wanted: dict[str, object], at: str) -> str | None:
    for key in sorted(got.keys() ^ wanted.keys()):
        return f"{at}.{key}: {'missing' if key in wanted else 'not wanted'}"
    found = (difference(got[key], wanted[key], f"{at}.{key}") for key in sorted(wanted))
    return next((problem for problem in found if problem), None)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _close(got: object, wanted: object) -> bool:
    if isinstance(got, int) and isinstance(wanted, int):
        return got == wanted
    try:
        return math.isclose(float(got), float(wanted), rel_tol=_TOLERANCE)  # type: ignore[arg-type]
    except OverflowError:
        return False


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

"""Rules for JSON: a whole value, or a schema and values at JSON Pointers."""

import math
from collections.abc import Mapping

from evals.evaluators.answers import NotJsonError, json_value
from evals.evaluators.json_schema import UnusableSchemaError, problems
from evals.evaluators.reference import JsonParts, JsonValue, UnusableReferenceError
from evals.evaluators.rules.outcome import RuleResult

_TOLERANCE = 1e-9
_ABSENT = object()


def value(answer: str, reference: JsonValue) -> RuleResult:
    """Compare the whole value."""
    try:
        got = json_value(answer)
    except NotJsonError as exc:
        return RuleResult(0.0, f"not JSON: {exc}")
    return RuleResult.of(difference(got, reference.value))


def parts(answer: str, reference: JsonParts) -> RuleResult:
    """Validate against the schema, then compare the required values."""
    try:
        got = json_value(answer)
    except NotJsonError as exc:
        return RuleResult(0.0, f"not JSON: {exc}")
    if reference.schema is not None:
        try:
            wrong = problems(reference.schema, got)
        except UnusableSchemaError as exc:
            raise UnusableReferenceError(str(exc)) from exc
        if wrong:
            return RuleResult(0.0, "; ".join(wrong))
    for pointer, wanted in reference.required.items():
        found = _at(got, pointer)
        if found is _ABSENT:
            return RuleResult(0.0, f"{pointer or 'answer'}: missing")
        if problem := difference(found, wanted, pointer or "answer"):
            return RuleResult(0.0, problem)
    return RuleResult(1.0)


def difference(got: object, wanted: object, at: str = "answer") -> str | None:
    """Describe the first difference between two JSON values; `None` if they are equal.

    Two integers must be equal; other numbers are equal within one part in 10⁹. true is not 1. The
    order of keys does not matter; the order of list items does.
    """
    if isinstance(wanted, Mapping) and isinstance(got, Mapping):
        return _object_difference(got, wanted, at)
    if isinstance(wanted, list) and isinstance(got, list):
        if len(got) != len(wanted):
            return f"{at}: wanted {len(wanted)} items, got {len(got)}"
        found = (
            difference(g, w, f"{at}[{i}]") for i, (g, w) in enumerate(zip(got, wanted, strict=True))
        )
        return next((problem for problem in found if problem), None)
    if is_number(got) and is_number(wanted):
        equal = _close(got, wanted)
    else:
        equal = type(got) is type(wanted) and got == wanted
    return None if equal else f"{at}: wanted {short(wanted)}, got {short(got)}"


def is_number(given: object) -> bool:
    """Return whether a JSON value is a number; true and false are not."""
    return isinstance(given, int | float) and not isinstance(given, bool)


def short(given: object) -> str:
    """Return the value in at most 60 characters."""
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _object_difference(
    got: Mapping[str, object], wanted: Mapping[str, object], at: str
) -> str | None:
    for key in sorted(got.keys() ^ wanted.keys()):
        return f"{at}.{key}: {'missing' if key in wanted else 'not wanted'}"
    found = (difference(got[key], wanted[key], f"{at}.{key}") for key in sorted(wanted))
    return next((problem for problem in found if problem), None)


def _at(document: object, pointer: str) -> object:
    """Follow a JSON Pointer; `_ABSENT` if nothing is there."""
    found = document
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return _ABSENT
    return found


def _close(got: object, wanted: object) -> bool:
    if isinstance(got, int) and isinstance(wanted, int):
        return got == wanted
    try:
        return math.isclose(float(got), float(wanted), rel_tol=_TOLERANCE)  # type: ignore[arg-type]
    except OverflowError:
        return False

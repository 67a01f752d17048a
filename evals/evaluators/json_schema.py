"""Validation against a JSON Schema; external references are refused, never fetched."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import jsonschema_rs

_MAX_ERRORS = 3
_REDACTED = "[redacted:"


class UnusableSchemaError(ValueError):
    """A schema that is invalid or has external references."""


class RedactedError(ValueError):
    """Only redacted values break the schema, so that validity is unknown."""


class SchemaFault(NamedTuple):
    """An error of validation."""

    message: str
    """The violation, with its path."""
    path: tuple[str | int, ...]
    """Keys and indices from the whole value to the one that is wrong."""
    missing: bool
    """The object at the path lacks a member."""
    redacted: bool = False
    """The value at the path is a text with a mark of redaction, which may not have been wrong."""


def problems(schema: str | Mapping[str, object], value: object) -> list[str]:
    """Validate a value; return the messages of at most three `faults`."""
    return [fault.message for fault in faults(schema, value)]


def faults(schema: str | Mapping[str, object], value: object) -> list[SchemaFault]:
    """Validate a value; return at most three errors.

    The draft is the one that the schema names, 2020-12 by default. Raises `UnusableSchemaError`.
    """
    text = schema if isinstance(schema, str) else json.dumps(schema, sort_keys=True)
    try:
        validator = _validator(text)
    except (ValueError, RecursionError) as exc:  # jsonschema_rs' errors are ValueErrors
        raise UnusableSchemaError(f"the schema is not usable: {first_line(exc)}") from exc
    errors = zip(validator.iter_errors(value), range(_MAX_ERRORS), strict=False)
    return [_fault(error) for error, _ in errors]


def require_unredacted(found: Sequence[SchemaFault]) -> None:
    """Raise `RedactedError` if every fault is at a redacted value."""
    if all(fault.redacted for fault in found):
        raise RedactedError("a redacted value cannot be held against the schema")


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, at most 200 characters."""
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__


@lru_cache(maxsize=256)
def _validator(schema: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(json.loads(schema), offline=True)


def _fault(error: jsonschema_rs.ValidationError) -> SchemaFault:
    at = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path
    )
    message = f"{at.lstrip('.') or 'answer'}: {first_line(error)}"
    return SchemaFault(
        message,
        tuple(error.instance_path),
        missing=error.schema_path[-1:] == ["required"],
        redacted=isinstance(error.instance, str) and _REDACTED in error.instance,
    )

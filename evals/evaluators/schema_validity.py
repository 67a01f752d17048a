"""Whether the answer satisfies its JSON Schema."""

import json
from functools import lru_cache

import jsonschema_rs

from collector.contract import Generation, Score
from evals.evaluators.answers import NOT_RECORDED, NotJsonError, answer_text, json_value
from evals.evaluators.base import scored, unscored

_MAX_ERRORS = 3


class SchemaValidity:
    """1 where the answer is JSON that its schema allows, else 0; references never leave the schema.

    Applies where a generation carries an output schema.
    """

    name = "json-schema"
    version = "1"
    metric = "schema_validity"

    def score(self, generation: Generation) -> Score | None:
        """Validate the answer; a schema that is itself invalid leaves it unscored."""
        schema = generation.content.output_schema if generation.content else None
        if schema is None:
            return None
        if (text := answer_text(generation)) is None:
            return unscored(self, generation, NOT_RECORDED)
        try:
            validator = _validator(schema)
        except (ValueError, RecursionError) as exc:  # jsonschema_rs' errors are ValueErrors
            return unscored(self, generation, f"the schema is not usable: {_first_line(exc)}")
        try:
            value = json_value(text)
        except NotJsonError as exc:
            return scored(self, generation, 0.0, label="not_json", explanation=str(exc))
        errors = [
            _words(error)
            for error, _ in zip(validator.iter_errors(value), range(_MAX_ERRORS), strict=False)
        ]
        if errors:
            return scored(self, generation, 0.0, label="invalid", explanation="; ".join(errors))
        return scored(self, generation, 1.0, label="valid")

    def close(self) -> None:
        """Release nothing."""


@lru_cache(maxsize=256)
def _validator(schema: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(json.loads(schema), offline=True)


def _words(error: jsonschema_rs.ValidationError) -> str:
    at = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path
    )
    return f"{at.lstrip('.') or 'answer'}: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__

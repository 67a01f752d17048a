"""Whether the answer satisfies its JSON Schema."""

from collections.abc import Set as AbstractSet
from typing import ClassVar

from collector.contract import Generation, Score
from evals.evaluators.answers import NOT_RECORDED, NotJsonError, answer_text, json_value
from evals.evaluators.base import Need, scored, unscored
from evals.evaluators.json_schema import UnusableSchemaError, problems


class SchemaValidity:
    """1 where the answer is JSON that its schema allows, else 0; references never leave the schema.

    Applies where a generation carries an output schema.
    """

    name = "json-schema"
    version = "1"
    metric = "schema_validity"
    needs: ClassVar[AbstractSet[Need]] = frozenset({Need.SCHEMA})

    def score(self, generation: Generation) -> Score | None:
        """Validate the answer; a schema that is itself invalid leaves it unscored."""
        schema = generation.content.output_schema if generation.content else None
        if schema is None:
            return None
        if (text := answer_text(generation)) is None:
            return unscored(self, generation, NOT_RECORDED)
        try:
            errors = self._errors(schema, text)
        except UnusableSchemaError as exc:
            return unscored(self, generation, str(exc))
        except NotJsonError as exc:
            return scored(self, generation, 0.0, label="not_json", explanation=str(exc))
        if errors:
            return scored(self, generation, 0.0, label="invalid", explanation="; ".join(errors))
        return scored(self, generation, 1.0, label="valid")

    def close(self) -> None:
        """Release nothing."""

    def _errors(self, schema: str, text: str) -> list[str]:
        problems(schema, None)  # an unusable schema is found out before an answer that is no JSON
        return problems(schema, json_value(text))

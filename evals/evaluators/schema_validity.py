"""Whether the answer satisfies its JSON Schema."""

from collections.abc import Set as AbstractSet
from typing import ClassVar

from collector.contract import Generation, Score
from evals.evaluators.answers import NOT_RECORDED, NotJsonError, answer_text, json_value
from evals.evaluators.base import Need, scored, unscored
from evals.evaluators.json_schema import UnusableSchemaError, problems
from evals.evaluators.rules.call_arguments import arguments
from evals.evaluators.rules.outcome import Found


class SchemaValidity:
    """1 where what the answer says in JSON is what its schema allows, else 0.

    Of an answer that calls tools that is the calls' arguments, by the tools' own schemas; of any
    other, under an output schema, its text. An answer that has tools and calls none is valid.
    References never leave a schema. Applies where a generation carries an output schema or tools.
    """

    name = "json-schema"
    version = "2"
    metric = "schema_validity"
    needs: ClassVar[AbstractSet[Need]] = frozenset({Need.SCHEMA})

    def score(self, generation: Generation) -> Score | None:
        """Validate the answer; a schema that is itself invalid leaves it unscored."""
        content = generation.content
        if content is None or not (content.output_schema or content.tool_definitions):
            return None
        if (text := answer_text(generation)) is None:
            return unscored(self, generation, NOT_RECORDED)
        try:
            if content.tool_definitions is not None:
                called = arguments(generation)
                if called is not None or content.output_schema is None:
                    return self._of_calls(generation, called)
            return self._of_text(generation, content.output_schema or "", text)
        except UnusableSchemaError as exc:
            return unscored(self, generation, str(exc))

    def close(self) -> None:
        """Release nothing."""

    def _of_text(self, generation: Generation, schema: str, text: str) -> Score:
        try:
            errors = self._errors(schema, text)
        except NotJsonError as exc:
            return scored(self, generation, 0.0, label="not_json", explanation=str(exc))
        if errors:
            return scored(self, generation, 0.0, label="invalid", explanation="; ".join(errors))
        return scored(self, generation, 1.0, label="valid")

    def _of_calls(self, generation: Generation, found: Found | None) -> Score:
        if found is None:
            return scored(self, generation, 1.0, label="no_calls")
        if found.problem is None:
            return scored(self, generation, 1.0, label="valid")
        return scored(self, generation, 0.0, label="invalid", explanation=found.problem)

    def _errors(self, schema: str, text: str) -> list[str]:
        problems(schema, None)  # an unusable schema is found out before an answer that is no JSON
        return problems(schema, json_value(text))

"""Check the answer against its JSON Schema."""

from collections.abc import Set as AbstractSet
from typing import ClassVar

from collector.contract import Generation, Score
from evals.evaluators.answers import NOT_RECORDED, NotJsonError, answer_text, json_value
from evals.evaluators.base import Need, scored, unscored
from evals.evaluators.json_schema import UnusableSchemaError, problems
from evals.evaluators.rules.call_arguments import arguments
from evals.evaluators.rules.outcome import RuleResult


class SchemaValidity:
    """1 if the answer's JSON is valid under its schema, else 0.

    If the answer calls tools, the calls' arguments are validated against the tools' schemas;
    otherwise its text against the output schema, if the request has one. An answer that has tools,
    calls none and has no output schema is valid. External references of a schema are never
    fetched. Applies to generations with an output schema or tools.
    """

    name = "json-schema"
    version = "2"
    metric = "schema_validity"
    needs: ClassVar[AbstractSet[Need]] = frozenset({Need.SCHEMA})

    def score(self, generation: Generation) -> Score | None:
        """Validate the answer; an invalid schema leaves it unscored."""
        content = generation.content
        if content is None or not (content.output_schema or content.tool_definitions):
            return None
        if (text := answer_text(generation)) is None:
            return unscored(self, generation, NOT_RECORDED)
        try:
            if content.tool_definitions is not None:
                called = arguments(generation)
                if called is not None or content.output_schema is None:
                    return self._score_calls(generation, called)
            return self._score_text(generation, content.output_schema or "", text)
        except UnusableSchemaError as exc:
            return unscored(self, generation, str(exc))

    def close(self) -> None:
        """Release nothing."""

    def _score_text(self, generation: Generation, schema: str, text: str) -> Score:
        try:
            errors = self._errors(schema, text)
        except NotJsonError as exc:
            return scored(self, generation, 0.0, label="not_json", explanation=str(exc))
        if errors:
            return scored(self, generation, 0.0, label="invalid", explanation="; ".join(errors))
        return scored(self, generation, 1.0, label="valid")

    def _score_calls(self, generation: Generation, found: RuleResult | None) -> Score:
        if found is None:
            return scored(self, generation, 1.0, label="no_calls")
        if found.problem is None:
            return scored(self, generation, 1.0, label="valid")
        return scored(self, generation, 0.0, label="invalid", explanation=found.problem)

    def _errors(self, schema: str, text: str) -> list[str]:
        problems(schema, None)  # so an unusable schema is reported even if the answer is no JSON
        return problems(schema, json_value(text))

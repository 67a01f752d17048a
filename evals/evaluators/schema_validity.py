"""Check the answer against its JSON Schema."""

from collections.abc import Set as AbstractSet
from typing import ClassVar

from collector.contract import Content, Generation, Score, ScoredSpan
from evals.evaluators.answers import NOT_RECORDED, NotJsonError, answer_text, json_value
from evals.evaluators.base import Need, scored, unscored
from evals.evaluators.json_position import fault_in
from evals.evaluators.json_schema import (
    RedactedError,
    UnusableSchemaError,
    faults,
    require_unredacted,
)
from evals.evaluators.rules.call_arguments import arguments
from evals.evaluators.rules.tool_choice import ToolChoice


class SchemaValidity:
    """1 if the answer's JSON is valid under its schema, else 0.

    If the answer calls tools, the calls' arguments are validated against the tools' schemas;
    otherwise its text against the output schema, if the request has one. An answer that has tools,
    calls none and has no output schema is valid, unless the request's `tool_choice` asks for a
    call. External references of a schema are never fetched. Applies to generations with an output
    schema or tools. The span of an invalid answer begins where its JSON breaks, if that is known:
    in its text, or in the arguments of the call that breaks.
    """

    name = "json-schema"
    version = "6"
    metric = "schema_validity"
    needs: ClassVar[AbstractSet[Need]] = frozenset({Need.SCHEMA})

    def score(self, generation: Generation) -> Score | None:
        """Validate the answer; an invalid schema, or a redacted value, leaves it unscored."""
        content = generation.content
        if content is None or not (content.output_schema or content.tool_definitions):
            return None
        if (text := answer_text(generation)) is None:
            return unscored(self, generation, NOT_RECORDED)
        try:
            if content.tool_definitions is not None:
                found = self._score_calls(generation, content)
                if found is not None:
                    return found
            return self._score_text(generation, content.output_schema or "", text)
        except (UnusableSchemaError, RedactedError) as exc:
            return unscored(self, generation, str(exc))

    def close(self) -> None:
        """Release nothing."""

    def _score_text(self, generation: Generation, schema: str, text: str) -> Score:
        faults(schema, None)  # so an unusable schema is reported even if the answer is no JSON
        try:
            found = faults(schema, json_value(text))
        except NotJsonError as exc:
            return self._invalid(generation, "not_json", str(exc), fault_in(text))
        if not found:
            return scored(self, generation, 1.0, label="valid")
        require_unredacted(found)
        said = "; ".join(fault.message for fault in found)
        return self._invalid(generation, "invalid", said, fault_in(text, found[0]))

    def _score_calls(self, generation: Generation, content: Content) -> Score | None:
        """Return the score of the answer's calls, or of their absence; None: judge its text."""
        called = arguments(generation)
        choice = ToolChoice.of(content.tool_choice)
        if called is None:
            if choice.asks_for_call:
                return scored(self, generation, 0.0, label="no_calls", explanation=choice.unmet)
            valid = scored(self, generation, 1.0, label="no_calls")
            return valid if content.output_schema is None else None
        problem = called.problem or choice.problem(generation)
        if problem is None:
            return scored(self, generation, 1.0, label="valid")
        return self._invalid(generation, "invalid", problem, called.span)

    def _invalid(
        self, generation: Generation, label: str, problem: str, span: ScoredSpan | None
    ) -> Score:
        spans = None if span is None else [span]
        return scored(self, generation, 0.0, label=label, explanation=problem, spans=spans)

"""Text attributes of each dialect, and the messages that are read from them."""

import json
from typing import Any

import pytest

from collector.contract import AttributeValue
from collector.dialects import content, is_text

CONTENTS: dict[str, tuple[str, dict[str, AttributeValue], list[Any], list[Any]]] = {
    "a structured list": (
        "draftgate",
        {
            "gen_ai.input.messages": (
                {"role": "user", "parts": ({"type": "text", "content": "hi"},)},
            )
        },
        [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
        [],
    ),
    "system instructions": (
        "draftgate",
        {
            "gen_ai.system_instructions": '[{"type": "text", "content": "be brief"}]',
            "gen_ai.input.messages": '[{"role": "user", "parts": []}]',
        },
        [
            {"role": "system", "parts": [{"type": "text", "content": "be brief"}]},
            {"role": "user", "parts": []},
        ],
        [],
    ),
    "Langfuse messages": (
        "langfuse",
        {
            "langfuse.observation.input": json.dumps(
                {
                    "messages": [
                        {"role": "user", "content": [{"type": "text", "text": "see"}]},
                        {"role": "tool", "tool_call_id": "c1", "content": "22 C"},
                    ]
                }
            ),
            "langfuse.observation.output": json.dumps(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c2", "function": {"name": "f", "arguments": "{}"}}],
                }
            ),
        },
        [
            {"role": "user", "parts": [{"type": "text", "content": "see"}]},
            {
                "role": "tool",
                "parts": [{"type": "tool_call_response", "id": "c1", "response": "22 C"}],
            },
        ],
        [
            {
                "role": "assistant",
                "parts": [{"type": "tool_call", "name": "f", "id": "c2", "arguments": {}}],
            }
        ],
    ),
    "Langfuse text": (
        "langfuse",
        {"langfuse.observation.input": "hi", "langfuse.observation.output": "[1"},
        [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}],
        [{"role": "assistant", "parts": [{"type": "text", "content": "[1"}]}],
    ),
    "OpenInference messages": (
        "openinference",
        {
            "llm.input_messages.10.message.role": "tool",
            "llm.input_messages.10.message.content": "22 C",
            "llm.input_messages.10.message.tool_call_id": "c1",
            "llm.input_messages.2.message.role": "user",
            "llm.input_messages.2.message.contents.0.message_content.text": "see",
            "llm.input_messages.2.message.contents.1.message_content.image.image.url": "http://i",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c2",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "f",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"a": 1}',
            "input.value": "all of it again",
        },
        [
            {
                "role": "user",
                "parts": [
                    {"type": "text", "content": "see"},
                    {"type": "uri", "modality": "image", "uri": "http://i"},
                ],
            },
            {
                "role": "tool",
                "parts": [{"type": "tool_call_response", "id": "c1", "response": "22 C"}],
            },
        ],
        [
            {
                "role": "assistant",
                "parts": [{"type": "tool_call", "name": "f", "id": "c2", "arguments": {"a": 1}}],
            }
        ],
    ),
    "OpenInference prompts": (
        "openinference",
        {"llm.prompts.0.prompt.text": "capital?", "llm.choices.0.completion.text": "Paris"},
        [{"role": "user", "parts": [{"type": "text", "content": "capital?"}]}],
        [{"role": "assistant", "parts": [{"type": "text", "content": "Paris"}]}],
    ),
    "input and output values": (
        "openinference",
        {"input.value": "capital?", "output.value": "Paris"},
        [{"role": "user", "parts": [{"type": "text", "content": "capital?"}]}],
        [{"role": "assistant", "parts": [{"type": "text", "content": "Paris"}]}],
    ),
    "traceAI": (
        "traceai",
        {
            "gen_ai.input.messages.0.message.role": "user",
            "gen_ai.input.messages.0.message.content": "capital?",
            "output.value": "Paris",
        },
        [{"role": "user", "parts": [{"type": "text", "content": "capital?"}]}],
        [{"role": "assistant", "parts": [{"type": "text", "content": "Paris"}]}],
    ),
    "OpenLLMetry": (
        "openllmetry",
        {
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "capital?",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "Paris",
            "gen_ai.completion.0.finish_reason": "stop",
        },
        [{"role": "user", "parts": [{"type": "text", "content": "capital?"}]}],
        [
            {
                "role": "assistant",
                "parts": [{"type": "text", "content": "Paris"}],
                "finish_reason": "stop",
            }
        ],
    ),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_text_becomes_messages_of_the_contract(case: str) -> None:
    """However it was sent, the content is a JSON list of messages with parts."""
    name, text, wanted_input, wanted_output = CONTENTS[case]
    assert [attribute for attribute in text if not is_text(attribute)] == []
    found = content(name, text)
    assert found is not None
    assert json.loads(found.input_messages or "[]") == wanted_input
    assert json.loads(found.output_messages or "[]") == wanted_output


@pytest.mark.parametrize(
    "attribute",
    [
        "gen_ai.system_instructions",
        "gen_ai.tool.call.result",
        "retrieval.documents.0.document.content",
        "traceloop.entity.input",
        "gen_ai.prompt",
        "annotations.0.annotation.explanation",
        "llm.prompt_template.variables",
    ],
)
def test_text_is_known_as_text(attribute: str) -> None:
    """Whatever may hold a prompt, an answer or a passage is kept apart."""
    assert is_text(attribute)


@pytest.mark.parametrize(
    "attribute",
    [
        "gen_ai.request.model",
        "gen_ai.prompt.name",
        "llm.model_name",
        "annotations.0.annotation.name",
    ],
)
def test_numbers_and_names_are_no_text(attribute: str) -> None:
    """Values that are not text stay with the span."""
    assert not is_text(attribute)

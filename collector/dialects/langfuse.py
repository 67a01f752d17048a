"""Langfuse, as written by its SDKs: observations of the type `generation`."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import chain

from collector.contract import AttributeValue, Content, Decoded, Span, attributes
from collector.dialects import messages, openinference
from collector.dialects.dialect import Dialect
from collector.dialects.translation import (
    Table,
    Translated,
    contract_content,
    decode_translated,
    json_object,
    load_json,
    renamed,
    string_list,
)

_PREFIX = "langfuse.observation."
_MODEL, _PARAMETERS = f"{_PREFIX}model.name", f"{_PREFIX}model.parameters"
_USAGE, _FIRST_TOKEN = f"{_PREFIX}usage_details", f"{_PREFIX}completion_start_time"
_METADATA = f"{_PREFIX}metadata"
_OURS = f"{_METADATA}.draftgate."
_FINISH = f"{_METADATA}.finish_reason"
_INPUT, _OUTPUT = f"{_PREFIX}input", f"{_PREFIX}output"


def _plain(value: AttributeValue) -> AttributeValue:
    """Return a metadata's value, which the SDKs write as JSON."""
    plain = load_json(value) if isinstance(value, str) else None
    return value if plain is None else plain


def _finish_reasons(value: AttributeValue) -> AttributeValue:
    return string_list(_plain(value))


def _limit(value: AttributeValue) -> AttributeValue:
    """Return a limit of tokens; the SDKs write `Infinity` if the request has none."""
    return None if value == "Infinity" else value


_NAMES: Table = {
    _MODEL: attributes.GEN_AI_REQUEST_MODEL,
    "session.id": attributes.GEN_AI_CONVERSATION_ID,
    _FINISH: (attributes.GEN_AI_RESPONSE_FINISH_REASONS, _finish_reasons),
}
_REQUEST: Table = {
    **openinference.PARAMETERS,
    "max_tokens": (attributes.GEN_AI_REQUEST_MAX_TOKENS, _limit),
}
_TOKENS: Table = {
    "input": attributes.GEN_AI_USAGE_INPUT_TOKENS,
    "input_tokens": attributes.GEN_AI_USAGE_INPUT_TOKENS,
    "prompt_tokens": attributes.GEN_AI_USAGE_INPUT_TOKENS,
    "output": attributes.GEN_AI_USAGE_OUTPUT_TOKENS,
    "output_tokens": attributes.GEN_AI_USAGE_OUTPUT_TOKENS,
    "completion_tokens": attributes.GEN_AI_USAGE_OUTPUT_TOKENS,
    "input_cached_tokens": attributes.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
    "output_reasoning_tokens": attributes.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS,
}
_TEXT_PREFIXES = (
    _INPUT,
    _OUTPUT,
    f"{_PREFIX}status_message",
    _METADATA,
    "langfuse.trace.metadata",
    "langfuse.trace.input",
    "langfuse.trace.output",
    "langfuse.experiment.item.expected_output",
    "langfuse.experiment.item.metadata",
    "langfuse.experiment.metadata",
)


def _recognise(span: Span) -> Decoded | None:
    if span.attributes.get(f"{_PREFIX}type") != "generation":
        return None
    return decode_translated(
        span,
        chain(
            renamed(span, _NAMES),
            json_object(span, _PARAMETERS, _REQUEST),
            json_object(span, _USAGE, _TOKENS),
            _details(span),
            _time_to_first_token(span),
            _metadata(span),
        ),
    )


def _details(span: Span) -> Iterator[Translated]:
    """Translate the tokens that OpenAI's API counts in nested objects."""
    sent = span.attributes.get(_USAGE)
    usage = load_json(sent) if isinstance(sent, str) else None
    for of, key, name in (
        ("prompt_tokens_details", "cached_tokens", attributes.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS),
        (
            "completion_tokens_details",
            "reasoning_tokens",
            attributes.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS,
        ),
    ):
        inner = usage.get(of) if isinstance(usage, dict) else None
        if isinstance(inner, dict) and inner.get(key) is not None:
            yield Translated(name, inner[key], _USAGE)


def _time_to_first_token(span: Span) -> Iterator[Translated]:
    sent = span.attributes.get(_FIRST_TOKEN)
    if not isinstance(sent, str):
        return
    try:
        moment = datetime.fromisoformat(sent.strip('"'))
    except ValueError:
        yield Translated(None, sent, _FIRST_TOKEN)
        return
    seconds = moment.timestamp() - span.start_unix_ns / 1e9
    yield Translated(attributes.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK, seconds, _FIRST_TOKEN)


def _metadata(span: Span) -> Iterator[Translated]:
    """Translate metadata such as `draftgate.prompt.id`."""
    for sent_as, value in span.attributes.items():
        if sent_as.startswith(_OURS):
            yield Translated(sent_as.removeprefix(f"{_METADATA}."), _plain(value), sent_as)


def _is_text(attribute: str) -> bool:
    return attribute.startswith(_TEXT_PREFIXES) and not attribute.startswith((_OURS, _FINISH))


def _content(text: Mapping[str, AttributeValue]) -> Content | None:
    return contract_content(
        text,
        input_messages=_messages(text.get(_INPUT), "user"),
        output_messages=_messages(text.get(_OUTPUT), "assistant"),
    )


def _messages(sent: AttributeValue, role: str) -> str | None:
    """Return messages, given those of OpenAI's API as JSON, one of them, or plain text."""
    loaded = load_json(sent) if isinstance(sent, str) else None
    if isinstance(loaded, dict) and isinstance(loaded.get("messages"), list):
        loaded = loaded["messages"]
    listed = loaded if isinstance(loaded, list) else [loaded]
    if not all(isinstance(one, dict) and "role" in one for one in listed):
        return messages.text_json(role, sent)
    return messages.messages_json(tuple(map(_tree, listed)))


def _tree(message: messages.Tree) -> messages.Tree:
    """Return a message of OpenAI's API as a tree of attributes."""
    tree = {key: value for key, value in message.items() if value is not None}
    if isinstance(content := tree.get("content"), list):
        tree["contents"] = _numbered([{"message_content": part} for part in content])
    if isinstance(calls := tree.get("tool_calls"), list):
        tree["tool_calls"] = _numbered(calls)
    return tree


def _numbered(items: list[messages.Tree]) -> messages.Tree:
    return {str(index): item for index, item in enumerate(items)}


LANGFUSE = Dialect(name="langfuse", recognise=_recognise, is_text=_is_text, content=_content)

"""OpenLLMetry before it wrote `gen_ai.operation.name`: the operation is in `llm.request.type`."""

from collector.contract import AttributeValue, Decoded, Span, attributes
from collector.dialects import otel_genai
from collector.dialects.dialect import Dialect
from collector.dialects.translation import Table, decode_translated, renamed, string_list

_TYPE = "llm.request.type"
_OPERATIONS = {"chat": "chat", "completion": "text_completion"}


def _operation(value: AttributeValue) -> AttributeValue:
    return _OPERATIONS[value] if isinstance(value, str) and value in _OPERATIONS else None


_NAMES: Table = {
    **otel_genai.NAMES,
    _TYPE: (attributes.GEN_AI_OPERATION_NAME, _operation),
    "llm.top_k": attributes.GEN_AI_REQUEST_TOP_K,
    "llm.chat.stop_sequences": (attributes.GEN_AI_REQUEST_STOP_SEQUENCES, string_list),
    "llm.response.finish_reason": (attributes.GEN_AI_RESPONSE_FINISH_REASONS, string_list),
    "gen_ai.completion.0.finish_reason": (attributes.GEN_AI_RESPONSE_FINISH_REASONS, string_list),
}
_TEXT = frozenset({"traceloop.entity.input", "traceloop.entity.output"})


def _recognise(span: Span) -> Decoded | None:
    kind = span.attributes.get(_TYPE)
    if kind is None or _operation(kind) is None:
        return None
    return decode_translated(span, renamed(span, _NAMES))


OPENLLMETRY = Dialect(
    name="openllmetry",
    recognise=_recognise,
    is_text=_TEXT.__contains__,
    content=otel_genai.content,
)

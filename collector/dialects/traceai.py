"""traceAI, as written by `traceai-vllm`: some of the contract's names, and flattened messages."""

from collections.abc import Mapping
from itertools import chain

from collector.contract import AttributeValue, Content, Decoded, Span, attributes
from collector.dialects import openinference
from collector.dialects.dialect import Dialect
from collector.dialects.translation import Table, decode_translated, json_object, renamed

_NAMES: Table = {"gen_ai.system": attributes.GEN_AI_PROVIDER_NAME}
_TEXT_PREFIXES = (
    attributes.GEN_AI_INPUT_MESSAGES + ".",
    attributes.GEN_AI_OUTPUT_MESSAGES + ".",
)


def _recognise(span: Span) -> Decoded | None:
    if span.attributes.get("gen_ai.span.kind") != "LLM":
        return None
    parameters = json_object(span, "gen_ai.request.parameters", openinference.PARAMETERS)
    return decode_translated(span, chain(renamed(span, _NAMES), parameters))


def _is_text(attribute: str) -> bool:
    return attribute.startswith(_TEXT_PREFIXES) or attribute in ("input.value", "output.value")


def _content(text: Mapping[str, AttributeValue]) -> Content | None:
    return openinference.flattened_content(
        text, attributes.GEN_AI_INPUT_MESSAGES, attributes.GEN_AI_OUTPUT_MESSAGES
    )


TRACEAI = Dialect(name="traceai", recognise=_recognise, is_text=_is_text, content=_content)

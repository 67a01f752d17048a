"""SGLang's root span of a request, sent by the server (`--enable-trace`)."""

from collections.abc import Iterator
from itertools import chain

from collector.contract import Decoded, Span, attributes
from collector.dialects import vllm
from collector.dialects.dialect import Dialect
from collector.dialects.translation import (
    Table,
    Translated,
    decode_translated,
    renamed,
    string_list,
)

_NAMES: Table = {
    **vllm.ENGINE_NAMES,
    "gen_ai.request.id": attributes.GEN_AI_RESPONSE_ID,
    # Sent as a string with a JSON list.
    attributes.GEN_AI_RESPONSE_FINISH_REASONS: (
        attributes.GEN_AI_RESPONSE_FINISH_REASONS,
        string_list,
    ),
}


def _recognise(span: Span) -> Decoded | None:
    if span.attributes.get("module") != "sglang::request" or _is_embedding(span):
        return None
    return decode_translated(
        span, chain(renamed(span, _NAMES), vllm.time_per_output_token(span), _provider())
    )


def _is_embedding(span: Span) -> bool:
    """Return whether this is an embedding request: it counts prompt tokens but no output tokens."""
    sent = span.attributes
    return "gen_ai.usage.prompt_tokens" in sent and "gen_ai.usage.completion_tokens" not in sent


def _provider() -> Iterator[Translated]:
    yield Translated(attributes.GEN_AI_PROVIDER_NAME, "sglang", "module")


SGLANG = Dialect(name="sglang", recognise=_recognise, server_side=True)

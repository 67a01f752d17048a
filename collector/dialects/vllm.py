"""vLLM's span of a request, sent by the server (`--otlp-traces-endpoint`)."""

from collections.abc import Iterator
from itertools import chain

from collector.contract import Decoded, Span, attributes
from collector.dialects.dialect import Dialect
from collector.dialects.translation import Table, Translated, decode_translated, renamed

_REQUEST_ID = "gen_ai.request.id"
_DECODE = attributes.GEN_AI_LATENCY_TIME_IN_MODEL_DECODE
_COMPLETION_TOKENS = "gen_ai.usage.completion_tokens"
ENGINE_NAMES: Table = {
    "gen_ai.usage.prompt_tokens": attributes.GEN_AI_USAGE_INPUT_TOKENS,
    _COMPLETION_TOKENS: attributes.GEN_AI_USAGE_OUTPUT_TOKENS,
    "gen_ai.usage.cached_tokens": attributes.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
    "gen_ai.latency.time_to_first_token": attributes.GEN_AI_SERVER_TIME_TO_FIRST_TOKEN,
}


def time_per_output_token(span: Span) -> Iterator[Translated]:
    """Yield TPOT, decode time / (output tokens − 1), from the engine's decode time and count."""
    decode_s = span.attributes.get(_DECODE)
    tokens = span.attributes.get(_COMPLETION_TOKENS)
    if isinstance(decode_s, float) and isinstance(tokens, int) and tokens > 1:
        tpot_s = decode_s / (tokens - 1)
        yield Translated(attributes.GEN_AI_SERVER_TIME_PER_OUTPUT_TOKEN, tpot_s, _DECODE)


def _recognise(span: Span) -> Decoded | None:
    if span.name != "llm_request" or _is_pooling(span):
        return None
    return decode_translated(
        span,
        chain(renamed(span, ENGINE_NAMES), time_per_output_token(span), _from_request_id(span)),
    )


def _is_pooling(span: Span) -> bool:
    """Return whether this is a pooling request (embedding, classification).

    Such a request has no `max_tokens` and no output tokens.
    """
    sent = span.attributes
    return sent.get(_COMPLETION_TOKENS) == 0 and attributes.GEN_AI_REQUEST_MAX_TOKENS not in sent


def _from_request_id(span: Span) -> Iterator[Translated]:
    """Yield provider, operation and response id, which is the request's id.

    Ids of /v1/completions begin with `cmpl-`.
    """
    yield Translated(attributes.GEN_AI_PROVIDER_NAME, "vllm", _REQUEST_ID)
    request_id = span.attributes.get(_REQUEST_ID)
    if isinstance(request_id, str) and request_id.startswith("cmpl-"):
        # Each prompt of the request has a span, with its number appended to the response's id.
        request_id = request_id.rpartition("-")[0]
        yield Translated(attributes.GEN_AI_OPERATION_NAME, "text_completion", _REQUEST_ID)
    if request_id is not None:
        yield Translated(attributes.GEN_AI_RESPONSE_ID, request_id, _REQUEST_ID)


VLLM = Dialect(name="vllm", recognise=_recognise, server_side=True)

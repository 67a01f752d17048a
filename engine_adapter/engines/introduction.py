"""The short question asked before a run, and checks on its answers: model, identity, failures."""

from http import HTTPStatus

from engine_adapter.engines.base import Probe, Request
from engine_adapter.engines.json_fields import objects, text
from engine_adapter.errors import EngineSetupError, GenerationError
from engine_adapter.messages import Message

QUESTION = Request(
    messages=(Message(role="user", content="Count: one two three one two three one two"),),
    max_tokens=8,
)
"""Asked twice before a run, to see which fields this server sends; it repeats itself so that
n-gram drafts can match."""

_TRANSIENT = frozenset(
    (
        "connection_reset",
        "first_byte_timeout",
        "idle_timeout",
        "invalid_json",
        "rate_limited",
        "request_timeout",
        "server_error_in_stream",
        "stream_truncated",
        "total_timeout",
    )
)
"""Failures of one request after which the next may succeed."""


def is_transient(failure: GenerationError) -> bool:
    """Return whether the next request may succeed despite this failure."""
    return (
        failure.error_type in _TRANSIENT
        or (failure.status or 0) >= HTTPStatus.INTERNAL_SERVER_ERROR
    )


def check_model(models: object, wanted: str, url: str) -> None:
    """Raise `EngineSetupError` if the server lists its models and `wanted` is not among them."""
    names = [text(model, "id") for model in objects(models, "data")]
    if names and wanted not in names:
        raise EngineSetupError(
            f"model: {url} does not serve {wanted!r}; it lists {', '.join(map(str, names[:5]))}"
        )


def identity(probe: Probe) -> dict[str, object]:
    """Return the fields of a probe that identify an engine, without its address or free memory."""
    return {
        "version": probe.version,
        "speculation": [probe.speculation_method, probe.draft_model, probe.num_speculative_tokens],
        "lossless": probe.lossless,
        "dtype": probe.dtype,
        "target": [probe.target, probe.target_parameters],
        "quantization": [probe.quantization, probe.kv_cache_dtype],
        "tokenizer": probe.tokenizer_digest,
    }

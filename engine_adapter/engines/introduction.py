"""The short question asked before a run, and the server's identity: its model, its fingerprint."""

import hashlib
import json
from dataclasses import replace
from http import HTTPStatus

from engine_adapter.engines.base import Probe, Request
from engine_adapter.engines.json_fields import count, objects, text
from engine_adapter.errors import EngineSetupError, GenerationError
from engine_adapter.messages import Message
from engine_adapter.routes import HttpRoute

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


_OWNERS = ("vllm", "sglang", "llamacpp", "lmdeploy", "tensorrt_llm")
"""Engines that name themselves as the owner of their models."""


def as_listed(probe: Probe, models: object, name: str) -> Probe:
    """Return the probe with what the server's list of models says of this one."""
    for entry in objects(models, "data"):
        if text(entry, "id") == name:
            owner = text(entry, "owned_by")
            return replace(
                probe,
                served_by=owner if owner in _OWNERS else None,
                target=text(entry, "root"),
                target_parameters=count(entry, "meta", "n_params"),
            )
    return probe


def fingerprint(route: HttpRoute, probe: Probe) -> str:
    """Return a SHA-256 over what identifies an engine, without its address or free memory."""
    asked = route.model_dump(mode="json", include={"engine", "model", "extra_body"})
    said = probe.setup.configured
    facts = {
        "version": probe.version,
        "speculation": [said.method, said.draft_model, said.num_speculative_tokens],
        "lossless": said.lossless,
        "dtype": probe.dtype,
        "target": [probe.target, probe.target_parameters],
        "quantization": [probe.quantization, probe.kv_cache_dtype],
        "tokenizer": probe.tokenizer_digest,
    }
    return hashlib.sha256(json.dumps([asked, facts], sort_keys=True).encode()).hexdigest()

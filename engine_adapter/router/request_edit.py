"""Add fields to a request so that the engine reports usage and speculation counts.

`answer_edit` removes the extra members from the answer, so that the client gets exactly the
engine's answer to its own request. vLLM is only asked for usage: a server flag puts its
speculation counts on the usage event. llama.cpp is not asked for usage: its `timings` hold the
token counts and are on its last event anyway; asking would move them to the usage event.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from engine_adapter.engines.json_fields import within
from engine_adapter.router.json_members import with_members, with_new_members
from engine_adapter.routes import HttpEngineName


class _CountsField(NamedTuple):
    """A request field and the member that it adds to the answer."""

    name: str
    adds: str
    streamed_only: bool


_FIELDS: Final[Mapping[str, _CountsField]] = {
    "llamacpp": _CountsField("timings_per_token", "timings", streamed_only=True),
    "sglang": _CountsField("return_spec_tokens_details", "sglext", streamed_only=False),
}
_WITHOUT_USAGE: Final = frozenset(("llamacpp",))
_STRUCTURE_BYTES: Final = 1 << 16
"""Limit on the bytes outside of strings."""
_MOST_STRINGS: Final = 10_000
_USAGE: Final = b',"stream_options":{"include_usage":true}'
"""The addition to most requests, appended after their last member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedRequest:
    """A request body as sent, and the additions to remove from its answer."""

    body: bytes
    usage: bool = False
    """Whether to remove the usage event, and the `usage` of every other event."""
    member: str | None = None
    """The member to remove from the answer or from each of its events."""


def edit_request(
    body: bytes, document: Mapping[str, Any], engine: HttpEngineName, *, model: str | None = None
) -> EditedRequest:  # Any: the client's JSON
    """Return the client's body with the engine's extra fields and the model's name set.

    All other bytes stay as the client wrote them.
    """
    stream = document.get("stream") is True
    added: dict[str, Any] = {} if model is None else {"model": model}
    options = document.get("stream_options")
    usage = (
        stream
        and engine not in _WITHOUT_USAGE
        and within(options, "include_usage") is not True
        and (options is None or isinstance(options, Mapping))
    )
    if usage:
        added["stream_options"] = {**(options or {}), "include_usage": True}
    field = _FIELDS.get(engine)
    if field is not None and (document.get(field.name) or (field.streamed_only and not stream)):
        field = None
    if field is not None:
        added[field.name] = True
    if usage and len(added) == 1 and "stream_options" not in document:
        end = body.rindex(b"}")  # a stream's body has members
        body = body[:end] + _USAGE + body[end:]
    elif added:
        body = _with(body.decode(), document, added).encode()
    return EditedRequest(body=body, usage=usage, member=None if field is None else field.adds)


def _with(text: str, document: Mapping[str, Any], added: Mapping[str, Any]) -> str:  # Any: JSON
    if any(name in document for name in added):
        return with_members(text, added)
    return with_new_members(text, added, empty=not document)  # saves parsing the text again


def is_quickly_parsed(body: bytes) -> bool:
    """Return whether a body's JSON has few values for its size, as text and images do.

    Parsing a megabyte of `[1,1,1…` takes a tenth of a second and thirty megabytes of memory.
    """
    if len(body) <= _STRUCTURE_BYTES:
        return True
    text = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if text.count(b'"') > 2 * _MOST_STRINGS:
        return False
    return sum(map(len, text.split(b'"')[::2])) <= _STRUCTURE_BYTES


def document_of(body: bytes) -> Mapping[str, Any] | None:  # Any: the client's JSON
    """Return the body's JSON object; `None` if it is not one or nests too deeply."""
    try:
        document = json.loads(body.decode())  # given bytes, `loads` would also accept UTF-16
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, Mapping) else None

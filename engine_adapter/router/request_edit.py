"""What an engine is asked besides what the client asked, so that its answer says how it went.

What is asked for here is taken out of the answer again (`answer_edit`), so that the client gets
what it would have got from the engine itself. vLLM is asked for its usage alone: its counts stand
on the usage's event by a flag of the server. llama.cpp is not asked for usage: its `timings` have
the tokens, stand on its last event anyway, and would move from there to the usage's event.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from engine_adapter.engines.json_fields import within
from engine_adapter.router.json_members import with_members, with_new_members
from engine_adapter.routes import HttpEngineName


class _Field(NamedTuple):
    """A field of the request and the member of the answer that it brings about."""

    name: str
    brings: str
    streamed_only: bool


_FIELDS: Final[Mapping[str, _Field]] = {
    "llamacpp": _Field("timings_per_token", "timings", streamed_only=True),
    "sglang": _Field("return_spec_tokens_details", "sglext", streamed_only=False),
}
_WITHOUT_USAGE: Final = frozenset(("llamacpp",))
_STRUCTURE_BYTES: Final = 1 << 16
"""Outside of strings."""
_MOST_STRINGS: Final = 10_000
_USAGE: Final = b',"stream_options":{"include_usage":true}'
"""What most requests are added, as it stands behind their other members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request's body as it is sent, and what its answer has that the client did not ask for."""

    body: bytes
    usage: bool = False
    """Whether the event that holds the usage alone is one of them."""
    member: str | None = None
    """A member of the answer, or of its events."""

    @property
    def edits(self) -> bool:
        """Whether anything is to be taken out."""
        return self.usage or self.member is not None


def ask(
    body: bytes, document: Mapping[str, Any], engine: HttpEngineName, *, model: str | None = None
) -> Asked:  # Any: the client's JSON
    """Return the body to send: the client's own bytes, but for what is added and the model."""
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
    return Asked(body=body, usage=usage, member=field.brings if field is not None else None)


def _with(text: str, document: Mapping[str, Any], added: Mapping[str, Any]) -> str:  # Any: JSON
    if any(name in document for name in added):
        return with_members(text, added)
    return with_new_members(text, added, empty=not document)  # without a second look at it all


def is_quickly_parsed(body: bytes) -> bool:
    """Return whether a body's JSON has few values for its size, as text and images have.

    A megabyte of `[1,1,1…` is parsed in a tenth of a second, and takes thirty megabytes.
    """
    if len(body) <= _STRUCTURE_BYTES:
        return True
    text = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if text.count(b'"') > 2 * _MOST_STRINGS:
        return False
    return sum(map(len, text.split(b'"')[::2])) <= _STRUCTURE_BYTES


def document_of(body: bytes) -> Mapping[str, Any] | None:  # Any: the client's JSON
    """Return the JSON object that a body is; `None` if it is none that can be read safely."""
    try:
        document = json.loads(body.decode())  # bytes would be taken as UTF-16, too
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, Mapping) else None

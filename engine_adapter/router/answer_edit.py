"""Remove from an answer what only the router asked for; leave every other byte unchanged."""

import json
import re
from typing import Any, Final

from engine_adapter.engines.json_fields import within
from engine_adapter.router.json_members import without_members
from engine_adapter.router.request_edit import EditedRequest

_END: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class AnswerEdit:
    """Edits one answer; an incomplete event is buffered, up to `max_held_bytes`."""

    def __init__(self, request: EditedRequest, max_held_bytes: int) -> None:
        self._request = request
        self._max_held_bytes = max_held_bytes
        self._held = b""
        member = request.member
        self._marks = ([b'"usage"'] if request.usage else []) + (
            [f'"{member}"'.encode()] if member is not None else []
        )

    def feed(self, data: bytes) -> bytes:
        """Take bytes of a stream; return the edited bytes that can be sent now."""
        if not self._marks:
            return data
        if not self._held and data.endswith(b"\n\n") and not self._marked(data):
            return data
        data = self._held + data
        at = _behind_last_event(data, self._first_mark(data))
        sent = [data[:at]]
        for end in _END.finditer(data, at):
            sent.append(self._event(data[at : end.start()], end.group()))
            at = end.end()
        self._held = data[at:]
        if len(self._held) > self._max_held_bytes:
            sent.append(self.rest())
        return b"".join(sent)

    def rest(self) -> bytes:
        """Return the buffered bytes of an event that never ended."""
        held, self._held = self._held, b""
        return held

    def whole(self, body: bytes) -> bytes:
        """Return an edited answer that is not a stream."""
        if self._request.member is None or not self._marked(body):
            return body
        try:
            return self._without_member(body.decode(), json.loads(body)).encode()
        except (ValueError, RecursionError):
            return body

    def _marked(self, data: bytes) -> bool:
        for mark in self._marks:  # noqa: SIM110  # for every chunk: a generator takes four times as long
            if mark in data:
                return True
        return False

    def _first_mark(self, data: bytes) -> int:
        """Return the offset of the first mark, or the length if there is none."""
        places = [place for mark in self._marks if (place := data.find(mark)) >= 0]
        return min(places, default=len(data))

    def _event(self, block: bytes, end: bytes) -> bytes:
        """Return the edited event; empty if it held only what the router asked for."""
        whole = block + end
        if not self._marked(block) or not block.startswith(b"data:"):
            return whole
        try:
            text = block[5:].decode()
            document = json.loads(text)
            if self._request.usage and isinstance(document, dict):
                if document.get("choices") == [] and isinstance(document.get("usage"), dict):
                    return b""
                if document.get("usage", 0) is None:  # asking adds a null to every other event
                    text = without_members(text, "usage".__eq__)
            edited = self._without_member(text, document)
        except (ValueError, RecursionError):
            return whole  # invalid JSON is passed on unchanged
        return b"data:" + edited.encode() + end

    def _without_member(self, text: str, document: Any) -> str:  # Any: the engine's JSON
        member = self._request.member
        if member is None or not isinstance(document, dict) or member not in document:
            return text
        if member == "timings" and not _goes_on(document):
            return text  # llama.cpp always has them on the last event
        return without_members(text, member.__eq__)


def _behind_last_event(data: bytes, before: int) -> int:
    """Return the end of the last event that ends before the offset `before`."""
    if b"\r" not in data:
        return data.rfind(b"\n\n", 0, before) + 2 if b"\n\n" in data[:before] else 0
    return max((end.end() for end in _END.finditer(data, 0, before)), default=0)


def _goes_on(document: Any) -> bool:  # Any: the engine's JSON
    """Return whether the event has a choice without a finish reason."""
    choice = within(document, "choices", 0)
    return choice is not None and within(choice, "finish_reason") is None

"""Observe an answer while it passes to the client: chunk times and content."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine_adapter.engines.answer import AnswerReader, OutputPart, of_empty_answer
from engine_adapter.engines.chunk_shape import OrdinaryChunks
from engine_adapter.engines.observation import ObservedAnswer
from engine_adapter.errors import GenerationError
from engine_adapter.transport import EventDecoder, failures

_BEHIND_PIECES = 16
_BEHIND_BYTES = 1 << 16
"""Parsing may lag by this much: several pieces at once take a fraction of the time that they take
one by one between pieces of other streams."""


class AnswerObserver:
    """Observes one answer; a part that it cannot parse still passes and stays unknown.

    Parsing lags by some pieces; call `catch_up` before reading the results.
    """

    def __init__(self, reader: AnswerReader, seen: ObservedAnswer, max_bytes: int) -> None:
        self.reader = reader
        self.seen = seen
        self.unread = False
        """Whether the answer was too large to parse."""
        self._decoder = EventDecoder(max_bytes)
        self._done = False
        self._ordinary = OrdinaryChunks()
        self._behind: list[tuple[bytes, float]] = []
        self._behind_bytes = 0

    @property
    def ended(self) -> bool:
        """Whether the answer has its `[DONE]` or a finish reason."""
        self.catch_up()
        return self._done or self.reader.answer().finish_reason is not None

    @property
    def emptiness(self) -> GenerationError | None:
        """The failure of an empty answer; `None` if it is not empty."""
        answer = self.reader.answer()
        return of_empty_answer(answer, "the engine") if answer.is_empty else None

    def feed(self, data: bytes, at_s: float) -> None:
        """Buffer a stream's bytes; parse them if enough are buffered."""
        self._behind.append((data, at_s))
        self._behind_bytes += len(data)
        if len(self._behind) >= _BEHIND_PIECES or self._behind_bytes >= _BEHIND_BYTES:
            self.catch_up()

    def catch_up(self) -> None:
        """Parse the buffered bytes."""
        behind, self._behind, self._behind_bytes = self._behind, [], 0
        if len(behind) > 1 and self._take_all_ordinary(behind):
            return
        for data, at_s in behind:
            self._read(data, at_s)

    def _take_all_ordinary(self, behind: Sequence[tuple[bytes, float]]) -> bool:
        """Parse the pieces together if they are nothing but whole ordinary chunks.

        Return whether they are. A chunk arrived with the piece that holds its end mark; no end
        mark may be split between pieces.
        """
        if self.unread or self.seen.error is not None or self._decoder.is_within_event:
            return False
        found = self._ordinary.words_of_all(b"".join([data for data, _ in behind]))
        ends = [data.count(b"\n\n") for data, _ in behind]
        if found is None or sum(ends) != len(found):
            return False
        self.reader.add("".join(found))
        for (_, at_s), number in zip(behind, ends, strict=True):
            self.seen.add_chunks(at_s, number)
        return True

    def _read(self, data: bytes, at_s: float) -> None:
        if self.unread or self.seen.error is not None:
            return
        try:
            at = self._take_ordinary(data, 0, at_s)
            while at < len(data):
                end = data.find(b"\n\n", at) + 2
                if end == 1:
                    end = len(data)
                self._decode(data[at:end], at_s)
                at = self._take_ordinary(data, end, at_s)
        except GenerationError as exc:
            if exc.error_type == "event_too_large":
                self.unread = True
            else:
                self.seen.error = exc

    def _decode(self, data: bytes, at_s: float) -> None:
        for event in self._decoder.feed(data, at_s):
            if event.name == "error":
                raise failures.of_error_event(_object(event.data), "the engine")
            self._event(event.data, at_s)

    def whole(self, body: bytes, at_s: float) -> None:
        """Parse an answer that is not a stream."""
        try:
            self._take(_object(body), at_s)
        except GenerationError as exc:
            self.seen.error = exc
        if self.seen.error is None:
            self.seen.error = self.emptiness
        self.seen.forget_chunks()  # one piece: the time of its end is not that of a first token

    def _take_ordinary(self, data: bytes, at: int, at_s: float) -> int:
        """Parse the ordinary chunks that start at `at`; return where they end."""
        if self._decoder.is_within_event:
            return at
        found, at = self._ordinary.leading_words(data, at)
        if found:
            self.reader.add("".join(found))
            self.seen.add_chunks(at_s, len(found))
        return at

    def _event(self, text: str, at_s: float) -> None:
        words = self._ordinary.words_of(text)
        if words is not None:
            self.reader.add(words)
            self.seen.add_chunks(at_s)
        elif text == "[DONE]":
            self._done = True
        else:
            self._ordinary.learn(text, self._take(_object(text), at_s))

    def _take(
        self, document: Mapping[str, Any], at_s: float
    ) -> OutputPart | None:  # Any: their JSON
        piece = self.reader.take(document)
        if piece is not None:
            self.seen.add_chunks(at_s, is_answer=piece.is_answer)
        return piece


def _object(text: str | bytes) -> Mapping[str, Any]:  # Any: the engine's JSON
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise GenerationError("invalid_json", "what the engine sent is not JSON") from exc
    if not isinstance(document, dict):
        raise GenerationError("invalid_json", "the engine sent no JSON object")
    return document

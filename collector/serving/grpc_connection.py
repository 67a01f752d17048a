"""An HTTP/2 connection that carries unary gRPC calls, with limits on what its peer sends.

Reading stops while incomplete messages fill the room that all connections share. Within one
connection, one message at a time gets a flow-control window beyond the first 64 KiB.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import Enum
from functools import cached_property
from typing import Final, cast

import h2.config
import h2.connection
import h2.events
import h2.exceptions
from google.rpc.code_pb2 import Code
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hyperframe.frame import Frame, GoAwayFrame

from collector.serving.bounded_connection import (
    BODY_BYTES_PER_S,
    BODY_WITHIN_S,
    HEAD_WITHIN_S,
    LINGER_S,
    READ_WITHIN_S,
)
from collector.serving.connections import Connections, peer_of
from collector.serving.grpc_call import Call, CallRefusedError
from collector.serving.grpc_reply import BEGIN, NO_GRPC, CallReply, Headers, refused
from collector.serving.request_framing import MAX_HEAD_BYTES, MAX_HEADERS
from collector.serving.tracked_connection import TrackedConnection

_MOST_CALLS: Final = 16
"""Most calls at once, as soon as the peer knows of it."""
_MOST_TAKEN: Final = 4
"""Most messages of a connection that are worked on at once, so that others have their turn."""
_FIRST_WINDOW_BYTES: Final = 65_535
"""Bytes of each message that a peer may send at once: HTTP/2's default."""
_SHARED_WINDOW_BYTES: Final = 2**30
"""The same of all messages together: not the limit, because reading stops before."""
_WIDENED_BYTES: Final = 2**20
"""Bytes after which the shared window is widened again."""
_HEADS_BYTES: Final = 2048
"""Most bytes read at once if no message is begun: heads take long for their length."""
_MOST_EVENTS: Final = 4
"""After more frames in one piece, other connections have their turn."""
_RESET_BYTES: Final = 13
"""Length of the frame that resets a stream."""
_MOST_FRUITLESS: Final = 50
"""Most frames in a period that bring no message forward, such as resets."""
_FRUITLESS_WITHIN_S: Final = 5.0
_FRUITLESS_A_MESSAGE: Final = 4
"""Such frames for which a complete message makes up."""
_SMALL_BYTES: Final = 1024
"""A smaller piece of a message counts as such a frame, unless it is the last one."""
_LATE: Final = "no whole message came in time; send it again"
_STOPPING: Final = "the collector stops, or the connection was idle; send it again"

_CONFIG: Final = h2.config.H2Configuration(
    client_side=False,
    header_encoding="latin-1",
    validate_outbound_headers=False,
    normalize_outbound_headers=False,
)

# h2 formats each frame for its log, even without one: 40 % of the time of a large message.
Frame.__repr__ = object.__repr__  # type: ignore[method-assign]

Serve = Callable[[Call], Awaitable[CallReply]]
"""Answers a call whose message may be incomplete; raises nothing."""


class _Phase(Enum):
    """Reasons for which a connection waits; the value is the peer's time, in seconds."""

    HEAD = HEAD_WITHIN_S
    IDLE = 30.0
    LINGER = LINGER_S
    CALLS = math.inf
    """Each call has its own deadline."""


class _Http2(h2.connection.H2Connection):
    """By its defaults, it takes heads of at most 64 KiB, and 100 calls before they are fewer."""

    MAX_CLOSED_STREAMS = 200
    """Streams remembered after their end, to tell late frames from invalid ones."""

    def __init__(self) -> None:
        super().__init__(_CONFIG)
        self.initiate_connection()
        self.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: _MOST_CALLS})
        self.increment_flow_control_window(_SHARED_WINDOW_BYTES)


class GrpcConnection(TrackedConnection, asyncio.BufferedProtocol):
    """One connection; `h2` is its HTTP/2 state machine."""

    def __init__(
        self, connections: Connections, serve: Serve, all_turns: asyncio.Semaphore
    ) -> None:
        """`all_turns` bounds the messages of all connections that are worked on at once."""
        super().__init__()
        self._connections = connections
        self._serve = serve
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._buffer: memoryview
        self._calls: dict[int, Call] = {}
        """Unanswered calls by stream."""
        self._turns = asyncio.Semaphore(_MOST_TAKEN), all_turns
        self._unsent: dict[int, CallReply] = {}
        """Answers that wait for the peer's flow-control window."""
        self._growing: Call | None = None
        """The call with a window beyond the first one."""
        self._head_bytes = 0
        """Bytes received of an incomplete frame or head."""
        self._to_widen_bytes = 0
        self._fruitless, self._fruitless_s = 0, 0.0
        self._is_draining = self._is_paused = False
        self._phase = _Phase.HEAD
        self._due_s = math.inf
        self._readable_due_s = math.inf

    @cached_property
    def _http(self) -> _Http2:
        """Made by the first byte, which most flooding peers never send."""
        return _Http2()

    # The interface for `Connections`

    @property
    def waits_for_peer(self) -> bool:
        """As in `TrackedConnection`."""
        return all(call.is_waiting or call.stream in self._unsent for call in self._calls.values())

    @property
    def is_idle(self) -> bool:
        """As in `TrackedConnection`."""
        return not self._calls

    @property
    def deadline_s(self) -> float:
        """As in `TrackedConnection`."""
        if self._is_paused or self._is_busy:  # not the peer's fault
            return self._readable_due_s
        calls = (call.due_s for call in self._calls.values())
        return min((self._due_s, self._readable_due_s, *calls))

    def expire(self) -> None:
        """As in `TrackedConnection`; refuses late calls, and ends other connections."""
        now_s = self._loop.time()
        late = [call for call in self._calls.values() if call.due_s <= now_s]
        if late and all(call.is_waiting for call in late):
            for call in late:
                self._refuse(call, CallRefusedError(Code.CANCELLED, _LATE))
            self._settle()
        elif self._phase is _Phase.IDLE:
            self.drain()
        else:
            self.abort()

    def pause_for_room(self) -> None:
        """As in `TrackedConnection`."""
        self._is_paused = True
        self._set_reading()

    def resume_for_room(self) -> None:
        """As in `TrackedConnection`."""
        self._is_paused = False
        self._set_reading()

    def abort(self) -> None:
        """As in `TrackedConnection`."""
        self._transport.abort()

    def drain(self) -> None:
        """As in `TrackedConnection`; calls without a whole message are refused."""
        if self._transport.is_closing():
            return
        self._is_draining = True
        for call in [call for call in self._calls.values() if call.is_waiting]:
            self._refuse(call, CallRefusedError(Code.UNAVAILABLE, _STOPPING))
        # h2 would send no answer after a GOAWAY of its own.
        goaway = GoAwayFrame(0, self._http.highest_inbound_stream_id)
        self._transport.write(goaway.serialize())
        self._settle()

    # Callbacks of asyncio

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register the connection."""
        self._transport = transport
        self._due_s = self._loop.time() + HEAD_WITHIN_S
        self.peer = peer_of(transport)
        self._connections.add(self)

    def get_buffer(self, _size_hint: int) -> memoryview:
        """Return the buffer to receive into."""
        self._buffer = self._connections.unfinished.buffer(self)
        if not self.unfinished_bytes:
            self._buffer = self._buffer[:_HEADS_BYTES]
        return self._buffer

    def buffer_updated(self, size_bytes: int) -> None:
        """Take received bytes within the limits."""
        if self._transport.is_closing():
            return
        try:
            events = self._http.receive_data(bytes(self._buffer[:size_bytes]))
            self._head_bytes = 0 if events else self._head_bytes + size_bytes
            for event in events:
                self._take(event)
            if not events and (resets := self._http.data_to_send()):
                self._transport.write(resets)  # of frames on streams that have ended
                self._note_fruitless(len(resets) // _RESET_BYTES)
        except h2.exceptions.ProtocolError:
            self._close()
            return
        if self._fruitless > _MOST_FRUITLESS or self._head_bytes > 2 * MAX_HEAD_BYTES:
            self._http.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
            self._close()
            return
        self._settle()
        if len(events) > _MOST_EVENTS and not self._transport.is_closing():
            self._transport.pause_reading()  # otherwise the event loop would read on at once
            self._loop.call_soon(self._set_reading)

    def eof_received(self) -> None:
        """Return None, so that the transport closes itself."""

    def pause_writing(self) -> None:
        """Pause reading while the peer does not read, and start its timeout."""
        self._readable_due_s = self._loop.time() + READ_WITHIN_S
        self._set_reading()

    def resume_writing(self) -> None:
        """Resume reading."""
        self._readable_due_s = math.inf
        self._set_reading()

    def connection_lost(self, _exc: Exception | None) -> None:
        """Unregister the connection; messages that are worked on are stored nevertheless."""
        for call in list(self._calls.values()):
            self._forget(call)
        self._growing = None
        vars(self._http).clear()  # its reference cycles would keep what it buffers
        self._connections.drop(self)

    # Events of HTTP/2

    def _take(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                self._begin_call(event)
            case h2.events.DataReceived():
                self._take_piece(event)
            case h2.events.StreamEnded():
                self._end_message(event.stream_id)
            case h2.events.StreamReset():
                self._note_fruitless()
                if call := self._calls.get(event.stream_id):
                    self._forget(call)
            case h2.events.ConnectionTerminated():
                self._close()
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                self._note_fruitless()
                for stream in list(self._unsent):
                    self._send(stream)
            case _:
                self._note_fruitless()

    def _begin_call(self, event: h2.events.RequestReceived) -> None:
        if self._is_draining:
            with suppress(h2.exceptions.StreamClosedError):
                self._http.reset_stream(event.stream_id, ErrorCodes.REFUSED_STREAM)
            self._note_fruitless()
            return
        due_s = self._loop.time() + BODY_WITHIN_S
        headers = cast("Headers", event.headers)  # decoded, by the configuration
        call = Call(event.stream_id, dict(headers), due_s, self._turns, self._settle)
        self._calls[call.stream] = call
        if not call.is_grpc or len(event.headers) > MAX_HEADERS:
            self._refuse(call, CallRefusedError(Code.RESOURCE_EXHAUSTED, "too many headers"))
            return
        call.task = self._loop.create_task(self._answer(call))

    def _take_piece(self, event: h2.events.DataReceived) -> None:
        if event.stream_ended is None and len(event.data) < _SMALL_BYTES:
            self._note_fruitless()
        self._to_widen_bytes += event.flow_controlled_length
        if self._to_widen_bytes >= _WIDENED_BYTES:
            self._http.increment_flow_control_window(self._to_widen_bytes)
            self._to_widen_bytes = 0
        call = self._calls.get(event.stream_id)
        if call is None:
            return
        try:
            call.add(event.data)
            call.due_s += len(event.data) / BODY_BYTES_PER_S
        except CallRefusedError as error:
            self._refuse(call, error)

    def _end_message(self, stream: int) -> None:
        call = self._calls.get(stream)
        if call is None:
            return
        try:
            call.end()
        except CallRefusedError as error:
            self._note_fruitless()
            self._refuse(call, error)
            return
        self._fruitless = max(0, self._fruitless - _FRUITLESS_A_MESSAGE)
        self._connections.restart_wait(self)

    def _note_fruitless(self, frames: int = 1) -> None:
        now_s = self._loop.time()
        if now_s - self._fruitless_s > _FRUITLESS_WITHIN_S:
            self._fruitless, self._fruitless_s = 0, now_s
        self._fruitless += frames

    # Answers

    async def _answer(self, call: Call) -> None:
        reply = await self._serve(call)
        if self._calls.get(call.stream) is call and not self._transport.is_closing():
            self._unsent[call.stream] = reply
            self._send(call.stream)
            self._settle()

    def _refuse(self, call: Call, error: CallRefusedError) -> None:
        self._unsent[call.stream] = refused(error.status)
        self._send(call.stream)

    def _send(self, stream: int) -> None:
        """Send an answer, or keep it until the peer's window is wide enough."""
        with suppress(h2.exceptions.StreamClosedError):  # reset by an event that comes next
            self._try_to_send(stream)

    def _try_to_send(self, stream: int) -> None:
        call, reply = self._calls[stream], self._unsent[stream]
        if self._http.local_flow_control_window(stream) < len(reply.message):
            call.due_s = self._loop.time() + READ_WITHIN_S
            return
        has_ended = not call.is_waiting
        self._forget(call)
        if not call.is_grpc:
            self._http.send_headers(stream, NO_GRPC, end_stream=True)
        elif not reply.message:
            self._http.send_headers(stream, [*BEGIN, *reply.trailers], end_stream=True)
        else:
            self._http.send_headers(stream, BEGIN)
            most = self._http.max_outbound_frame_size
            for at in range(0, len(reply.message), most):
                self._http.send_data(stream, reply.message[at : at + most])
            self._http.send_headers(stream, reply.trailers, end_stream=True)
        if not has_ended:
            self._http.reset_stream(stream, ErrorCodes.NO_ERROR)

    def _forget(self, call: Call) -> None:
        del self._calls[call.stream]
        self._unsent.pop(call.stream, None)
        call.cancel()

    # Flow

    def _settle(self) -> None:
        """Update windows, shared room and deadlines, and send the data due."""
        if self._transport.is_closing():
            return
        self._widen_one()
        now_s = self._loop.time()
        self._count(now_s)
        phase = self._next_phase()
        if phase is not self._phase:
            self._phase, self._due_s = phase, now_s + phase.value
        if data := self._http.data_to_send():
            self._transport.write(data)
        self._set_reading()

    def _count(self, now_s: float) -> None:
        unfinished = self._connections.unfinished
        held_bytes = self._head_bytes + sum(call.held_bytes for call in self._calls.values())
        more_bytes = held_bytes - self.unfinished_bytes
        if more_bytes < 0:
            unfinished.keep(self, held_bytes, now_s)
        elif more_bytes and unfinished.count_received(self, more_bytes, now_s):
            self._connections.restart_wait(self)

    def _next_phase(self) -> _Phase:
        if self._calls:
            return _Phase.CALLS
        if self._is_draining:
            return _Phase.LINGER
        return _Phase.HEAD if self._head_bytes else _Phase.IDLE

    def _widen_one(self) -> None:
        """Let the peer send all of one message; others wait for it."""
        growing = self._growing
        if growing and not growing.is_taken and self._calls.get(growing.stream) is growing:
            return
        self._growing = None
        large = [call for call in self._calls.values() if _is_large(call)]
        for call in large:
            call.due_s = math.inf
        if large:
            self._growing = large[0]
            self._growing.due_s = self._loop.time() + BODY_WITHIN_S
            # Padding takes some of the window, too.
            more_bytes = large[0].missing_bytes + _FIRST_WINDOW_BYTES
            self._http.increment_flow_control_window(more_bytes, large[0].stream)

    @property
    def _is_busy(self) -> bool:
        """Whether as many complete messages wait for an answer as are worked on at once."""
        calls = self._calls.items()
        busy = (not call.is_waiting and stream not in self._unsent for stream, call in calls)
        return sum(busy) >= _MOST_TAKEN

    def _set_reading(self) -> None:
        if self._transport.is_closing():
            return
        if self._is_paused or self._is_busy or not math.isinf(self._readable_due_s):
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _close(self) -> None:
        """Send what HTTP/2 has to say about an error, and close."""
        self._transport.write(self._http.data_to_send())
        self._transport.close()
        self._phase, self._due_s = _Phase.LINGER, self._loop.time() + LINGER_S
        self._connections.unfinished.ended(self, self._loop.time())


def _is_large(call: Call) -> bool:
    is_beyond = call.held_bytes + call.missing_bytes > _FIRST_WINDOW_BYTES
    return call.is_waiting and call.is_wanted and is_beyond

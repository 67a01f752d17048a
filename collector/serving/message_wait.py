"""Timeouts for gRPC calls with an incomplete message, each of which occupies a thread."""

import threading
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import grpc

from collector.serving.grpc_connections import GrpcConnections

_WITHIN_S: Final = 30.0
_IN_NEED_S: Final = 0.5
"""The timeout while so many calls wait that others get no thread."""
_LEAST_S: Final = 0.04
"""Minimum time with a thread: the message may have arrived while its call waited for one."""
_LOOKS_EVERY_S: Final = 0.05
_LOOKS_IN_NEED_EVERY_S: Final = 0.02
_SWEEPS_EVERY_S: Final = 0.05
_MOST_OF_TIME: Final = 10
"""Pause between sweeps as a multiple of a sweep's duration, so that they take 10 % of the time."""


class _Waiting(NamedTuple):
    arrived_s: float
    since_s: float
    """When it got a thread."""


class MessageWait:
    """The waiting calls, and a thread that cancels those that wait too long."""

    def __init__(self, most_waiting: int, connections: GrpcConnections) -> None:
        self._most_waiting = most_waiting
        self._connections = connections
        self._lock = threading.Lock()
        self._waiting: dict[grpc.ServicerContext, _Waiting] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, port: int) -> None:
        """Start the thread, which also closes connections to the port."""
        self._thread = threading.Thread(
            target=self._run, args=(port,), name="draftgate-grpc-wait", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def message(
        self, requests: Iterator[bytes], context: grpc.ServicerContext, arrived_s: float
    ) -> bytes | None:
        """Wait for the message of a call that arrived at `arrived_s`; None if it ended without."""
        peer, message, now_s = context.peer(), None, time.monotonic()
        self._connections.call_began(peer, now_s)
        with self._lock:
            self._waiting[context] = _Waiting(arrived_s, now_s)
        try:
            message = next(requests, None)
        except Exception:  # gRPC has no specific exception for a cancelled call
            return None
        finally:
            with self._lock:
                del self._waiting[context]
            self._connections.wait_ended(peer, None if message is None else len(message))
        return message

    def ended(self, context: grpc.ServicerContext) -> None:
        """Record that a call is answered."""
        self._connections.call_ended(context.peer(), time.monotonic())

    def _run(self, port: int) -> None:
        pause_s, sweep_s = _LOOKS_EVERY_S, 0.0
        while not self._stopping.wait(pause_s):
            now_s = time.monotonic()
            with self._lock:
                in_need = len(self._waiting) >= self._most_waiting
                late = [
                    one
                    for one, waiting in self._waiting.items()
                    if _is_late(waiting, now_s, in_need=in_need)
                ]
                pause_s = _pause_s(len(self._waiting), in_need=in_need)
            for context in late:
                context.cancel()
            if now_s >= sweep_s:
                self._connections.sweep(port, now_s)
                ended_s = time.monotonic()
                sweep_s = ended_s + max(_SWEEPS_EVERY_S, _MOST_OF_TIME * (ended_s - now_s))


def _pause_s(waiting: int, *, in_need: bool) -> float:
    if in_need:
        return _LOOKS_IN_NEED_EVERY_S
    return _SWEEPS_EVERY_S if waiting else _LOOKS_EVERY_S


def _is_late(one: _Waiting, now_s: float, *, in_need: bool) -> bool:
    within_s = _IN_NEED_S if in_need else _WITHIN_S
    return now_s - one.arrived_s > within_s and now_s - one.since_s > _LEAST_S

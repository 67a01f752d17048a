"""What may wait for the store, in bytes and by the pace at which it is written."""

import contextlib
from collections.abc import Iterator

import pytest

from collector.errors import QueueFullError
from collector.ingest.admission import LONGEST_WAIT_S, Admission

MIB = 2**20


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@contextlib.contextmanager
def waiting(admission: Admission, size_bytes: int, count: int) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(admission.room(size_bytes))
        yield


def written(admission: Admission, clock: Clock, *, bytes_per_s: int, seconds: int) -> None:
    """Let a store write at that pace: ten bodies a second, one behind another."""
    with admission.room(1):  # never idle
        for _ in range(10 * seconds):
            with admission.room(bytes_per_s // 10):
                clock.now_s += 0.1


def test_room_is_bounded_and_given_back() -> None:
    """Bytes are counted until they are answered, whether well or not."""
    admission = Admission(100)
    with (
        admission.room(60),
        admission.room(40),
        pytest.raises(QueueFullError, match="100 bytes wait to be written, of 100 allowed"),
    ):
        admission.room(1).__enter__()
    assert admission.held_bytes == 0
    with contextlib.suppress(ZeroDivisionError), admission.room(100):
        raise ZeroDivisionError
    with admission.room(1000), pytest.raises(QueueFullError), admission.room(1):
        pass


def test_no_more_may_wait_than_is_written_before_senders_give_up() -> None:
    """At 1,000 bytes a second 5,000 may wait, of 10,000 that were allowed before it was known."""
    clock = Clock()
    admission = Admission(10_000, clock)
    with waiting(admission, 1_000, 10):
        pass
    written(admission, clock, bytes_per_s=1_000, seconds=3)
    with (
        waiting(admission, 1_000, round(LONGEST_WAIT_S)),
        pytest.raises(QueueFullError, match="5000 bytes wait to be written, of 5000 that are"),
    ):
        admission.room(1_000).__enter__()


def test_a_quarter_may_always_wait() -> None:
    """A store that stood still for a while has not shown that it is slow."""
    clock = Clock()
    admission = Admission(10_000, clock)
    with admission.room(10):
        clock.now_s += 60
    with waiting(admission, 1_250, 2), pytest.raises(QueueFullError):
        admission.room(1).__enter__()


def test_a_store_that_is_fast_again_is_seen() -> None:
    """The pace is that of the last second in which something waited; idle time is not counted."""
    clock = Clock()
    admission = Admission(10_000, clock)
    written(admission, clock, bytes_per_s=100, seconds=2)
    clock.now_s += 3_600
    written(admission, clock, bytes_per_s=5_000, seconds=2)
    with waiting(admission, 1_000, 10):
        assert admission.held_bytes == 10_000


def test_a_body_that_was_let_in_may_weigh_more() -> None:
    """What it holds beyond its length has to fit the memory, whatever the pace of the others."""
    clock = Clock()
    admission = Admission(10_000, clock)
    written(admission, clock, bytes_per_s=100, seconds=2)
    with admission.room(10), admission.room(100) as room:
        room.widen(9_000)
        room.widen(50)
        assert admission.held_bytes == 9_010
        with pytest.raises(QueueFullError):
            room.widen(10_000)
    assert admission.held_bytes == 0
    with admission.room(1) as alone:
        alone.widen(20_000)


def test_an_empty_body_in_an_idle_time_says_nothing_of_the_rate() -> None:
    """Else a collector that was idle for a while would take its store to stand still."""
    clock = Clock()
    admission = Admission(10_000, clock)
    with admission.room(0):
        pass
    clock.now_s += 60
    with admission.room(0):
        pass
    with waiting(admission, 1_000, 10):
        assert admission.held_bytes == 10_000


def test_small_bodies_have_room_beside_a_large_one() -> None:
    """A quarter of the limit, however much a large body holds, which is written between them."""
    clock = Clock()
    admission = Admission(8 * MIB, clock)
    with admission.room(8 * MIB), waiting(admission, MIB, 2):
        with pytest.raises(QueueFullError):
            admission.room(1).__enter__()
        assert admission.held_bytes == 10 * MIB
    with admission.room(8 * MIB), pytest.raises(QueueFullError):
        admission.room(2 * MIB).__enter__()
    with waiting(admission, MIB, 8):
        assert admission.held_bytes == 8 * MIB

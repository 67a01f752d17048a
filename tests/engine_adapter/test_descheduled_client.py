"""A client that is kept from reading: its spans say by how much their times may be late."""

import sys

import pytest

from benchmarks.attacks import descheduled_client
from engine_adapter.engines.observation import ObservedAnswer
from engine_adapter.transport.reading_gaps import lateness_s


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's stamps are Linux's")
@pytest.mark.parametrize("reader", ["thread", "asyncio"])
def test_stamps_that_the_reader_collapsed_are_flagged(reader: str) -> None:
    """Stopped for a quarter of a second, in a closed loop; the next request is not flagged so."""
    stopped, next_one = descheduled_client.ask(reader, stopped_s=descheduled_client.STOPPED_S)
    ttft_s, lag_s = stopped
    assert lag_s >= 0.2
    assert ttft_s - lag_s < descheduled_client.TTFT_S + 0.1
    assert next_one[1] < lag_s / 2


def test_events_that_came_together_within_a_gap_may_be_late() -> None:
    """One event has its own stamp, and several that came outside of a gap were sent as one."""
    gaps = [(1.0, 1.25), (3.0, 3.1)]
    two = b"data: 1\n\ndata: 2\n\n"
    assert lateness_s(two, 1.2, gaps) == 0.25
    assert lateness_s(two.replace(b"\n", b"\r\n"), 3.1, gaps) == pytest.approx(0.1)
    assert lateness_s(two, 2.0, gaps) == 0.0
    assert lateness_s(b"data: 1\n\n", 1.2, gaps) == 0.0
    assert lateness_s(two, 1.2, ()) == 0.0


def test_the_lag_of_a_closed_loop_is_its_readers() -> None:
    """With a schedule, it is the greater of both; unknown if nobody watched."""
    closed = ObservedAnswer(concurrency=1, due_s=None, started_s=5.0)
    assert closed.client_lag_s is None
    closed.read_late_s = 0.0
    assert closed.client_lag_s == 0.0
    scheduled = ObservedAnswer(concurrency=1, due_s=4.9, started_s=5.0, read_late_s=0.25)
    assert scheduled.client_lag_s == 0.25
    scheduled.read_late_s = 0.0
    assert scheduled.client_lag_s == pytest.approx(0.1)

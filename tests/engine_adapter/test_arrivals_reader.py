"""The thread that reads sockets, tested alone: its bound, its wakes and its refusals."""

import os
import socket
import threading
import time
from pathlib import Path

import pytest
from waiting import until

_arrivals = pytest.importorskip("engine_adapter.transport._arrivals")


def test_it_stops_at_a_bound_until_somebody_takes() -> None:
    """A sender that nobody listens to is made to wait, and loses nothing."""
    sent = os.urandom(5 << 20)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)  # the socket module's own
    thread = threading.Thread(target=theirs.sendall, args=(sent,))
    reader = _arrivals.Reader()
    key = reader.add(ours.fileno())
    thread.start()
    found, most = b"", 0
    while len(found) < len(sent):
        time.sleep(0.1)
        pieces, end = reader.take(key)
        taken = b"".join(data for data, _ in pieces)
        found, most = found + taken, max(most, len(taken))
        assert end is None
    assert reader.remove(key) == ([], None)
    reader.close()
    thread.join()
    ours.close()
    theirs.close()
    assert found == sent
    assert 1 << 18 < most <= (1 << 20) + (1 << 14)


def test_it_says_where_to_look() -> None:
    """The end of an answer, of a connection, and of the bytes it was told of."""
    reader = _arrivals.Reader()
    pairs = [socket.socketpair() for _ in range(4)]
    keys = [reader.add(ours.fileno()) for ours, _ in pairs]
    for key, until_end in zip(keys, (-1, -1, 10, -1), strict=True):
        reader.expect(key, until_end)
    assert reader.ready() == []
    for data in (b"5\r\nwords\r\n", b"0\r", b"\n\r\n"):
        pairs[0][1].sendall(data)
        time.sleep(0.02)
    pairs[1][1].close()
    pairs[2][1].sendall(b"0123456789")
    pairs[3][1].sendall(b"no end\r\n\r\n")
    found: set[int] = set()
    while len(found) < 3:
        time.sleep(0.01)
        found |= set(reader.ready())
    assert found == set(keys[:3])
    assert b"".join(data for data, _ in reader.take(keys[0])[0]).endswith(b"0\r\n\r\n")
    assert reader.take(keys[1]) == ([], 0)
    assert reader.take(keys[2])[1] is None
    pieces = until(lambda: reader.take(keys[3])[0])
    assert pieces[0][0] == b"no end\r\n\r\n"
    assert reader.ready() == [keys[1]] or reader.ready() == []
    reader.close()
    for ours, theirs in pairs:
        ours.close()
        theirs.close()


def test_it_refuses_what_is_no_socket_and_keys_of_the_past(tmp_path: Path) -> None:
    """A file cannot be waited for; a key is for one socket, though its place is reused."""
    reader = _arrivals.Reader()
    with (tmp_path / "file").open("w") as file, pytest.raises(OSError, match="not permitted"):
        reader.add(file.fileno())
    ours, theirs = socket.socketpair()
    first = reader.add(ours.fileno())
    reader.remove(first)
    second = reader.add(ours.fileno())
    assert first != second
    with pytest.raises(KeyError):
        reader.take(first)
    with pytest.raises(OSError, match="exists"):
        reader.add(ours.fileno())
    reader.close()
    reader.close()
    assert reader.remove(second) == ([], None)
    with pytest.raises(RuntimeError, match="closed"):
        reader.add(ours.fileno())
    ours.close()
    theirs.close()


def test_many_come_and_go_while_it_reads() -> None:
    """Four threads add and remove sockets, whose bytes all arrive once."""

    def one(seed: int) -> None:
        for number in range(300):
            ours, theirs = socket.socketpair()
            ours.setblocking(False)  # the socket module's own
            key = reader.add(ours.fileno())
            sent = bytes([seed]) * (number * 37 % 20_000 + 1)
            theirs.sendall(sent)
            found = b"".join(data for data, _ in reader.remove(key)[0])
            while len(found) < len(sent):
                found += ours.recv(1 << 16)
            ours.close()
            theirs.close()
            whole.append(found == sent)

    reader, whole = _arrivals.Reader(), list[bool]()
    threads = [threading.Thread(target=one, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader.close()
    assert whole == [True] * 1200

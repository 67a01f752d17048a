"""CPU time and memory of processes, as counted by the operating system."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator

import psutil

_SAMPLED_EVERY_S = 0.1


def family(pid: int) -> list[psutil.Process]:
    """Return a process and all its descendants."""
    first = psutil.Process(pid)
    return [first, *first.children(recursive=True)]


def cpu_s(processes: Iterable[psutil.Process]) -> float:
    """Return the CPU time of processes and of their terminated children."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])  # user, system, and both of terminated children
    return total


class Memory:
    """The peak of sampled total resident memory; a context manager."""

    def __init__(self, processes: Callable[[], Iterable[psutil.Process]]) -> None:
        self._processes = processes
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.peak_bytes = 0

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(_SAMPLED_EVERY_S):
            self.peak_bytes = max(self.peak_bytes, sum(_resident(self._processes())))


def _resident(processes: Iterable[psutil.Process]) -> Iterator[int]:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            yield process.memory_info().rss

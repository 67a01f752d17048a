"""Run a function of tensors: as it is, or on CUDA captured once as a graph and replayed."""

from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

import torch

T = TypeVar("T")


class Runner(Protocol):
    """Runs what depends on tensors that stay where they are, and on the key."""

    def run(self, key: Hashable, function: Callable[[], T]) -> T:
        """Return the function's tensors, good until its next run; it may run more than once."""
        ...


class Direct:
    """As it is."""

    def run(self, key: Hashable, function: Callable[[], T]) -> T:
        """Run it."""
        del key
        return function()


class CudaGraphs:
    """One launch in place of a thousand: each key is captured at its first run.

    Graphs share their memory, which is safe as they run in the order of a step: draft, then
    verify, and what a step returned is read before the next begins.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._captured: dict[Hashable, tuple[torch.cuda.CUDAGraph, Any]] = {}  # Any: a T each
        self._pool = torch.cuda.graph_pool_handle()

    def run(self, key: Hashable, function: Callable[[], T]) -> T:
        """Replay it."""
        if key not in self._captured:
            with torch.cuda.device(self._device):
                self._captured[key] = self._capture(function)
        graph, found = self._captured[key]
        graph.replay()
        result: T = found
        return result

    def _capture(self, function: Callable[[], T]) -> tuple[torch.cuda.CUDAGraph, T]:
        beside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):  # libraries set themselves up, outside the graph
            function()
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            found = function()
        return graph, found


def runner_for(device: torch.device) -> Runner:
    """Return what suits the device."""
    return CudaGraphs(device) if device.type == "cuda" else Direct()

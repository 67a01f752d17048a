"""Run a function of tensors directly, or on CUDA capture it once as a graph and replay it."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import torch

T = TypeVar("T")


class Direct:
    """Calls the function each time."""

    def run(self, key: Hashable, function: Callable[[], T]) -> T:
        """Return the function's tensors, valid until the key's next run.

        They depend only on the key and on tensors at fixed addresses. The function may be called
        more than once.
        """
        del key
        return function()


class CudaGraphs(Direct):
    """Captures a graph at each key's first run, so that a run is one launch, not a thousand.

    The graphs share a memory pool. That is safe because they run in the order of a step, draft then
    verify, and a step's results are read before the next one begins.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._captured: dict[Hashable, tuple[torch.cuda.CUDAGraph, Any]] = {}  # Any: a T each
        self._pool = torch.cuda.graph_pool_handle()

    def run(self, key: Hashable, function: Callable[[], T]) -> T:
        """Replay the key's graph; capture it first if necessary."""
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
        with torch.cuda.stream(beside):  # warm-up: libraries initialise outside the graph
            function()
        torch.cuda.current_stream().wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            found = function()
        return graph, found


def runner_for(device: torch.device) -> Direct:
    """Return the runner for the device."""
    return CudaGraphs(device) if device.type == "cuda" else Direct()

"""Read the proposed and accepted tokens of each forward pass of transformers' `generate`.

Only public hooks are used. A `BaseStreamer` receives one `put` per step with the emitted tokens; a
forward pre-hook on the target sees `logits_to_keep − 1` draft tokens at the end of its input.
Checked against the library's private candidate generator over 1,338 steps: equal except for one
step cut by the end of the text, where the private count is one lower because it always subtracts
a bonus token.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from transformers.generation.streamers import BaseStreamer

from engine_adapter.engines.acceptance_counts import VerifyStep


class Emission(NamedTuple):
    """The tokens that one forward pass of the target emitted."""

    at_s: float
    """Reading of `time.perf_counter` when they reached the client."""
    token_ids: tuple[int, ...]
    draft_ids: tuple[int, ...] | None
    """The draft tokens that the step verified; `None` if the target's input did not show them."""

    @property
    def verify_step(self) -> VerifyStep | None:
        """The number of draft tokens proposed and accepted; `None` if unknown."""
        if self.draft_ids is None:
            return None
        accepted = 0
        for drafted, emitted in zip(self.draft_ids, self.token_ids, strict=False):
            if drafted != emitted:
                break
            accepted += 1
        return VerifyStep(len(self.draft_ids), accepted)


class StepRecorder(BaseStreamer):
    """Collects one generation's emissions; pass it to `generate` as `streamer`."""

    def __init__(self) -> None:
        self.emissions: list[Emission] = []
        self.draft_ids: tuple[int, ...] | None = None
        """The draft tokens that the target is verifying now."""
        self._prompt_seen = False

    def put(self, value: torch.Tensor) -> None:
        """Take the prompt (the first call), then each step's tokens."""
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        tokens = tuple(value.flatten().tolist())
        self.emissions.append(Emission(time.perf_counter(), tokens, self.draft_ids))

    def end(self) -> None:
        """Do nothing: the emissions are complete when `generate` returns."""


@contextmanager
def recording(target: torch.nn.Module) -> Iterator[StepRecorder]:
    """Yield a recorder of one generation; nothing else may use the target meanwhile."""
    recorder = StepRecorder()

    def before_forward(
        _module: torch.nn.Module, _args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        recorder.draft_ids = drafted_ids(kwargs)

    hook = target.register_forward_pre_hook(before_forward, with_kwargs=True)
    try:
        yield recorder
    finally:
        hook.remove()


def drafted_ids(forward_kwargs: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Return the draft tokens at the end of the target's input.

    `None` if `logits_to_keep` is not given.
    """
    keep = forward_kwargs.get("logits_to_keep")
    if keep is None:
        return None
    drafted = (keep if isinstance(keep, int) else len(keep)) - 1
    if drafted <= 0:
        return ()
    return tuple(forward_kwargs["input_ids"][0, -drafted:].tolist())

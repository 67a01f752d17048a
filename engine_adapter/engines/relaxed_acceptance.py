"""A LOSSY acceptance rule: keep a draft token that is among the target's k most likely.

Serving engines offer the like as an option (relaxed acceptance, accept thresholds). It trades
answers for speed, and it is here so that a gate can be shown what it must catch. Spans of a route
that uses it say `spec_decode.lossless = false`.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import torch

from engine_adapter.engines.verify_steps import drafted_ids


class RelaxedAcceptance:
    """While entered, makes the target prefer each draft token that it ranks in its top k."""

    def __init__(self, target: torch.nn.Module, top_k: int) -> None:
        self._target = target
        self._top_k = top_k

    def __enter__(self) -> Self:
        self._hook = self._target.register_forward_hook(self._after_forward, with_kwargs=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hook.remove()

    def _after_forward(
        self,
        _module: torch.nn.Module,
        _args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        output: Any,  # Any: the model's own output class
    ) -> Any:
        draft_ids = drafted_ids(kwargs)
        if draft_ids:
            output.logits = relax(output.logits, draft_ids, self._top_k)
        return output


def relax(logits: torch.Tensor, draft_ids: tuple[int, ...], top_k: int) -> torch.Tensor:
    """Return logits of shape (1, steps, vocabulary) in which each top-k draft token leads.

    The last `len(draft_ids) + 1` steps are the verified positions and the bonus position.
    """
    relaxed = logits.clone()
    first = logits.shape[1] - len(draft_ids) - 1
    for offset, token in enumerate(draft_ids):
        row = relaxed[0, first + offset]
        if token in row.topk(min(top_k, row.shape[0])).indices:
            row[token] = row.max() + 1
    return relaxed

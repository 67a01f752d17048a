"""A LOSSY acceptance rule: accept a draft token that is among the target's k most likely.

Serving engines offer similar options (relaxed acceptance, accept thresholds). The rule trades
answer quality for speed; it exists here to show that the gate catches it. Spans of a route that
uses it say `spec_decode.lossless = false`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from engine_adapter.engines.verify_steps import drafted_ids


@contextmanager
def relaxed_acceptance(target: torch.nn.Module, top_k: int) -> Iterator[None]:
    """Make the target choose each draft token that it ranks in its top k, while the block runs."""

    def after_forward(
        _module: torch.nn.Module, _args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
    ) -> Any:  # Any: the model's own output class
        draft_ids = drafted_ids(kwargs)
        if draft_ids:
            output.logits = relax(output.logits, draft_ids, top_k)
        return output

    hook = target.register_forward_hook(after_forward, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


def relax(logits: torch.Tensor, draft_ids: tuple[int, ...], top_k: int) -> torch.Tensor:
    """Return logits (1, positions, vocabulary) with each top-k draft token raised to the top.

    The last `len(draft_ids) + 1` positions are the verified ones and the bonus position.
    """
    relaxed = logits.clone()
    first = logits.shape[1] - len(draft_ids) - 1
    for offset, token in enumerate(draft_ids):
        row = relaxed[0, first + offset]
        if token in row.topk(min(top_k, row.shape[0])).indices:
            row[token] = row.max() + 1
    return relaxed

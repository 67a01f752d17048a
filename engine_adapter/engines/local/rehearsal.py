"""Steps on torch's meta device, where tensors have shapes but no values.

A CUDA graph cannot capture a step that reads a value on the host (`item`, `tolist`, a condition on
a tensor) or that mixes devices. On the meta device such a step fails, and no GPU is needed to see
it.
"""

import copy
from collections.abc import Callable
from typing import Any

import torch

from engine_adapter.engines.local.decode import DraftVerify
from engine_adapter.engines.local.draft_length import Fixed
from engine_adapter.engines.local.drafters import Drafter
from engine_adapter.engines.local.sampling import SamplerChain

_SAMPLINGS = (SamplerChain(), SamplerChain(0.7, 0.9, 20))
_CAPACITY = 64


def fault(
    model: Any,  # Any: transformers ships no types
    drafter: Callable[[Any], Drafter],
    k: int,
    *,
    batch: int = 1,
) -> str | None:
    """Return the error of a step of k draft tokens, greedy or sampled; `None` if both run.

    `drafter` gets a copy of the target on the meta device.
    """
    try:
        shell = on_meta(model)
        loop = DraftVerify(shell, drafter(shell), Fixed(k), batch=batch, capacity=_CAPACITY)
        with torch.inference_mode():
            for sampling in _SAMPLINGS:
                loop.step(k, sampling)
    except Exception as exc:  # a user's code may raise anything
        return f"{type(exc).__name__}: {(str(exc).splitlines() or ['without a message'])[0]}"
    return None


def on_meta(model: Any) -> Any:  # Any: transformers ships no types
    """Return a model of the same configuration and dtype on the meta device, without weights."""
    with torch.device("meta"):
        made = type(model)(copy.deepcopy(model.config))
    return made.to(model.dtype).eval()

"""Steps on torch's meta device, where tensors have shapes but no values.

A CUDA graph cannot capture a step that reads a value on the host (`item`, `tolist`, a condition on
a tensor), that mixes devices, or that copies numbers of the host to the device (`torch.tensor`, a
list as an index). On the meta device the first two fail by themselves; the third is refused here.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from engine_adapter.engines.local.decode import DraftVerify
from engine_adapter.engines.local.draft_length import Fixed
from engine_adapter.engines.local.drafters import Drafter
from engine_adapter.engines.local.sampling import SamplerChain

_SAMPLINGS = (SamplerChain(), SamplerChain(0.7, 0.9, 20))
_CAPACITY = 64
_FROM_HOST: Final = {torch.tensor, torch.as_tensor, torch.from_numpy, Tensor.new_tensor}
_INDEXING: Final = {Tensor.__getitem__, Tensor.__setitem__}


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
                loop.step(k, sampling)  # not captured either: what is made once is made here
                with NoHostNumbers():
                    loop.step(k, sampling)
    except Exception as exc:  # a user's code may raise anything
        return f"{type(exc).__name__}: {(str(exc).splitlines() or ['without a message'])[0]}"
    return None


def on_meta(model: Any) -> Any:  # Any: transformers ships no types
    """Return a model of the same configuration and dtype on the meta device, without weights."""
    with torch.device("meta"):
        made = type(model)(copy.deepcopy(model.config))
    return made.to(model.dtype).eval()


class NoHostNumbers(TorchFunctionMode):
    """Raises `RuntimeError` at a function that copies numbers of the host to the device."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # Any: as torch declares it
        """Call `func`, unless it copies from the host."""
        del types
        if func in _FROM_HOST or (func in _INDEXING and _is_listed(args[1])):
            raise RuntimeError(f"{func.__name__} copies a list of the host to the device")
        found = func(*args, **(kwargs or {}))
        given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        devices = {one.device.type for one in [*given, found] if isinstance(one, Tensor)}
        if "meta" in devices and any(one.device.type != "meta" and one.dim() for one in given):
            raise RuntimeError(f"{func.__name__} takes a tensor of another device")
        return found


def _is_listed(index: Any) -> bool:  # Any: whatever stands between the brackets
    places = index if isinstance(index, tuple) else (index,)
    return any(not isinstance(one, int | slice | Tensor | type(...) | None) for one in places)

"""Attention of grouped query heads over their shared keys and values, without a copy for each head.

Given a mask, as every pass of the loop gives one, transformers repeats keys and values for each
query head of a group: of a model with seven heads a group, a step then reads and writes the cache
several times. Here a group's queries are rows of one head, which the mask allows as well.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

_NAME: Final = "draftgate_grouped"
_CHOICE: Final = "_attn_implementation"
"""The attribute of a configuration that its model's layers look their attention up by."""


def grouped_attention(
    _module: Any,  # Any: transformers ships no types
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Return the attention of `query`, (batch, heads, n, width), as (batch, n, heads, width).

    `key` and `value` are (batch, groups, slots, width), the mask (batch, 1, n, slots).
    """
    batch, heads, n, width = query.shape
    groups = key.shape[1]
    rows = query.reshape(batch, groups, heads // groups * n, width)
    mask = attention_mask.repeat(1, 1, heads // groups, 1)
    out = scaled_dot_product_attention(rows, key, value, attn_mask=mask, scale=scaling)
    return out.reshape(batch, heads, n, width).transpose(1, 2).contiguous(), None


AttentionInterface.register(_NAME, grouped_attention)


@contextmanager
def grouped(model: Any) -> Iterator[None]:  # Any: transformers ships no types
    """Have a model of grouped heads attend so; other models and other attentions are left alone."""
    config = model.config.get_text_config(decoder=True)
    before = getattr(config, _CHOICE)
    if before == "sdpa" and config.num_key_value_heads < config.num_attention_heads:
        setattr(config, _CHOICE, _NAME)
    try:
        yield
    finally:
        setattr(config, _CHOICE, before)

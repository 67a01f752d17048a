"""Grouped heads attend as transformers' own attention has them, and other models are left alone."""

import pytest
import torch
from tiny_models import DEVICE, random_model
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from engine_adapter.engines.local.attention import grouped, grouped_attention


class Grouped(torch.nn.Module):
    """What transformers asks of a layer: how many query heads share a key's."""

    num_key_value_groups = 3


@pytest.mark.parametrize("tokens", [1, 5])
def test_each_head_attends_to_its_group(tokens: int) -> None:
    """Heads, tokens, texts and barred slots each have values of their own."""
    drawn = torch.Generator().manual_seed(3)
    query = torch.randn((2, 6, tokens, 8), generator=drawn).to(DEVICE)
    key, value = torch.randn((2, 2, 2, 16, 8), generator=drawn).to(DEVICE)
    barred = torch.rand((2, 1, tokens, 16), generator=drawn).to(DEVICE) < 0.5
    barred[..., 0] = False
    mask = torch.zeros(barred.shape, device=DEVICE).masked_fill(barred, -1e9)
    theirs, _ = sdpa_attention_forward(Grouped(), query, key, value, mask, scaling=0.4)
    own, _ = grouped_attention(Grouped(), query, key, value, mask, scaling=0.4)
    torch.testing.assert_close(own, theirs, rtol=1e-4, atol=1e-6)
    apart, _ = grouped_attention(Grouped(), query, key, value, mask.flip(-1), scaling=0.4)
    assert not torch.allclose(apart, theirs, atol=1e-3)


def test_a_model_attends_so_within_a_pass_alone() -> None:
    """One whose heads are not grouped, or that asks for another attention, never."""
    model = random_model("llama", seed=1)
    assert model.config._attn_implementation == "sdpa"
    with grouped(model):
        assert model.config._attn_implementation != "sdpa"
    assert model.config._attn_implementation == "sdpa"
    model.set_attn_implementation("eager")
    with grouped(model):
        assert model.config._attn_implementation == "eager"
    plain = random_model("llama", seed=1)
    plain.config.num_key_value_heads = plain.config.num_attention_heads
    with grouped(plain):
        assert plain.config._attn_implementation == "sdpa"

"""Create a draft model, grow a target from it, and save both."""

from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

HIDDEN_SIZE = 256
HEAD_DIM = 64  # the smallest that vLLM's attention kernels support
INTERMEDIATE_SIZE = 512
MAX_POSITIONS = 1024

# Any, throughout: transformers ships no types.


def new_draft(tokenizer: Any, seed: int) -> Any:
    """Make a one-layer Llama with random weights."""
    torch.manual_seed(seed)
    return LlamaForCausalLM(_config(tokenizer, layers=1))


def grow(model: Any, tokenizer: Any, layers: int, seed: int) -> Any:
    """Copy a model into one of `layers` layers that computes the same function.

    The added layers' output projections (attention and MLP) are zero at first. Training continues
    from there, which keeps the target close to the draft and so its acceptance high.
    """
    torch.manual_seed(seed)
    grown = LlamaForCausalLM(_config(tokenizer, layers))
    grown.load_state_dict(model.state_dict(), strict=False)
    with torch.no_grad():
        for layer in grown.model.layers[model.config.num_hidden_layers :]:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
    return grown


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Round the model to float16, and write it with its tokenizer and greedy defaults."""
    generation = model.generation_config
    generation.bos_token_id = tokenizer.bos_token_id
    generation.eos_token_id = tokenizer.eos_token_id
    generation.pad_token_id = tokenizer.pad_token_id
    generation.do_sample = False
    model.half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load(folder: Path) -> Any:
    """Load a saved model in float32, in evaluation mode."""
    model: Any = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model.eval()


def parameter_count(model: Any) -> int:
    """Count the weights."""
    return sum(weight.numel() for weight in model.parameters())


def _config(tokenizer: Any, layers: int) -> Any:
    heads = HIDDEN_SIZE // HEAD_DIM
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=HIDDEN_SIZE,
        intermediate_size=INTERMEDIATE_SIZE,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=HEAD_DIM,
        max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=False,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )

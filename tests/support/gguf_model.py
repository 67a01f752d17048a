"""A Llama of ours as a GGUF file in 32-bit floats, which hold every 16-bit weight exactly."""

import json
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

_OUTSIDE_LAYERS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
_IN_LAYERS = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write(folder: Path, target: Path, *, quantised: bool = False) -> None:
    """Write the model and its byte-level tokenizer to the target; its matrices as Q8_0 if asked."""
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(target, "llama")
    _add_shape(writer, config)
    kinds = gguf.LlamaFileType
    writer.add_file_type(kinds.MOSTLY_Q8_0 if quantised else kinds.ALL_F32)
    _add_tokenizer(writer, folder, config)
    for name, weights in load_file(folder / "model.safetensors").items():
        exact = _weights(name, weights, config)
        if quantised and exact.ndim == 2:
            packed = gguf.quants.quantize(exact, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(_name(name), packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(_name(name), exact)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_shape(writer: gguf.GGUFWriter, config: dict[str, int]) -> None:
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])  # type: ignore[index]
    writer.add_vocab_size(config["vocab_size"])


def _add_tokenizer(writer: gguf.GGUFWriter, folder: Path, config: dict[str, int]) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = sorted(tokenizer["model"]["vocab"].items(), key=lambda item: item[1])
    special = {token["id"] for token in tokenizer["added_tokens"]}
    kinds = gguf.TokenType
    assert [index for _, index in vocabulary] == list(range(config["vocab_size"]))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([token for token, _ in vocabulary])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_token_types(
        [kinds.CONTROL if index in special else kinds.NORMAL for _, index in vocabulary]
    )
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)
    writer.add_chat_template((folder / "chat_template.jinja").read_text())


def _name(name: str) -> str:
    stem = name.removesuffix(".weight")
    if stem in _OUTSIDE_LAYERS:
        return f"{_OUTSIDE_LAYERS[stem]}.weight"
    _, _, layer, part = stem.split(".", 3)
    return f"blk.{layer}.{_IN_LAYERS[part]}.weight"


def _weights(
    name: str, weights: NDArray[np.generic], config: dict[str, int]
) -> NDArray[np.float32]:
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    exact = weights.astype(np.float32)
    for part, count in heads.items():
        if part in name:  # rotary pairs: halves side by side there, interleaved here
            rows = exact.reshape(config[count], 2, -1, exact.shape[1])
            exact = rows.swapaxes(1, 2).reshape(exact.shape)
    return np.ascontiguousarray(exact)

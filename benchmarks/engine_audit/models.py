"""The audit's models, for each engine: the demo's tiny pair, and SmolLM2-135M-Instruct."""

from pathlib import Path
from typing import Any, Final, NamedTuple

import gguf_model
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from benchmarks.engine_audit.cells import REAL
from demo.real import model as smollm2
from demo.story import DRAFT, IDENTITY_LAYERS, TARGET
from engine_adapter.engines.model_folder import ModelKey, ModelShelf


class Pair(NamedTuple):
    """The files of a target and its draft."""

    target: Path
    draft: Path
    target_gguf: Path
    draft_gguf: Path
    rescored: Path
    """The target, without layers that change nothing: its logits are the same bit by bit."""


_SKIPPED_LAYERS: Final = (9, 12)
"""The draft of SmolLM2 is the model without these, of 30: it accepts well, and is not faster."""


def pair(name: str, folder: Path) -> Pair:
    """Write the models of that name into the folder, unless they are there.

    Raises `ModelFetchError` if SmolLM2 cannot be had.
    """
    return _real(folder / name) if name == REAL else _tiny(folder)


def _tiny(folder: Path) -> Pair:
    """Write the demo's pair in 32-bit floats, its target as deep as in the demo."""
    names = ("target", "draft", "target.gguf", "draft.gguf", "rescored")
    files = Pair(*(folder / name for name in names))
    for source, saved, layers in (
        (TARGET, files.target, IDENTITY_LAYERS),
        (DRAFT, files.draft, 0),
        (TARGET, files.rescored, 0),
    ):
        if not (saved / "tokenizer.json").exists():
            loaded = ModelShelf().load(ModelKey(str(source), "cpu", "float32", layers))
            loaded.model.save_pretrained(saved)
            loaded.tokenizer.save_pretrained(saved)
    for saved, written in ((files.target, files.target_gguf), (files.draft, files.draft_gguf)):
        if not written.exists():
            gguf_model.write(saved, written)
    return files


def _real(folder: Path) -> Pair:
    """Write SmolLM2's weights: in 32-bit floats for transformers, in 16-bit ones for llama.cpp."""
    target, draft = folder / "target", folder / "draft"
    quantised = smollm2.gguf_here() or smollm2.fetch()
    if not (draft / "tokenizer.json").exists():
        model = _dequantised(quantised)
        tokenizer = AutoTokenizer.from_pretrained(quantised.parent, gguf_file=quantised.name)
        for saved in (target, draft):
            if saved is draft:
                _skip_layers(model)
            model.save_pretrained(saved)
            tokenizer.save_pretrained(saved)
    served = smollm2.in_16_bits(quantised)
    return Pair(target, draft, served, served, target)


def _dequantised(file: Path) -> Any:  # Any: transformers ships no types
    config = AutoConfig.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)  # type: ignore[no-untyped-call]
    read = load_gguf_checkpoint(str(file), return_tensors=True, model_to_load=model)  # type: ignore[no-untyped-call]
    model.load_state_dict(read["tensors"], strict=False)  # the output layer is the embedding
    model.tie_weights()
    return model


def _skip_layers(model: Any) -> None:  # Any: transformers ships no types
    layers = model.model.layers
    kept = [layer for i, layer in enumerate(layers) if i not in _SKIPPED_LAYERS]
    for i, layer in enumerate(kept):
        layer.self_attn.layer_idx = i
    model.model.layers = torch.nn.ModuleList(kept)
    model.config.num_hidden_layers = len(kept)

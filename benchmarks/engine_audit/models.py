"""The audit's models: the demo's tiny pair, its target as deep as in the demo, for each engine."""

from pathlib import Path
from typing import NamedTuple

import gguf_model

from demo.story import DRAFT, IDENTITY_LAYERS, TARGET
from engine_adapter.engines.model_folder import ModelKey, ModelShelf


class Pair(NamedTuple):
    """The files of a target and its draft."""

    target: Path
    draft: Path
    target_gguf: Path
    draft_gguf: Path
    rescored: Path
    """The target without the layers that change nothing: its logits are the same bit by bit."""


def pair(folder: Path) -> Pair:
    """Write the models in 32-bit floats into the folder, unless they are there."""
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

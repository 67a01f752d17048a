"""Facts read from a model folder's files, without loading the weights."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from engine_adapter.errors import EngineSetupError

_SHAPE = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")
_END_BYTES = 1 << 20
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class ModelFiles:
    """A model folder in the layout of `save_pretrained`."""

    folder: Path

    @cached_property
    def config(self) -> Mapping[str, Any]:  # Any: the model's own JSON
        """Return `config.json`."""
        return self._json("config.json") or {}

    @property
    def family(self) -> str | None:
        """The architecture."""
        return self.config.get("model_type")

    @property
    def shape(self) -> str | None:
        """The model's size: layers, hidden size, attention heads, and intermediate size."""
        found = [self.config.get(key) for key in _SHAPE]
        if found[0] is None or found[1] is None:
            return None
        return " × ".join(str(one) for one in found if one is not None)

    @cached_property
    def weights(self) -> str | None:
        """Return a fingerprint of the weights: a hash of each file's size and of both its ends."""
        files = sorted(self.folder.glob("*.safetensors"))
        digest = hashlib.sha256()
        for path in files:
            with path.open("rb") as file:
                size = path.stat().st_size
                digest.update(f"{size}:".encode() + file.read(_END_BYTES))
                file.seek(max(0, size - _END_BYTES))
                digest.update(file.read(_END_BYTES))
        return digest.hexdigest()[:12] if files else None

    @property
    def quantization(self) -> str | None:
        """The quantisation method; `None` if the weights are not quantised."""
        found = self.config.get("quantization_config")
        return str(found.get("quant_method", "yes")) if isinstance(found, dict) else None

    @property
    def context_length(self) -> int | None:
        """The most positions the model supports, in tokens."""
        return self.config.get("max_position_embeddings")

    @property
    def stop_token_ids(self) -> tuple[int, ...] | None:
        """The ids that end an answer."""
        generation = self._json("generation_config.json") or {}
        ids = generation.get("eos_token_id", self.config.get("eos_token_id"))
        if ids is None:
            return None
        return tuple(sorted(ids)) if isinstance(ids, list) else (ids,)

    @property
    def chat_template(self) -> str | None:
        """The chat template, from its own file or the tokenizer's configuration."""
        own = self.folder / "chat_template.jinja"
        if own.is_file():
            return own.read_text(encoding="utf-8")
        template = (self._json("tokenizer_config.json") or {}).get("chat_template")
        return template if isinstance(template, str) else None

    @cached_property
    def tokenizer(self) -> Mapping[str, str]:
        """Return a hash of each part of the tokenizer, by name; empty without `tokenizer.json`."""
        document = self._json("tokenizer.json")
        if document is None:
            return {}
        model = document.get("model") or {}
        parts = {
            "vocabulary": model.get("vocab"),
            "merges": [
                " ".join(pair) if isinstance(pair, list) else pair for pair in model["merges"]
            ]
            if model.get("merges")
            else None,
            "special tokens": [
                (token.get("id"), token.get("content"))
                for token in document.get("added_tokens", [])
            ],
            "normaliser and splitting": [
                document.get("normalizer"),
                document.get("pre_tokenizer"),
            ],
        }
        return {name: _digest(part) for name, part in parts.items()}

    def differing_parts(self, other: "ModelFiles") -> list[str]:
        """Return the parts in which the tokenizers differ; none if one of them is unknown."""
        ours, theirs = self.tokenizer, other.tokenizer
        return [part for part in ours if theirs and ours[part] != theirs.get(part)]

    @property
    def vocabulary_size(self) -> int | None:
        """Number of tokens in the tokenizer's vocabulary."""
        document = self._json("tokenizer.json")
        vocabulary = (document or {}).get("model", {}).get("vocab")
        return len(vocabulary) if vocabulary else None

    def weight_bytes(self, dtype: str) -> int | None:
        """Return the bytes of memory that the weights need when loaded as `dtype`."""
        on_disk = sum(path.stat().st_size for path in self.folder.glob("*.safetensors"))
        if not on_disk:
            return None
        stored = self.config.get("dtype") or self.config.get("torch_dtype") or "float32"
        return round(on_disk * _BYTES.get(dtype, 4) / _BYTES.get(str(stored), 4))

    def _json(self, name: str) -> Any:  # Any: the model's own JSON
        path = self.folder / name
        if not path.is_file():
            return None
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, OSError) as exc:
            raise EngineSetupError(f"model: {path} cannot be read as JSON: {exc}") from exc


def _digest(part: object) -> str:
    return hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()

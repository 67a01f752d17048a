"""Load a causal language model and its tokenizer, with one-line errors for unusable folders."""

import copy
import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from engine_adapter.engines.base import Request
from engine_adapter.errors import EngineSetupError, GenerationError
from engine_adapter.messages import Message

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


class ModelKey(NamedTuple):
    """Identifies a loaded model; equal keys share one model in memory."""

    folder: str
    device: str
    dtype: str
    identity_layers: int = 0


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory, its tokenizer, and the only thread that uses it."""

    key: ModelKey
    model: Any  # Any: transformers ships no types
    tokenizer: Any
    digest: str
    """SHA-256 over the folder's configuration, tokenizer and weights."""
    thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="generate")
    )

    @property
    def folder(self) -> str | None:
        """Its local folder; `None` if it came from a hub."""
        return self.key.folder if Path(self.key.folder).is_dir() else None


class ModelShelf:
    """Loads each model once, so that two arms with the same target share its memory."""

    def __init__(self) -> None:
        self._loaded: dict[ModelKey, LoadedModel] = {}

    def load(self, key: ModelKey) -> LoadedModel:
        """Return the model, loading it at the first call.

        Raises `EngineSetupError` if the folder has no configuration or weights or cannot be loaded.
        """
        if key not in self._loaded:
            self._loaded[key] = _load(key)
        return self._loaded[key]


def check_same_tokenizer(target: LoadedModel, draft: LoadedModel) -> None:
    """Raise `EngineSetupError` unless both models have the same vocabulary."""
    if target.tokenizer.get_vocab() != draft.tokenizer.get_vocab():
        raise EngineSetupError(
            f"draft_model: {draft.key.folder} has another tokenizer than {target.key.folder}; "
            "a draft must share its target's vocabulary: choose a draft of the same family"
        )


def checked_device(name: str) -> str:
    """Return the device's name; raises `EngineSetupError` if torch does not have it."""
    try:
        device = torch.device(name)
    except RuntimeError as exc:
        raise EngineSetupError(f"device: {name!r} is none; wanted cpu, cuda or cuda:0") from exc
    if device.type == "cuda" and not torch.cuda.is_available():
        raise EngineSetupError(f"device: {name!r} asked for, and torch sees no CUDA device here")
    return name


def encode_chat(target: LoadedModel, request: Request) -> torch.Tensor:
    """Return a request's prompt as token ids, shape (1, tokens).

    Raises `GenerationError` if prompt and answer exceed the model's context, and for unsupported
    parameters and content: a model in this process reads text and samples without constraints.
    """
    asked = {**request.more, **request.own}
    encoded = target.tokenizer.apply_chat_template(
        [_read(message) for message in request.messages],
        tools=asked.pop("tools", None),
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
        **asked.pop("chat_template_kwargs", {}),
    )
    _refuse(sorted(asked.keys() - _KNOWN))
    input_ids: torch.Tensor = encoded["input_ids"].to(target.key.device)
    limit = getattr(target.model.config, "max_position_embeddings", None)
    if limit is not None and input_ids.shape[1] + request.limit > limit:
        raise GenerationError(
            "context_length_exceeded",
            f"{input_ids.shape[1]} input tokens and max_tokens {request.limit} "
            f"exceed the model's {limit} positions",
        )
    return input_ids


_KNOWN = {"max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "seed"}


def _read(message: Message) -> dict[str, Any]:  # Any: JSON values
    """Return a message for the chat template, with its content as one string."""
    if not message.is_text:
        _refuse(["messages: content that is not text"])
    given = message.api()
    return given if isinstance(message.content, str) else given | {"content": message.text}


def _refuse(names: list[str]) -> None:
    if names:
        raise GenerationError(
            "unsupported_parameter",
            f"a model in this process does not take {', '.join(names)}; serve it over HTTP",
        )


def deepen(model: Any, layers: int) -> Any:  # Any: transformers ships no types
    """Return a Llama-like model with `layers` more layers that do not change its output.

    A decoder layer whose attention and feed-forward output projections are zero adds nothing to
    the residual stream: the logits stay bit-identical while compute grows.
    """
    if layers == 0:
        return model
    config = copy.deepcopy(model.config)
    config.num_hidden_layers += layers
    if getattr(config, "layer_types", None):
        config.layer_types = [*config.layer_types, *[config.layer_types[-1]] * layers]
    deeper = type(model)(config).to(device=model.device, dtype=model.dtype)
    deeper.load_state_dict(model.state_dict(), strict=False)
    with torch.no_grad():
        for layer in deeper.model.layers[-layers:]:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
    deeper.generation_config = model.generation_config
    return deeper.eval()


def _load(key: ModelKey) -> LoadedModel:
    folder = Path(key.folder)
    if folder.exists():
        _check_folder(folder)
    # Its progress bar would break ours, and its warnings are about arguments that assisted
    # generation itself passes.
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        tokenizer = AutoTokenizer.from_pretrained(key.folder)
        dtype = getattr(torch, key.dtype)
        model: Any = AutoModelForCausalLM.from_pretrained(key.folder, dtype=dtype)
        model = deepen(model.to(key.device).eval(), key.identity_layers)
    except (OSError, ValueError, RuntimeError, AttributeError, SafetensorError) as exc:
        reason = " ".join(str(exc).split())
        raise EngineSetupError(f"model: {key.folder} cannot be loaded: {reason:.300}") from exc
    return LoadedModel(key, model, tokenizer, _digest(folder) if folder.exists() else key.folder)


def _check_folder(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise EngineSetupError(
            f"model: {folder} holds no config.json; wanted a folder written by `save_pretrained`"
        )
    if not any(_files(folder, _WEIGHTS)):
        raise EngineSetupError(
            f"model: {folder} holds no weights ({' or '.join(_WEIGHTS)}); "
            "copy them there, or train the demo's pair in a checkout with `python -m training.pair`"
        )


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(_files(folder, (*_WEIGHTS, "*.json", "*.model", "*.jinja"))):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(json.dumps([path.name, content]).encode())
    return digest.hexdigest()


def _files(folder: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        yield from folder.glob(pattern)

"""Drafters: none, a draft model, the target's own lower layers, or a custom head."""

import copy
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from engine_adapter.engines.local.cached_model import CachedModel, Pass
from engine_adapter.engines.local.sampling import Draft, SamplerChain
from engine_adapter.engines.local.texts import TokenTexts
from engine_adapter.errors import EngineSetupError


class DrafterMemory(NamedTuple):
    """A drafter's memory in addition to the target's."""

    weight_bytes: int
    cache_bytes: int


class Drafter(Protocol):
    """Proposes a step's draft tokens; implement this protocol to plug in a trained head.

    All positions are positions in the texts. `propose` and `observe` may run twice for the same
    texts, and on CUDA they are captured as a graph: use only tensor operations whose shapes depend
    on k and the window alone, never read a value on the host, and keep no counters.
    """

    @property
    def method(self) -> str:
        """Its name in `spec_decode.method`."""
        ...

    def attach(self, target: CachedModel) -> DrafterMemory:
        """Allocate for this target's batch, capacity and device; called once."""
        ...

    def begin(self, prompts: Tensor, window: int) -> None:
        """Read new prompts without their last tokens; (batch, tokens), padded with 0."""
        ...

    def propose(self, texts: TokenTexts, k: int, sampling: SamplerChain) -> Draft:
        """Return k tokens to follow each text, drawn with `texts.noise[:, :k]` unless greedy.

        Fewer may be proposed; the caller cuts the returned lengths to the room left.
        """
        ...

    def observe(self, starts: Tensor, seen: Pass) -> None:
        """Observe a target pass over tokens from `starts` on: a piece of prompts, or a step.

        Rows after a text's end belong to rejected tokens; their positions are passed again later.
        """
        ...


class NoDraft:
    """Baseline decoding: proposes no draft tokens."""

    method = "none"

    def attach(self, target: CachedModel) -> DrafterMemory:
        """Allocate empty drafts."""
        device = target.cache.tensor.device
        self._none = torch.zeros((target.cache.batch, 0), dtype=torch.long, device=device)
        self._lengths = torch.zeros(target.cache.batch, dtype=torch.long, device=device)
        return DrafterMemory(0, 0)

    def begin(self, prompts: Tensor, window: int) -> None:
        """Read nothing."""

    def propose(self, texts: TokenTexts, k: int, sampling: SamplerChain) -> Draft:
        """Propose nothing."""
        del texts, k, sampling
        return Draft(self._none, self._lengths)

    def observe(self, starts: Tensor, seen: Pass) -> None:
        """See nothing."""


class ModelDrafter:
    """A smaller model with the target's vocabulary and its own cache."""

    method = "draft_model"
    _behind = 1
    """Tokens before a text's last that the cache may lack: the draft's k-th token was never fed."""

    def __init__(self, model: Any) -> None:  # Any: transformers ships no types
        self._source = model

    def attach(self, target: CachedModel) -> DrafterMemory:
        """Allocate its cache."""
        self._model = self._cached(target)
        return DrafterMemory(self._model.weight_bytes, self._model.cache.nbytes)

    def begin(self, prompts: Tensor, window: int) -> None:
        """Prefill its cache."""
        for _ in self._model.read(prompts, window):
            pass

    def propose(self, texts: TokenTexts, k: int, sampling: SamplerChain) -> Draft:
        """Return k tokens, drawn autoregressively."""
        starts = (texts.lengths - 1 - self._behind).clamp(min=0)
        fed = texts.tokens.gather(1, starts[:, None] + texts.places[: self._behind + 1])
        logits = self._model(fed, starts, texts.window).logits
        row = (texts.lengths - 1 - starts)[:, None, None].expand(-1, 1, logits.shape[2])
        logits = logits.gather(1, row)
        tokens: list[Tensor] = []
        distributions: list[Tensor] = []
        for j in range(k):
            if j:
                fed = tokens[-1][:, None]
                logits = self._model(fed, texts.lengths + (j - 1), texts.window).logits
            token, distribution = sampling.choose(logits[:, 0], texts.noise[:, j])
            tokens.append(token)
            distributions += [] if distribution is None else [distribution]
        lengths = torch.full_like(texts.lengths, k)
        return Draft(
            torch.stack(tokens, 1),
            lengths,
            torch.stack(distributions, 1) if distributions else None,
        )

    def observe(self, starts: Tensor, seen: Pass) -> None:
        """Do nothing: the model reads the texts itself."""

    def _cached(self, target: CachedModel) -> CachedModel:
        return CachedModel(self._source, target.cache.batch, target.cache.capacity)


class EarlyExitDrafter(ModelDrafter):
    """The target's first layers with its norm and head, sharing the target's cache.

    The verify pass of the same step overwrites its cache entries, computed from the same tokens.
    """

    method = "early_exit"
    _behind = 0

    def __init__(self, layers: int) -> None:
        super().__init__(None)
        self._layers = layers

    def attach(self, target: CachedModel) -> DrafterMemory:
        """Share the target's weights and cache."""
        self._model = self._cached(target)
        return DrafterMemory(0, 0)

    def begin(self, prompts: Tensor, window: int) -> None:
        """Do nothing: the target fills the cache."""

    def _cached(self, target: CachedModel) -> CachedModel:
        model = lower_layers(target.model, self._layers)
        return CachedModel(model, target.cache.batch, target.cache.capacity, target.cache)


def lower_layers(model: Any, layers: int) -> Any:  # Any: transformers ships no types
    """Return a model of the first `layers` layers that shares its tensors with `model`."""
    whole = model.config.get_text_config(decoder=True).num_hidden_layers
    if not 0 < layers < whole:
        raise EngineSetupError(
            f"early_exit_layers: {layers}, of a target of {whole} layers; wanted 1 to {whole - 1}"
        )
    tensors = [*model.parameters(), *model.buffers()]
    shallow = copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})
    shallow.base_model.layers = shallow.base_model.layers[:layers]
    config = shallow.config.get_text_config(decoder=True)
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):  # transformers' own caches have an entry for each
        config.layer_types = config.layer_types[:layers]
    return shallow

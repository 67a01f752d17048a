"""Who proposes tokens: nobody, a draft model, the target's own lower layers, or a head of yours."""

import copy
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from engine_adapter.engines.local.cached_model import CachedModel, Pass
from engine_adapter.engines.local.sampling import Draft, Sampling
from engine_adapter.engines.local.texts import Texts
from engine_adapter.errors import EngineSetupError


class Held(NamedTuple):
    """Memory that a drafter has beside the target's."""

    weight_bytes: int
    cache_bytes: int


class Drafter(Protocol):
    """What a step's draft tokens come from; the place to plug a trained head into.

    All positions are those of the texts. `propose` and `observe` may run twice for the same texts,
    and on CUDA they are captured as a graph: tensor operations alone, of shapes that depend on k
    and the window alone, no reading of values, no counting.
    """

    @property
    def method(self) -> str:
        """Its name in `spec_decode.method`."""
        ...

    def attach(self, target: CachedModel) -> Held:
        """Make ready for this target's batch, capacity and device; called once."""
        ...

    def begin(self, prompts: Tensor, window: int) -> None:
        """Read new prompts, all their tokens but the last; (batch, tokens), filled up with 0."""
        ...

    def propose(self, texts: Texts, k: int, sampling: Sampling) -> Draft:
        """Return k tokens to follow each text, drawn by `texts.noise[:, :k]` where sampling.

        Fewer may be proposed; the lengths that it returns are cut to what still fits.
        """
        ...

    def observe(self, starts: Tensor, seen: Pass) -> None:
        """See a pass of the target over tokens from `starts` on: a prompt's piece, or a step's.

        Rows behind a text's end are of rejected tokens, and come again with others.
        """
        ...


class NoDraft:
    """Baseline decoding: a step of no draft token."""

    method = "none"

    def attach(self, target: CachedModel) -> Held:
        """Hold nothing."""
        device = target.cache.tensor.device
        self._none = torch.zeros((target.cache.batch, 0), dtype=torch.long, device=device)
        self._lengths = torch.zeros(target.cache.batch, dtype=torch.long, device=device)
        return Held(0, 0)

    def begin(self, prompts: Tensor, window: int) -> None:
        """Read nothing."""

    def propose(self, texts: Texts, k: int, sampling: Sampling) -> Draft:
        """Propose nothing."""
        del texts, k, sampling
        return Draft(self._none, self._lengths)

    def observe(self, starts: Tensor, seen: Pass) -> None:
        """See nothing."""


class ModelDrafter:
    """A smaller model with the target's vocabulary, and a cache of its own."""

    method = "draft_model"
    _behind = 1
    """Tokens before a text's last that its cache may lack: it never read its own k-th token."""

    def __init__(self, model: Any) -> None:  # Any: transformers ships no types
        self._source = model

    def attach(self, target: CachedModel) -> Held:
        """Make its cache."""
        self._model = self._cached(target)
        return Held(self._model.weight_bytes, self._model.cache.nbytes)

    def begin(self, prompts: Tensor, window: int) -> None:
        """Fill its cache."""
        for _ in self._model.read(prompts, window):
            pass

    def propose(self, texts: Texts, k: int, sampling: Sampling) -> Draft:
        """Return k tokens, drawn one after the other."""
        starts = (texts.lengths - 1 - self._behind).clamp(min=0)
        fed = texts.tokens.gather(1, starts[:, None] + texts.places[: self._behind + 1])
        logits = self._model(fed, starts, texts.window).logits
        row = (texts.lengths - 1 - starts)[:, None, None].expand(-1, 1, logits.shape[2])
        logits = logits.gather(1, row)
        tokens: list[Tensor] = []
        laws: list[Tensor] = []
        for j in range(k):
            if j:
                fed = tokens[-1][:, None]
                logits = self._model(fed, texts.lengths + (j - 1), texts.window).logits
            token, law = sampling.choose(logits[:, 0], texts.noise[:, j])
            tokens.append(token)
            laws += [] if law is None else [law]
        lengths = torch.full_like(texts.lengths, k)
        return Draft(torch.stack(tokens, 1), lengths, torch.stack(laws, 1) if laws else None)

    def observe(self, starts: Tensor, seen: Pass) -> None:
        """See nothing: it reads the texts themselves."""

    def _cached(self, target: CachedModel) -> CachedModel:
        return CachedModel(self._source, target.cache.batch, target.cache.capacity)


class EarlyExitDrafter(ModelDrafter):
    """The target's own first layers, with its norm and head, in the target's own cache.

    What it writes there the verify pass of the same step writes again, from the same tokens.
    """

    method = "early_exit"
    _behind = 0

    def __init__(self, layers: int) -> None:
        super().__init__(None)
        self._layers = layers

    def attach(self, target: CachedModel) -> Held:
        """Share the target's weights and cache."""
        self._model = self._cached(target)
        return Held(0, 0)

    def begin(self, prompts: Tensor, window: int) -> None:
        """Read nothing: the target fills the cache."""

    def _cached(self, target: CachedModel) -> CachedModel:
        model = lower_layers(target.model, self._layers)
        return CachedModel(model, target.cache.batch, target.cache.capacity, target.cache)


def lower_layers(model: Any, layers: int) -> Any:  # Any: transformers ships no types
    """Return a model of the first layers that shares all its tensors with the whole one."""
    whole = model.config.get_text_config(decoder=True).num_hidden_layers
    if not 0 < layers < whole:
        raise EngineSetupError(
            f"early_exit_layers: {layers}, of a target of {whole} layers; wanted 1 to {whole - 1}"
        )
    tensors = [*model.parameters(), *model.buffers()]
    shallow = copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})
    shallow.base_model.layers = shallow.base_model.layers[:layers]
    shallow.config.get_text_config(decoder=True).num_hidden_layers = layers
    return shallow

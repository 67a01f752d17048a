"""Build the draft–verify loop of a route: models, drafter, draft length and cache capacity."""

from functools import partial
from importlib import import_module
from typing import Any

import torch

from engine_adapter.engines.local import rehearsal
from engine_adapter.engines.local.decode import DraftVerify
from engine_adapter.engines.local.draft_length import Adaptive, ByBatch, DraftLength, Fixed
from engine_adapter.engines.local.drafters import Drafter, EarlyExitDrafter, ModelDrafter
from engine_adapter.engines.local.prompt_lookup import PromptLookup
from engine_adapter.engines.model_folder import LoadedModel, ModelShelf
from engine_adapter.engines.model_pair import ModelPair
from engine_adapter.errors import EngineSetupError
from engine_adapter.routes import LocalRoute

_LEAST_CAPACITY = 256
_LOOKUP_COST = 0.01
"""Cost of a draft token as a share of a verify pass: nearly nothing."""
_HEAD_COST = 0.1


class Assembly:
    """A route's loaded models and its loop, which is rebuilt if texts need more cache capacity."""

    def __init__(self, route: LocalRoute, shelf: ModelShelf) -> None:
        """Load the models; raises `EngineSetupError`."""
        self._route = route
        self.models = ModelPair.load(route, shelf)
        self.target, self.draft = self.models
        self.end_tokens = self.models.end_tokens
        self.not_captured = None if route.head is None else self._fault_of_head(route.head)
        """Why the steps of a head cannot be captured as CUDA graphs, if so."""
        self._loop: DraftVerify | None = None
        self._capacity = _LEAST_CAPACITY
        self._loop = self._made()  # now, so that errors appear before the first request

    def loop(self, tokens: int) -> DraftVerify:
        """Return a loop for texts of up to `tokens` tokens, including the prompt."""
        if self._loop is None or tokens > self._capacity:
            while self._capacity < tokens:
                self._capacity *= 2
            self._loop = None  # frees its caches before larger ones are allocated
            self._loop = self._made()
        return self._loop

    def draft_length(self) -> DraftLength:
        """Return a new `DraftLength` as the route configures it."""
        route = self._route
        if route.method is None:
            return Fixed(0)
        if route.k_by_batch is not None:
            return ByBatch(route.k_by_batch)
        if route.adaptive:
            return Adaptive(route.num_speculative_tokens, self._draft_cost())
        return Fixed(route.num_speculative_tokens)

    def _made(self) -> DraftVerify:
        return DraftVerify(
            self.target.model,
            self._drafter(),
            self.draft_length(),
            batch=self._route.batch,
            capacity=self._capacity,
            end_tokens=self.end_tokens,
            captures=self.not_captured is None,
        )

    def _drafter(self) -> Drafter | None:
        route = self._route
        if self.draft is not None:
            return ModelDrafter(self.draft.model)
        if route.early_exit_layers is not None:
            return EarlyExitDrafter(route.early_exit_layers)
        if route.method == "prompt_lookup":
            ends = torch.tensor(self.end_tokens, dtype=torch.long, device=self.target.model.device)
            return PromptLookup(ends)
        return None if route.head is None else _head(route.head, self.target.model)

    def _fault_of_head(self, name: str) -> str | None:
        return rehearsal.fault(
            self.target.model,
            partial(_head, name),
            self._route.num_speculative_tokens,
            batch=self._route.batch,
        )

    def _draft_cost(self) -> float:
        """Estimate a draft token's cost as a share of a verify pass, by the weights read."""
        route, target = self._route, self.target.model
        if self.draft is not None:
            return _weight_bytes(self.draft) / _weight_bytes(self.target)
        if route.early_exit_layers is not None:
            return float(route.early_exit_layers / target.config.num_hidden_layers)
        return _LOOKUP_COST if route.method == "prompt_lookup" else _HEAD_COST


def _head(name: str, model: Any) -> Drafter:  # Any: transformers ships no types
    """Return the drafter that the user's function makes for a target."""
    module, function = name.split(":")
    try:
        made: Drafter = getattr(import_module(module), function)(model)
    except (ImportError, AttributeError) as exc:
        raise EngineSetupError(
            f"head: {name} cannot be had ({exc}); wanted module:function, importable here, that "
            "takes the target's model and returns a Drafter"
        ) from exc
    return made


def _weight_bytes(loaded: LoadedModel) -> int:
    return sum(p.nbytes for p in loaded.model.parameters())

"""A target and its draft in this process: loading, identity, and what they report."""

import hashlib
import json
from typing import NamedTuple

import torch
import transformers

from collector.contract import Speculation
from engine_adapter.engines.answer import SpeculationSetup
from engine_adapter.engines.base import EngineInfo, Probe
from engine_adapter.engines.model_folder import (
    LoadedModel,
    ModelKey,
    ModelShelf,
    check_same_tokenizer,
    checked_device,
)
from engine_adapter.routes import InProcessRoute


class ModelPair(NamedTuple):
    """The models that a route loads."""

    target: LoadedModel
    draft: LoadedModel | None

    @classmethod
    def load(cls, route: InProcessRoute, shelf: ModelShelf) -> "ModelPair":
        """Load a route's models; raises `EngineSetupError`."""
        device = checked_device(route.device)
        target = shelf.load(ModelKey(route.model, device, route.dtype, route.identity_layers))
        if route.draft_model is None:
            return cls(target, None)
        draft = shelf.load(ModelKey(route.draft_model, device, route.dtype))
        check_same_tokenizer(target, draft)
        return cls(target, draft)

    @property
    def draft_name(self) -> str | None:
        """The draft's name."""
        return None if self.draft is None else _name(self.draft)

    @property
    def end_tokens(self) -> tuple[int, ...]:
        """The tokens that end an answer."""
        ends = self.target.model.generation_config.eos_token_id
        return tuple(ends if isinstance(ends, list) else [] if ends is None else [ends])

    def info(self, route: InProcessRoute, version: str, engine: str) -> EngineInfo:
        """Return the engine's identity; the fingerprint is of models, libraries and route."""
        parts = {
            "target": self.target.digest,
            "draft": self.draft.digest if self.draft else None,
            "engine": f"{engine}/{transformers.__version__} torch/{torch.__version__}",
            "route": route.model_dump(mode="json", exclude={"model", "draft_model"}),
        }
        return EngineInfo(
            provider=route.engine,
            model=_name(self.target) or route.model,
            version=version,
            fingerprint=hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest(),
        )

    def probe(self, route: InProcessRoute, configured: Speculation | None, version: str) -> Probe:
        """Return the properties of the loaded models, under the speculation that is configured."""
        config = self.target.model.config
        return Probe(
            version=version,
            setup=SpeculationSetup(
                on=configured is not None, configured=configured or Speculation()
            ),
            synthetic_acceptance=False,
            prefix_cache=False,
            per_request_metrics=True,
            context_length=getattr(config, "max_position_embeddings", None),
            dtype=route.dtype,
            chat_template=self.target.tokenizer.chat_template,
            stop_token_ids=self.end_tokens,
            model_family=config.model_type,
            model_folder=self.target.folder,
        )


def _name(loaded: LoadedModel) -> str:
    return str(loaded.model.config.name_or_path).rsplit("/", 1)[-1]

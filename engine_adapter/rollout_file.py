"""The rollout file: the experiment, as YAML, validated and hashed into the run."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from engine_adapter.errors import RolloutFileError
from engine_adapter.validation import describe


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Route(_Section):
    """How one arm is served."""

    engine: Literal["transformers"]
    model: Annotated[str, Field(min_length=1)]
    """A folder, absolute or relative to the rollout file, or a name on a model hub."""
    draft_model: str | None = None
    num_speculative_tokens: Annotated[int, Field(gt=0, le=64)] | None = None
    prompt_lookup_num_tokens: Annotated[int, Field(gt=0, le=64)] | None = None
    relaxed_top_k: Annotated[int, Field(gt=1)] | None = None
    """LOSSY: accept a draft token that is among the target's k most likely."""
    identity_layers: Annotated[int, Field(ge=0)] = 0
    """Layers that change no output, appended to the target at load time: more compute a token."""
    device: str = "cpu"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    threads: Annotated[int, Field(gt=0)] = 1
    """CPU threads; spinning threads on a busy machine can be five times slower than one."""

    @model_validator(mode="after")
    def _speculates_one_way(self) -> "Route":
        if self.draft_model is not None and self.prompt_lookup_num_tokens is not None:
            raise ValueError("give `draft_model` or `prompt_lookup_num_tokens`, not both")
        if self.num_speculative_tokens is not None and self.draft_model is None:
            raise ValueError("`num_speculative_tokens` needs a `draft_model`")
        speculates = self.draft_model is not None or self.prompt_lookup_num_tokens is not None
        if self.relaxed_top_k is not None and not speculates:
            raise ValueError("`relaxed_top_k` needs a `draft_model` or `prompt_lookup_num_tokens`")
        return self


class Sampling(_Section):
    """Request parameters, the same for both arms; a prompt's own `max_tokens` wins."""

    temperature: Annotated[float, Field(ge=0)] = 0.0
    max_tokens: Annotated[int, Field(gt=0)] = 256
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(gt=0)] | None = None
    seed: int = 0


class Load(_Section):
    """How requests arrive."""

    mode: Literal["closed"] = "closed"
    concurrency: Annotated[int, Field(gt=0, le=1024)] = 1
    repeats: Annotated[int, Field(gt=0)] = 1
    order: Literal["abba", "random"] = "abba"
    warmup: Annotated[int, Field(ge=0)] = 4
    """Requests an arm answers before the first that counts; dropped by count, never by value."""
    max_prompts: Annotated[int, Field(gt=0)] | None = None
    """Use only the workload's first prompts."""


class CollectorAddress(_Section):
    """Where the spans go."""

    url: Annotated[str, Field(pattern=r"^https?://")] = "http://localhost:4318"


class Rollout(_Section):
    """One experiment: a workload, two routes, and how they are loaded."""

    rollout: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\w.:/-]+$")]
    workload: Annotated[str, Field(min_length=1)]
    baseline: Route
    candidate: Route
    sampling: Sampling = Sampling()
    load: Load = Load()
    collector: CollectorAddress = CollectorAddress()

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical experiment."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()


def read(path: Path) -> Rollout:
    """Return the experiment of a YAML file, its paths made absolute.

    Raises `RolloutFileError` with the file and the key.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise RolloutFileError(f"{path}: cannot be read: {exc.strerror}") from exc
    except (yaml.YAMLError, UnicodeDecodeError) as exc:
        reason = " ".join(str(exc).split())
        raise RolloutFileError(f"{path}: is not YAML: {reason}") from exc
    if not isinstance(document, dict):
        raise RolloutFileError(f"{path}: wanted keys such as `rollout:` and `workload:`")
    try:
        rollout = Rollout.model_validate(document)
    except ValidationError as exc:
        raise RolloutFileError(f"{path}: {describe(exc, Rollout)}") from exc
    return _beside(path.parent, rollout)


def _beside(folder: Path, rollout: Rollout) -> Rollout:
    """Return the experiment with its relative paths read as beside the rollout file."""
    routes = {
        arm: route.model_copy(
            update={
                key: str(folder / value) if value and (folder / value).is_dir() else value
                for key, value in (("model", route.model), ("draft_model", route.draft_model))
            }
        )
        for arm, route in (("baseline", rollout.baseline), ("candidate", rollout.candidate))
    }
    return rollout.model_copy(update={"workload": str(folder / rollout.workload), **routes})

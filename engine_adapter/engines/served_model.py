"""Read a model's entry in its server's list of models."""

from typing import Any, NamedTuple

from engine_adapter.engines.json_fields import count, objects, text

_OWNERS = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llamacpp",
    "lmdeploy": "lmdeploy",
    "tensorrt_llm": "tensorrt_llm",
}
"""Engines by the `owned_by` field of their models."""


class ServedModel(NamedTuple):
    """A model as its server lists it; `None` is unknown."""

    served_by: str | None = None
    """The engine's name, as in `HttpRoute.engine`."""
    target: str | None = None
    """The weights' folder or name."""
    target_parameters: int | None = None


def served_model(models: Any, name: str) -> ServedModel:  # Any: foreign JSON
    """Return a model's entry in `/models`; empty if it is not listed."""
    for entry in objects(models, "data"):
        if text(entry, "id") == name:
            return ServedModel(
                served_by=_OWNERS.get(text(entry, "owned_by") or ""),
                target=text(entry, "root"),
                target_parameters=count(entry, "meta", "n_params"),
            )
    return ServedModel()

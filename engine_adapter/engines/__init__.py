"""Engines: one protocol, one file an engine, chosen here."""

from importlib import import_module
from typing import Final

from engine_adapter.engines.base import (
    Chunk,
    Completion,
    Engine,
    EngineInfo,
    Item,
    Probe,
    Request,
    Sent,
)
from engine_adapter.errors import EngineSetupError
from engine_adapter.routes import HttpRoute, Route, TransformersRoute

__all__ = [
    "Chunk",
    "Completion",
    "Engine",
    "EngineInfo",
    "EngineOpener",
    "Item",
    "Probe",
    "Request",
    "Sent",
]

_HTTP_ENGINES: Final = {
    "llamacpp": "LlamaCppEngine",
    "lmdeploy": "LmdeployEngine",
    "openai": "OpenAIEngine",
    "sglang": "SglangEngine",
    "tensorrt_llm": "TensorRtLlmEngine",
    "tgi": "TgiEngine",
    "vllm": "VllmEngine",
}
"""The class in the module of the engine's name; it offers `async open(route) -> Engine`."""


class EngineOpener:
    """Opens routes; what two routes can share (a loaded target) is loaded once."""

    def __init__(self) -> None:
        self._shelf: object | None = None

    async def open(self, route: Route) -> Engine:
        """Return the route's engine, ready to answer; raises `EngineSetupError`."""
        if isinstance(route, TransformersRoute):
            return self._transformers(route)
        return await _over_http(route)

    def _transformers(self, route: TransformersRoute) -> Engine:
        try:  # here, not above: torch is an optional extra, and takes seconds to import
            from engine_adapter.engines.model_folder import ModelShelf  # noqa: PLC0415
            from engine_adapter.engines.transformers import TransformersEngine  # noqa: PLC0415
        except ModuleNotFoundError as exc:
            raise EngineSetupError(
                f"engine: transformers needs {exc.name}, which is not installed here; "
                "run `pip install 'draftgate[transformers]'`"
            ) from exc
        if not isinstance(self._shelf, ModelShelf):
            self._shelf = ModelShelf()
        return TransformersEngine(route, self._shelf)


async def _over_http(route: HttpRoute) -> Engine:
    try:
        name = _HTTP_ENGINES[route.engine]
    except KeyError as exc:
        raise EngineSetupError(
            f"engine: {route.engine} cannot be opened by this version; wanted one of "
            f"transformers, {', '.join(sorted(_HTTP_ENGINES))}"
        ) from exc
    module = import_module(f"engine_adapter.engines.{route.engine}")
    engine: Engine = await getattr(module, name).open(route)
    return engine

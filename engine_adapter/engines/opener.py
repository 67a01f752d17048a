"""Open a route's engine: each engine's name, its class and its module."""

from importlib import import_module
from typing import Any, Final

from engine_adapter.engines.answer import AnswerReader
from engine_adapter.engines.base import Engine
from engine_adapter.errors import EngineSetupError
from engine_adapter.routes import HttpRoute, InProcessRoute, LocalRoute, Route

_HTTP_ENGINES: Final = {
    "llamacpp": "LlamaCppEngine",
    "lmdeploy": "LmdeployEngine",
    "openai": "OpenAIEngine",
    "sglang": "SglangEngine",
    "tensorrt_llm": "TensorRtLlmEngine",
    "tgi": "TgiEngine",
    "vllm": "VllmEngine",
}
"""Each engine's class, in the module of the engine's name; `async open(route)` opens a route."""


class EngineOpener:
    """Opens routes; a model that two routes share is loaded once."""

    def __init__(self) -> None:
        self._shelf: object | None = None

    async def open(self, route: Route) -> Engine:
        """Return the route's engine, ready to answer; raises `EngineSetupError`."""
        if isinstance(route, HttpRoute):
            return await _over_http(route)
        return self._in_process(route)

    def _in_process(self, route: InProcessRoute) -> Engine:
        try:  # here, not above: torch is an optional extra, and takes seconds to import
            from engine_adapter.engines.local.engine import LocalEngine  # noqa: PLC0415
            from engine_adapter.engines.model_folder import ModelShelf  # noqa: PLC0415
            from engine_adapter.engines.transformers import TransformersEngine  # noqa: PLC0415
        except ModuleNotFoundError as exc:
            raise EngineSetupError(
                f"engine: {route.engine} needs {exc.name}, which is not installed here; "
                "run `pip install 'draftgate[transformers]'`"
            ) from exc
        if not isinstance(self._shelf, ModelShelf):
            self._shelf = ModelShelf()
        if isinstance(route, LocalRoute):
            return LocalEngine(route, self._shelf)
        return TransformersEngine(route, self._shelf)


async def _over_http(route: HttpRoute) -> Engine:
    engine: Engine = await _class_of(route.engine).open(route)
    return engine


def reader_of(engine: str) -> type[AnswerReader]:
    """Return the reader of an engine's answers; raises `EngineSetupError` for an unknown name."""
    reader: type[AnswerReader] = _class_of(engine).reader
    return reader


def _class_of(engine: str) -> Any:  # Any: a subclass of HttpEngine, of a module imported here
    if engine not in _HTTP_ENGINES:
        raise EngineSetupError(
            f"engine: {engine} is none that answers over HTTP; wanted one of "
            f"{', '.join(sorted(_HTTP_ENGINES))}"
        )
    module = import_module(f"engine_adapter.engines.{engine}")
    return getattr(module, _HTTP_ENGINES[engine])

"""Engines: one protocol, one file an engine, chosen here."""

from engine_adapter.engines.base import Chunk, Completion, Engine, EngineInfo, Request
from engine_adapter.errors import EngineSetupError
from engine_adapter.rollout_file import Route

__all__ = ["Chunk", "Completion", "Engine", "EngineInfo", "EngineOpener", "Request"]


class EngineOpener:
    """Opens routes; what two routes can share (a loaded target) is loaded once."""

    def __init__(self) -> None:
        self._shelf: object | None = None

    def open(self, route: Route) -> Engine:
        """Return the route's engine, ready to answer; raises `EngineSetupError`."""
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

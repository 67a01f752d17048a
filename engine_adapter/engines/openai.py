"""Any server of the OpenAI API that is none of the engines by name: usage, and no counts."""

from engine_adapter.engines.base import EngineInfo, Probe
from engine_adapter.engines.openai_api import OpenAIStreaming, client_of, fingerprint
from engine_adapter.errors import EngineSetupError, GenerationError
from engine_adapter.routes import HttpRoute
from engine_adapter.transport import HttpClient

_NO_COUNTS = (
    "engine: openai knows no engine's own counts; name the engine (vllm, sglang, llamacpp, …) to "
    "have its acceptance recorded"
)


class OpenAIEngine(OpenAIStreaming):
    """A server that streams chat completions."""

    @classmethod
    async def open(cls, route: HttpRoute) -> "OpenAIEngine":
        """Return the engine; raises `EngineSetupError` where nothing answers there."""
        client = client_of(route)
        try:
            await _check_model(client, route.model)
        except BaseException:
            await client.close()
            raise
        info = EngineInfo(
            provider="openai",
            model=route.model,
            version="unknown",
            fingerprint=fingerprint(route, {}),
        )
        return cls(route, client, info)

    async def probe(self) -> Probe:
        """Say that such a server says nothing of its speculation."""
        return Probe(
            per_request_metrics=False,
            advice=(_NO_COUNTS,),
        )


async def _check_model(client: HttpClient, model: str) -> None:
    """Ask for the models that are served; a server without that route is taken at its word."""
    try:
        listed = (await client.get("/models")).json()
    except GenerationError as exc:
        if exc.status is not None and exc.error_type not in ("unauthorized", "forbidden"):
            return
        raise EngineSetupError(str(exc)) from exc
    data = listed.get("data") if isinstance(listed, dict) else None
    names = [entry.get("id") for entry in data or () if isinstance(entry, dict)]
    if names and model not in names:
        raise EngineSetupError(
            f"model: {client.url} does not serve {model!r}; it lists "
            f"{', '.join(map(str, names[:5]))}"
        )

"""Langfuse's address for OTLP, served as OpenTelemetry's own."""

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

PREFIX: Final = "/api/public/otel"
"""Langfuse's SDKs, and exporters configured for it, append `/v1/traces`."""


class LangfusePathMiddleware:
    """Serves `/api/public/otel/v1/…` as `/v1/…`, so that both have the same rules."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "http" and scope["path"].startswith(f"{PREFIX}/v1/"):
            path = scope["path"].removeprefix(PREFIX)
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await self._app(scope, receive, send)

"""A synchronous client of the collector's HTTP API."""

import os
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import httpx

from collector.client.connection import Connection
from collector.client.generations import GenerationRequests
from collector.client.pairs import PairRequests
from collector.client.releases import ReleaseRequests
from collector.client.rollouts import RolloutRequests
from collector.client.scores import ScoreRequests
from collector.client.telemetry import TelemetryRequests
from collector.errors import ClientError, StoreError


class CollectorSettings(NamedTuple):
    """The relevant settings of a collector."""

    captures_content: bool
    """Whether prompts and answers are stored."""
    requires_keys: bool


class Client(
    TelemetryRequests,
    RolloutRequests,
    GenerationRequests,
    PairRequests,
    ScoreRequests,
    ReleaseRequests,
):
    """Reads and writes what a collector stores; a context manager.

    Every method raises `ClientError` if the collector cannot be reached, refuses the request, or
    sends an unexpected response.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        ca_file: str | Path | None = None,
        timeout_s: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Use the collector at `url` with an API key; trust `ca_file` instead of system CAs."""
        self._connection = Connection(
            url, key=key, ca_file=ca_file, timeout_s=timeout_s, transport=transport
        )

    @classmethod
    def from_environment(cls, url: str, *, timeout_s: float = 30.0) -> "Client":
        """Use the key in DRAFTGATE_API_KEY and the CA certificates in DRAFTGATE_CA_FILE."""
        key, ca_file = os.environ.get("DRAFTGATE_API_KEY"), os.environ.get("DRAFTGATE_CA_FILE")
        return cls(url, key=key or None, ca_file=ca_file or None, timeout_s=timeout_s)

    @classmethod
    def opened(cls, collector: str | None, database_url: str) -> "Client":
        """Ask a collector with the environment's key, or open the database if none is named."""
        return cls.from_environment(collector) if collector else cls.local(database_url)

    @classmethod
    def local(cls, database_url: str, *, capture_content: bool = False) -> "Client":
        """Serve a database in this process; create it or upgrade its schema if needed.

        Runs the collector's application without a server and without keys. `capture_content`:
        whether posted text is stored. Raises `ClientError` if the database cannot be opened.
        """
        # Imported here: a client of a running collector needs neither FastAPI nor SQLAlchemy.
        from collector.client.asgi_transport import InProcessTransport  # noqa: PLC0415
        from collector.serving.app import create_app  # noqa: PLC0415
        from collector.settings import from_environment  # noqa: PLC0415

        settings = replace(
            from_environment(only=("analytics_url", "redaction_key")),
            database_url=database_url,
            capture_content=capture_content,
        )
        app = create_app(settings)
        try:
            transport = InProcessTransport(app, app.router.lifespan_context(app))
        except StoreError as exc:
            raise ClientError(str(exc)) from exc
        return cls("http://draftgate.local", transport=transport)

    def close(self) -> None:
        """Close connections; a local database is closed after everything posted is stored."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def health(self) -> bool:
        """Return whether a collector answers."""
        try:
            return bool(self._connection.get("/healthz") == {"status": "ok"})
        except ClientError:
            return False

    def about(self) -> CollectorSettings:
        """Return the relevant settings of the collector."""
        body = self._connection.get("/api/v1/collector")
        try:
            return CollectorSettings(bool(body["captures_content"]), bool(body["requires_keys"]))
        except (KeyError, TypeError) as exc:
            raise self._connection.unexpected_answer(exc) from exc

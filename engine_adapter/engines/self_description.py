"""What an engine's own routes say of it: asked once, before the first request that counts."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from engine_adapter.engines.answer import Answer, SpeculationSetup
from engine_adapter.engines.base import Probe
from engine_adapter.engines.scrape import Scrape
from engine_adapter.errors import GenerationError
from engine_adapter.transport import HttpClient, Reply

MODELS = "/models"


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfDescription:
    """The documents that an engine gave, and what two short answers to one prompt said."""

    documents: Mapping[str, Any] = field(default_factory=dict)  # Any: foreign JSON
    """By route; a route that is missing did not answer with JSON."""
    metrics: Scrape | None = None
    metrics_url: str | None = None
    answer: Answer | None = None
    again: Answer | None = None
    """The same prompt a second time: its cached tokens tell of a prefix cache."""

    def of(self, route: str) -> Any:  # Any: foreign JSON
        """Return a route's document, or `None`."""
        return self.documents.get(route)

    @property
    def reuses_prefixes(self) -> bool | None:
        """Whether the second answer began from the first one's prompt; `None` if unsaid."""
        cached = self.again.cached_input_tokens if self.again is not None else None
        return True if cached else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What was made of a self-description."""

    probe: Probe
    setup: SpeculationSetup


def server_root(url: str) -> str:
    """Return a server's root, where engines have their own routes: the URL without `/v1`."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v1')}"


async def documents_of(client: HttpClient, routes: tuple[str, ...]) -> dict[str, Any]:
    """Return what each of the routes says; those that do not answer with JSON are left out.

    `/models` is the OpenAI API's, below its URL; all others stand at the server's root.
    """
    found: dict[str, Any] = {}
    for route in routes:
        base = client.url if route == MODELS else server_root(client.url)
        reply = await _answered(client, base + route)
        if reply is not None:
            try:
                found[route] = json.loads(reply.body)
            except ValueError:
                continue
    return found


async def metrics_of(client: HttpClient, url: str) -> Scrape | None:
    """Return a scrape; `None` if there is no Prometheus page."""
    reply = await _answered(client, url)
    if reply is None:
        return None
    try:
        return Scrape.parse(reply.body.decode())
    except ValueError:
        return None


async def _answered(client: HttpClient, url: str) -> Reply | None:
    """Return the answer to a GET; `None` if the server answers that it has none."""
    try:
        return await client.get(url)
    except GenerationError as exc:
        if exc.status is None or exc.error_type in ("unauthorized", "forbidden"):
            raise
        return None

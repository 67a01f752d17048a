"""Read an engine's own routes, once, before the first measured request."""

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
    """An engine's documents, and its two short answers to one prompt."""

    documents: Mapping[str, Any] = field(default_factory=dict)  # Any: foreign JSON
    """By route; a missing route did not answer with JSON."""
    metrics: Scrape | None = None
    metrics_url: str | None = None
    answer: Answer | None = None
    again: Answer | None = None
    """The answer to the same prompt sent again; its cached tokens reveal a prefix cache."""

    def of(self, route: str) -> Any:  # Any: foreign JSON
        """Return a route's document, or `None`."""
        return self.documents.get(route)

    @property
    def reuses_prefixes(self) -> bool | None:
        """True if the second answer reused the first one's prompt; `None` if not reported."""
        cached = self.again.cached_input_tokens if self.again is not None else None
        return True if cached else None


def metered(
    said: SelfDescription, counter: str, advice: str, *, version: str | None = None
) -> Probe:
    """Interpret an engine that reports speculation only by a counter of its metrics.

    It is known to speculate once that has counted.
    """
    counted = said.metrics.total(counter) if said.metrics is not None else None
    return Probe(
        version=version,
        setup=SpeculationSetup(on=True if counted else None),
        prefix_cache=said.reuses_prefixes,
        per_request_metrics=False,
        metrics_url=said.metrics_url,
        advice=(advice,),
    )


def folder_name(path: str | None) -> str | None:
    """Return the last part of a model's path or name."""
    return path.rstrip("/").rsplit("/", 1)[-1] if path else None


def server_root(url: str) -> str:
    """Return the URL without `/v1`; engines serve their own routes below it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v1')}"


async def documents_of(client: HttpClient, routes: tuple[str, ...]) -> dict[str, Any]:
    """Return each route's document, without routes that do not answer with JSON.

    `/models` belongs to the OpenAI API and is below its URL; the others are at the server's root.
    """
    found: dict[str, Any] = {}
    for route in routes:
        base = client.url if route == MODELS else server_root(client.url)
        reply = await _get(client, base + route)
        if reply is not None:
            try:
                found[route] = json.loads(reply.body)
            except ValueError:
                continue
    return found


async def metrics_of(client: HttpClient, url: str) -> Scrape | None:
    """Return a scrape; `None` if the URL serves no Prometheus metrics."""
    reply = await _get(client, url)
    if reply is None:
        return None
    try:
        return Scrape.parse(reply.body.decode())
    except ValueError:
        return None


async def _get(client: HttpClient, url: str) -> Reply | None:
    """Return the reply to a GET; `None` for an error status other than 401 and 403."""
    try:
        return await client.get(url)
    except GenerationError as exc:
        if exc.status is None or exc.error_type in ("unauthorized", "forbidden"):
            raise
        return None

"""The collector's application in this process, spoken to over HTTP."""

import contextlib
from collections.abc import Iterator

import httpx

from collector.client.asgi_transport import InProcessTransport
from collector.serving.app import create_app
from collector.settings import Settings


@contextlib.contextmanager
def http_of(settings: Settings) -> Iterator[httpx.Client]:
    """Speak HTTP to an application with these settings."""
    app = create_app(settings)
    transport = InProcessTransport(app, app.router.lifespan_context(app))
    with httpx.Client(base_url="http://collector", transport=transport) as client:
        yield client

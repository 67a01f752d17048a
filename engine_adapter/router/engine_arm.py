"""One arm's engine, shared by all requests to it."""

from engine_adapter.engines import reader_of
from engine_adapter.router.breaker import CircuitBreaker
from engine_adapter.router.http1.engine_transport import EngineTransport
from engine_adapter.router.settings import Breaker, Upstream


class EngineArm:
    """An arm's settings, transport, circuit breaker and answer reader."""

    def __init__(self, settings: Upstream, breaker: Breaker) -> None:
        """Open no connection yet."""
        self.settings = settings
        self.transport = EngineTransport(settings.url, settings.api_key, settings.timeouts)
        self.breaker = CircuitBreaker(breaker)
        self.reader = reader_of(settings.engine)
        """Imported at start, not while the first user waits."""

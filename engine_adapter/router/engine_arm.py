"""One arm's engine, as the requests to it share it."""

from engine_adapter.engines import reader_of
from engine_adapter.router.breaker import CircuitBreaker
from engine_adapter.router.http1.engine_transport import EngineTransport
from engine_adapter.router.settings import Breaker, Upstream


class EngineArm:
    """How the engine is reached, whether it is left alone, and what reads its answers."""

    def __init__(self, settings: Upstream, breaker: Breaker) -> None:
        """Nothing is connected yet."""
        self.settings = settings
        self.transport = EngineTransport(settings.url, settings.api_key, settings.timeouts)
        self.breaker = CircuitBreaker(breaker)
        self.reader = reader_of(settings.engine)
        """Loaded here, and not while the first user waits."""

"""The router's deployment settings: address, upstreams, client keys and limits."""

from dataclasses import dataclass, field

from engine_adapter.collector_access import CollectorAccess
from engine_adapter.engines.answer import SpeculationSetup
from engine_adapter.routes import HttpEngineName
from engine_adapter.transport import Timeouts


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """One arm's engine."""

    url: str
    """The base of its OpenAI-compatible API, such as http://localhost:8000/v1."""
    engine: HttpEngineName = "openai"
    model: str | None = None
    """The model's name at this engine, if it differs from the one that clients send."""
    api_key: str | None = field(default=None, repr=False)
    """Sent as a bearer token; clients never see it, and their keys are not passed on."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    setup: SpeculationSetup = field(default_factory=SpeculationSetup)
    """How the engine speculates, as configured; acceptance counts are read from each answer."""
    fingerprint: str | None = None
    """Hash of target, draft, tokenizer, engine version and flags."""
    engine_version: str | None = None
    launch: str | None = None
    """Name of this launch of the server."""
    price: str | None = None
    """The route's price, as generations carry it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKey:
    """A key that clients may use, kept as a digest."""

    name: str
    """Its owner, for logs and metrics."""
    sha256: str = field(repr=False)
    """SHA-256 of the key's text, in 64 lower-case hexadecimal digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """When to stop sending to a failing upstream, and for how long."""

    failures: int = 5
    """Consecutive failures that open the breaker."""
    open_s: float = 10.0
    """How long it stays open before one request tries again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterLimits:
    """Bounds on the router's resources; work beyond them is refused, or dropped and counted."""

    body_bytes: int = 64 << 20
    """Largest request body; a larger one gets 413."""
    read_bytes: int = 2 << 20
    """Largest request body that is parsed for rules and spans. Larger ones, and those with very
    many JSON values, go to the baseline unparsed: parsing them would delay streams."""
    connections: int = 8192
    """Client connections at once; beyond it, the one that waited longest for its client closes."""
    connections_per_address: int = 4096
    """The same per address; a proxy in front has one address for all its clients."""
    in_flight: int = 4096
    """Users' requests at once; further ones get 503."""
    mirrors: int = 64
    """Mirrored requests at once; beyond it, requests are not mirrored."""
    spans: int = 8192
    """Spans queued for the collector; beyond it, the newest is dropped."""
    observed_bytes: int = 4 << 20
    """Largest event or whole answer that is parsed for telemetry; larger ones pass unparsed."""
    finish_s: float = 30.0
    """How long streams in flight may continue after the router is told to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterSettings:
    """All settings of a router; the `Control` decides which arm gets a request."""

    baseline: Upstream
    candidate: Upstream
    host: str = "127.0.0.1"
    port: int = 8080
    """0 chooses a free one."""
    client_keys: tuple[ClientKey, ...] = ()
    """If empty, everyone who reaches the port may use it."""
    pass_headers: tuple[str, ...] = ()
    """Request headers to pass on, besides those that OpenAI clients send."""
    breaker: Breaker = field(default_factory=Breaker)
    limits: RouterLimits = field(default_factory=RouterLimits)
    collector_url: str | None = None
    """The collector that spans are sent to; if absent, nothing is recorded."""
    collector_access: CollectorAccess | None = None
    """If absent, read from the environment."""
    record_content: bool = False
    """Whether spans carry prompts and answers, which evaluators need."""

"""How a router is deployed: where it listens, whom it asks, whom it lets in, and its bounds."""

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
    """The name that it knows the model by, where clients ask for another."""
    api_key: str | None = field(default=None, repr=False)
    """Sent as a bearer token; no client sees it, and no client's key is sent on."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    setup: SpeculationSetup = field(default_factory=SpeculationSetup)
    """What is known of how it speculates; counts are read of each answer."""
    fingerprint: str | None = None
    """Hash of target, draft, tokenizer, engine version and flags."""
    launch: str | None = None
    """Which start of its server this is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKey:
    """A key that clients may use; what is kept of it does not give it away."""

    name: str
    """Whose it is, for logs and metrics."""
    sha256: str = field(repr=False)
    """SHA-256 of the key's text, in 64 lower-case hexadecimal digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """When an upstream that fails is left alone for a while."""

    failures: int = 5
    """In a row."""
    open_s: float = 10.0
    """Then one request tries again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the router refuses, or drops and counts, rather than grow."""

    body_bytes: int = 64 << 20
    """Of a request; beyond it, 413."""
    read_bytes: int = 2 << 20
    """Of a request that rules and spans read; larger ones, and those of very many JSON values, go
    to the baseline unread: to parse them would make streams wait."""
    connections: int = 8192
    """Of clients at once; beyond it, that is closed whose client was waited for longest."""
    connections_per_address: int = 4096
    """The same, of one address: a proxy in front has one for all its clients."""
    in_flight: int = 4096
    """Users' requests at once; beyond it, 503."""
    mirrors: int = 64
    """Mirrored requests at once; beyond it, none is sent."""
    spans: int = 8192
    """Waiting for the collector; beyond it, the newest is dropped."""
    observed_bytes: int = 4 << 20
    """Of one event, or of one whole answer, that is read for telemetry; larger ones pass unread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterSettings:
    """All that a router is told when it starts; who gets which arm is the `Control`'s."""

    baseline: Upstream
    candidate: Upstream
    host: str = "127.0.0.1"
    port: int = 8080
    """0 takes a free one."""
    client_keys: tuple[ClientKey, ...] = ()
    """Without any, everyone who reaches the port may use it."""
    pass_headers: tuple[str, ...] = ()
    """Request headers to send on, besides those that every client of the OpenAI API sends."""
    breaker: Breaker = field(default_factory=Breaker)
    limits: Limits = field(default_factory=Limits)
    collector_url: str | None = None
    """Where the spans go; without one, nothing is recorded."""
    collector_access: CollectorAccess | None = None
    """Absent: what the environment says."""
    record_content: bool = False
    """Whether spans carry what was asked and answered, which evaluators need."""

"""The router's deployment settings: address, upstreams, client keys and limits.

Keys, breaker and limits are read from the routes file as they are.
"""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from engine_adapter.collector_access import CollectorAccess
from engine_adapter.engines.answer import SpeculationSetup
from engine_adapter.routes import HttpEngineName, Section
from engine_adapter.transport import Timeouts

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0)]


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


class ClientKey(Section):
    """A key that clients may use."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    """Name of the key, unique in the file."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", repr=False)]
    """Hash of the key, in lower case, as `printf %s "$KEY" | sha256sum` prints it."""


class Breaker(Section):
    """When to stop sending to a failing upstream, and for how long."""

    failures: Count = 5
    """Consecutive failures that open the breaker."""
    open_s: Seconds = 10.0
    """Seconds for which it stays open."""


class RouterLimits(Section):
    """Bounds on the router's resources; work beyond them is refused, or dropped and counted."""

    body_bytes: Count = 64 << 20
    """Size of a request; a larger one gets 413."""
    read_bytes: Count = 2 << 20
    """Size of a request that is parsed; a larger one goes to the baseline without rules or span."""
    connections: Count = 8192
    """Connections, at most half the open-file limit; beyond it, the one that waited longest for its
    client closes."""
    connections_per_address: Count = 4096
    """Connections of one address, likewise."""
    in_flight: Count = 4096
    """Users' requests at once; beyond it, 503."""
    mirrors: Count = 64
    """Mirrored requests at once; more are dropped and counted."""
    spans: Count = 8192
    """Spans queued; more are dropped and counted."""
    observed_bytes: Count = 4 << 20
    """Size of an event or answer that is parsed for telemetry."""
    finish_s: Seconds = 30.0
    """Seconds for streams in flight after a stop."""


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

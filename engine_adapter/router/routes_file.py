"""The routes file (YAML): the router's address, its upstreams, and which arm gets a request."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from collector.contract import Arm, InputBands, is_input_band
from engine_adapter.errors import RoutesFileError
from engine_adapter.prices import Prices
from engine_adapter.router.assignment import Sticky
from engine_adapter.router.cohorts import CohortSection
from engine_adapter.router.decision import Mode
from engine_adapter.router.input_lengths import InputTokensSection
from engine_adapter.router.ramp import Percent, RampSection
from engine_adapter.router.rules import RoutingRule
from engine_adapter.router.settings import Breaker, ClientKey, RouterLimits, Seconds
from engine_adapter.routes import HttpEngineName, LaunchName, Section
from engine_adapter.validation import describe, read_yaml

RolloutName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\w.:/-]+$")]
Url = Annotated[str, Field(pattern=r"^https?://[^/\s]+")]


class SpeculationSection(Section):
    """How an upstream speculates; few engines report it in their answers."""

    method: str | None = None
    """The method, such as `eagle`."""
    draft_model: str | None = None
    """Name of the draft model."""
    num_speculative_tokens: Annotated[int, Field(gt=0, le=64)] | None = None
    """Draft tokens per verify step (k)."""
    lossless: bool | None = None
    """False with relaxed or synthetic acceptance."""


class UpstreamSection(Section):
    """One arm's engine."""

    url: Url
    """Base of its OpenAI-compatible API, such as `http://localhost:8000/v1`."""
    engine: HttpEngineName = "openai"
    """The engine, which decides how counts are read; `openai` is any other server with this API."""
    model: Annotated[str, Field(min_length=1)] | None = None
    """The model's name at this server; default: the one that clients send."""
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    """Environment variable that holds its key; clients' keys are never sent on."""
    speculation: SpeculationSection | None = None
    """How it speculates, if the engine does not report it."""
    fingerprint: Annotated[str, Field(min_length=1)] | None = None
    """Hash of the server's parts, for the history of verdicts."""
    engine_version: Annotated[str, Field(min_length=1)] | None = None
    """Version of the server, for the history of verdicts."""
    launch: LaunchName | None = None
    """Name of this launch of the server; change it after every restart."""
    connect_timeout_s: Seconds = 10.0
    """Maximum seconds until it accepts a connection."""
    first_byte_timeout_s: Seconds = 120.0
    """Maximum seconds until the answer's first bytes."""
    idle_timeout_s: Seconds = 60.0
    """Maximum seconds between two chunks."""
    timeout_s: Seconds = 600.0
    """Maximum seconds for the whole answer."""


class Upstreams(Section):
    """The two arms."""

    baseline: UpstreamSection
    """Engine of the baseline."""
    candidate: UpstreamSection
    """Engine of the candidate."""

    def launched(self, launch: str) -> "Upstreams":
        """Return both arms with `launch` as the name of their servers' launch."""
        arms = {"baseline": self.baseline, "candidate": self.candidate}
        named = {arm: one.model_copy(update={"launch": launch}) for arm, one in arms.items()}
        return self.model_copy(update=named)


class Listen(Section):
    """The address that the router listens on."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """Port to listen on."""


class CollectorSection(Section):
    """The collector that provides switch and ramp and receives the spans."""

    url: Url = "http://localhost:4318"
    """Address of the collector; its key, `DRAFTGATE_API_KEY`, needs `read` and `ingest`."""
    record_content: bool = False
    """Whether spans carry prompts and answers, which evaluators need."""


class Routes(Section):
    """The whole routes file."""

    version: Literal[1] = 1
    """Version of the file's format."""
    rollout: RolloutName
    """Name of the rollout: up to 200 letters, digits and `_.:/-`."""
    policy: Annotated[str, Field(min_length=1)] | None = None
    """Policy to register before the first request, a file or a shipped policy's name; the key then
    needs `judge` and `read`. Default: the registered one, else `default`."""
    upstreams: Upstreams
    """The engines of both arms."""
    prices: Prices | None = None
    """Prices of the upstreams, by token alone; without them, no cost in money is shown."""
    mode: Mode = Mode.BASELINE
    """Which arm answers. `baseline`: it answers everything; `mirror`: the same, and the candidate
    gets a copy of a share, off the user's path; `split`: the candidate answers a share;
    `candidate`: it answers all eligible requests."""
    share: Percent | None = None
    """Percent of the eligible requests that are mirrored, or that the candidate answers; `mirror`
    and `split` need this or `ramp`."""
    ramp: RampSection | None = None
    """The share in steps, which the collector stores; `ramp: {}` takes the default steps."""
    sticky: Sticky = Sticky()
    """The keys that keep a conversation on one arm."""
    cohorts: CohortSection = CohortSection()
    """How a request's cohort is found."""
    input_tokens: InputTokensSection | None = None
    """Bands of input tokens, which rules name as cohorts."""
    rules: Annotated[
        tuple[RoutingRule, ...], Field(json_schema_extra={"type": ["array", "string"]})
    ] = ()
    """A list, or the file that `draftgate advise --routes` writes; the first rule whose conditions
    all hold counts."""
    default: Arm = Arm.CANDIDATE
    """The arm of requests that match no rule."""
    listen: Listen = Listen()
    """The address that the router listens on."""
    collector: CollectorSection = CollectorSection()
    """The collector that provides switch and ramp and receives the spans."""
    client_keys: tuple[ClientKey, ...] = ()
    """Keys that clients may use; without any, everyone may ask."""
    pass_headers: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Further request headers to pass on."""
    breaker: Breaker = Breaker()
    """When to stop sending to a failing upstream."""
    limits: RouterLimits = RouterLimits()
    """Bounds on the router's resources."""
    state_file: Annotated[str, Field(min_length=1)] | None = None
    """Holds the last known switch and ramp, one file per router; default: the routes file's name
    plus `.state`."""

    @model_validator(mode="after")
    def _declares_its_bands(self) -> "Routes":
        declared = () if self.input_tokens is None else InputBands(self.input_tokens.bands).names
        named = {name for rule in self.rules for name in rule.cohort or () if is_input_band(name)}
        if unknown := sorted(named - {*declared, *((InputBands.UNKNOWN,) if declared else ())}):
            raise ValueError(
                f"a rule names the cohort {unknown[0]}, which is no band of `input_tokens`; give "
                "`input_tokens: {bands: [2000, 8000], characters_per_token: 4}` with the policy's "
                "bands, and the ratio that /router/state shows"
            )
        return self

    @model_validator(mode="after")
    def _says_one_share(self) -> "Routes":
        if self.share is not None and self.ramp is not None:
            raise ValueError("give `share` or `ramp`, not both")
        if self.mode in (Mode.MIRROR, Mode.SPLIT) and self.share is None and self.ramp is None:
            raise ValueError(
                f"mode {self.mode} needs `share: 5` (percent), or `ramp: {{}}` for steps"
            )
        names = [key.name for key in self.client_keys]
        if len(set(names)) < len(names):
            raise ValueError("`client_keys` holds one name twice")
        return self


class AdvisedRules(Section):
    """A file of rules, as written by `draftgate advise --routes`."""

    version: Literal[1] = 1
    rollout: RolloutName | None = None
    default: Arm | None = None
    rules: tuple[RoutingRule, ...] = ()


def read(path: Path) -> Routes:
    """Return the routes of a YAML file, its paths made absolute.

    Raises `RoutesFileError` with the file and the key.
    """
    document = read_yaml(path, "`rollout:` and `upstreams:`", RoutesFileError)
    named = document.get("rules")
    if isinstance(named, str):
        document = _with_included(document, path.parent / named)
    try:
        routes = Routes.model_validate(document)
    except ValidationError as exc:
        raise RoutesFileError(f"{path}: {describe(exc, Routes)}") from exc
    beside = path.parent / (routes.state_file or f"{path.name}.state")
    return routes.model_copy(update={"state_file": str(beside.absolute())})


def _with_included(document: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Replace the document's file name under `rules` by that file's rules."""
    given = read_yaml(path, "`rules:`", RoutesFileError)
    try:
        included = AdvisedRules.model_validate(given)
    except ValidationError as exc:
        raise RoutesFileError(f"{path}: {describe(exc, AdvisedRules)}") from exc
    rollout = document.get("rollout")
    if included.rollout not in (None, rollout):
        raise RoutesFileError(
            f"{path}: rollout: these rules are of {included.rollout!r}, the routes of {rollout!r}; "
            f"write new ones with `draftgate advise {rollout} --routes {path.name}`"
        )
    default = {} if included.default is None else {"default": included.default}
    return {**default, **document, "rules": given.get("rules", [])}

"""Build the router's settings, switch follower and control from a routes file."""

import os
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from collector.client import Client
from collector.contract import Arm, Speculation, StoredVerdict
from engine_adapter.engines.answer import SpeculationSetup
from engine_adapter.errors import RoutesFileError
from engine_adapter.router.assignment import Assignment
from engine_adapter.router.cohorts import Cohorts
from engine_adapter.router.control import RolloutControl
from engine_adapter.router.input_lengths import InputLengths
from engine_adapter.router.routes_file import Routes, UpstreamSection
from engine_adapter.router.rules import Rules
from engine_adapter.router.settings import RouterSettings, Upstream
from engine_adapter.router.switch_follower import SwitchFollower
from engine_adapter.transport import Timeouts


def settings_of(routes: Routes, environment: Mapping[str, str] = os.environ) -> RouterSettings:
    """Return the router's settings; raises `RoutesFileError` if an API key's variable is unset."""
    return RouterSettings(
        baseline=_upstream(Arm.BASELINE, routes, environment),
        candidate=_upstream(Arm.CANDIDATE, routes, environment),
        host=routes.listen.host,
        port=routes.listen.port,
        client_keys=routes.client_keys,
        pass_headers=routes.pass_headers,
        breaker=routes.breaker,
        limits=routes.limits,
        collector_url=routes.collector.url,
        record_content=routes.collector.record_content,
    )


def follower_of(
    routes: Routes,
    *,
    confirm: Callable[[StoredVerdict], str | None],
    register: Callable[[Client], object],
) -> SwitchFollower:
    """Return the follower of the rollout's switch; entering its context starts it."""
    return SwitchFollower(
        routes.rollout,
        lambda timeout_s: Client.from_environment(routes.collector.url, timeout_s=timeout_s),
        file=Path(str(routes.state_file)),
        ramp_section=routes.ramp,
        confirm=confirm,
        register=register,
    )


def control_of(routes: Routes, source: SwitchFollower) -> RolloutControl:
    """Return the control that decides where requests go."""
    return RolloutControl(
        rollout=routes.rollout,
        mode=routes.mode,
        share_percent=None if routes.ramp is not None else routes.share,
        rules=Rules(routes.rules, routes.default),
        cohorts=Cohorts(routes.cohorts),
        assignment=Assignment(routes.rollout, routes.sticky, random.SystemRandom().random),
        source=source,
        lengths=InputLengths(routes.input_tokens),
        now=lambda: datetime.now(UTC),
    )


def _upstream(arm: Arm, routes: Routes, environment: Mapping[str, str]) -> Upstream:
    section: UpstreamSection = getattr(routes.upstreams, arm.value)
    key = None
    if section.api_key_env is not None:
        key = environment.get(section.api_key_env)
        if not key:
            raise RoutesFileError(
                f"upstreams.{arm}.api_key_env: the environment variable {section.api_key_env} is "
                "not set; set it to the engine's key"
            )
    said = section.speculation
    return Upstream(
        url=section.url,
        engine=section.engine,
        model=section.model,
        api_key=key,
        timeouts=Timeouts(
            connect_s=section.connect_timeout_s,
            first_byte_s=section.first_byte_timeout_s,
            idle_s=section.idle_timeout_s,
            total_s=section.timeout_s,
        ),
        setup=SpeculationSetup()
        if said is None
        else SpeculationSetup(on=True, configured=Speculation(**said.model_dump())),
        fingerprint=section.fingerprint,
        engine_version=section.engine_version,
        launch=section.launch,
        price=None if routes.prices is None else routes.prices.of(arm),
    )

"""Describe a routes file in words, as `draftgate route` prints it at start."""

from collections.abc import Iterator

from collector.contract import InputBands
from engine_adapter.router.assignment import Sticky
from engine_adapter.router.cohorts import Cohorts
from engine_adapter.router.decision import Mode
from engine_adapter.router.known_state import KnownState
from engine_adapter.router.routes_file import Routes, UpstreamSection
from engine_adapter.router.rules import Rules


def describe_routes(routes: Routes) -> Iterator[str]:
    """Yield lines that describe the upstreams, the mode, the rules and the collector."""
    yield f"rollout {routes.rollout}"
    yield f"baseline:  {_upstream(routes.upstreams.baseline)}"
    yield f"candidate: {_upstream(routes.upstreams.candidate)}"
    yield f"mode {routes.mode}: {_mode(routes)}"
    yield "eligible by the first rule that matches:"
    yield from (f"  {line}" for line in Rules(routes.rules, routes.default).explained())
    yield "cohort by the first that says:"
    yield from (f"  {line}" for line in Cohorts(routes.cohorts).explained())
    if (lengths := routes.input_tokens) is not None:
        names = ", ".join(InputBands(lengths.bands).names)
        ratio = f"{lengths.characters_per_token:g} characters a token"
        yield f"bands, also cohorts of rules: {names}, estimated at {ratio}"
    yield f"switch and ramp from {routes.collector.url}, kept in {routes.state_file}"
    content = "with" if routes.collector.record_content else "without"
    yield f"spans to {routes.collector.url}, {content} prompts and answers"
    names = ", ".join(key.name for key in routes.client_keys)
    yield f"clients: {names or 'everyone who reaches the port; set `client_keys` to require a key'}"


def describe_state(known: KnownState, routes: Routes) -> Iterator[str]:
    """Yield lines that describe the switch and the ramp."""
    event = known.switch
    if event is not None:
        yield f"switch: {event.state}, set by {event.who}: {event.reason}"
    else:
        told = "never set" if known.told_unix_ns else "not known"
        yield f"switch: {told}; until it is on, all requests go to the baseline"
    at = f"--collector {routes.collector.url}"
    if not known.on:
        yield f'  draftgate switch {known.rollout} on --reason "…" {at}'
    if routes.ramp is None:
        return
    if known.ramp is not None:
        yield f"ramp: stands at {known.ramp.percent:g} %, by {known.ramp.who}: {known.ramp.reason}"
    elif routes.ramp.automatic:
        yield "ramp: not begun, so 0 %; it begins by itself once the switch is on"
    else:
        yield "ramp: not begun, so 0 %; begin it with"
        yield f"  draftgate promote {known.rollout} {at}"


def _upstream(section: UpstreamSection) -> str:
    model = f", asked for {section.model}" if section.model else ""
    return f"{section.engine} at {section.url}{model}"


def _mode(routes: Routes) -> str:
    if routes.mode is Mode.BASELINE:
        return "the baseline answers all requests"
    if routes.mode is Mode.CANDIDATE:
        return "the candidate answers all eligible requests"
    if routes.ramp is not None:
        steps = ", ".join(f"{step:g}" for step in routes.ramp.steps)
        how = "by itself, on a pass" if routes.ramp.automatic else "by `draftgate promote`"
        share = f"the ramp's part ({steps} %; {how})"
    else:
        share = f"{routes.share:g} %"
    if routes.mode is Mode.MIRROR:
        return f"the baseline answers; {share} of eligible requests go to the candidate too"
    return f"the candidate answers {share} of eligible sessions, told by {_sticky(routes.sticky)}"


def _sticky(sticky: Sticky) -> str:
    ways = [f"header {name}" for name in sticky.headers]
    ways += ["the body's user"] if sticky.body_user else []
    return ", else ".join([*ways, "each request drawn by itself"])

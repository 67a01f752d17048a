"""Open all routes, gather facts about each arm, and run all checks."""

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

from collector.contract import Change
from engine_adapter.engines import EngineOpener
from engine_adapter.preflight import arm_checks, pair_checks
from engine_adapter.preflight.arms import ArmFacts, gather_facts
from engine_adapter.preflight.findings import PreflightFinding, Severity
from engine_adapter.run.requests import request_of
from engine_adapter.run.rollout_file import Rollout, sessions
from engine_adapter.workload import Prompt

_ORDER = tuple(Severity)


async def examine(rollout: Rollout) -> list[PreflightFinding]:
    """Return the findings on a comparison, the most severe first.

    Raises `AdapterError` if the workload or a route cannot be used at all.
    """
    prompts = tuple(prompt for session in sessions(rollout) for prompt in session)
    opener = EngineOpener()
    async with AsyncExitStack() as opened:
        facts = []
        for name, route in rollout.routes.items():
            engine = await opener.open(route)
            opened.push_async_callback(engine.close)
            requests = [request_of(p, rollout.sampling, rollout.sampling.seed) for p in prompts]
            longest = max(requests, key=lambda one: sum(len(m.text) for m in one.messages))
            facts.append(await gather_facts(name, route, engine, longest, requests))
    found = list(_findings(rollout, prompts, facts))
    return sorted(found, key=lambda finding: _ORDER.index(finding.severity))


def _findings(
    rollout: Rollout, prompts: tuple[Prompt, ...], facts: Sequence[ArmFacts]
) -> Iterator[PreflightFinding]:
    baseline, *candidates = facts
    changes = {arm.name: rollout.change_of(arm.name) for arm in candidates}
    requests = [request_of(prompt, rollout.sampling, None) for prompt in prompts]
    longest_answer = max(request.limit for request in requests)
    for arm in facts:
        yield from (
            finding
            for finding in arm_checks.of_arm(arm, longest_answer)
            if finding.check != "prefix_cache" or Change.PREFIX_CACHE not in changes.values()
        )
        yield from arm_checks.of_sampling(arm, requests)
    yield from arm_checks.of_workload(rollout, prompts)
    yield from pair_checks.of_load(rollout)
    for candidate in candidates:
        for finding in pair_checks.of_pair(baseline, candidate, changes[candidate.name]):
            named = "" if rollout.family is None else f"{candidate.name}: "
            yield replace(finding, message=f"{named}{finding.message}")

"""Arms in processes of their own: the same run, and what happens when one dies."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from rollout_files import told, written
from scripted_server import Route, chat, json_reply, running

from collector.client import Client
from collector.contract import Arm
from engine_adapter.engines import Answer, Request
from engine_adapter.engines.arm_process import ArmProcess
from engine_adapter.errors import EngineSetupError, GenerationError
from engine_adapter.messages import Message
from engine_adapter.routes import HttpRoute, TransformersRoute

ASK = Request(messages=(Message(role="user", content="the order"),), max_tokens=6)


def arms() -> list[int]:
    """Return the processes of arms that this one started."""
    children = psutil.Process().children(recursive=True)
    return [c.pid for c in children if "engine_adapter.engines.arm_process" in c.cmdline()]


async def completed(engine: ArmProcess) -> Answer:
    items = [item async for item in engine.generate(ASK)]
    assert isinstance(items[-1], Answer)
    return items[-1]


@pytest.mark.slow
def test_both_arms_answer_as_in_one_process(
    random_pair: dict[str, Path], tmp_path: Path, url: str
) -> None:
    """`processes: per_arm` stores the same texts and counts, and leaves no process behind."""
    prompts = [{"id": "p", "cohort": "c", "prompt": "the order was shipped"}]
    target = {"engine": "transformers", "model": str(random_pair["target"])}
    said: dict[str, Any] = {}
    for processes in ("shared", "per_arm"):
        document = {
            "rollout": processes, "baseline": target,
            "candidate": target | {"draft_model": str(random_pair["draft"])},
            "sampling": {"max_tokens": 8},
            "load": {"warmup": 1, "processes": processes},
        }  # fmt: skip
        told("run", written(tmp_path, document, prompts), "--no-journal", "--collector", url)
        with Client(url) as client:
            (pair,) = client.pairs(processes, content=True).pairs
        sides = pair.baseline, pair.candidate
        said[processes] = [(s.content, s.speculation, s.fingerprint) for s in sides if s]
        assert all(s is not None and s.ttft_s and s.ttft_s > 0 for s in sides)
    assert len(said["shared"]) == len(Arm)
    assert said["shared"] == said["per_arm"]
    assert arms() == []


@pytest.mark.slow
def test_failures_keep_their_names_and_routes_their_messages() -> None:
    """A refused request and a route that cannot be opened fail as they do in one process."""

    async def ask(route: HttpRoute) -> None:
        engine = await ArmProcess.open(route)
        try:
            with pytest.raises(GenerationError, match="slow down") as raised:
                await completed(engine)
            assert (raised.value.error_type, raised.value.status) == ("rate_limited", 429)
        finally:
            await engine.close()

    refusing = Route(json_reply({"error": {"message": "slow down"}}, 429))
    with running(refusing, models=["m"]) as server:
        asyncio.run(ask(HttpRoute(engine="openai", url=server.url, model="m")))
        with pytest.raises(EngineSetupError, match="does not serve 'other'"):
            asyncio.run(ask(HttpRoute(engine="openai", url=server.url, model="other")))
    with pytest.raises(EngineSetupError):
        asyncio.run(ArmProcess.open(TransformersRoute(model="no-such-folder")))


def test_an_arm_that_is_killed_fails_its_requests() -> None:
    """Requests in flight fail with their own error type, and so do later requests."""

    async def ask(route: HttpRoute) -> list[str]:
        engine, found = await ArmProcess.open(route), list[str]()
        try:
            assert (await completed(engine)).text == "ab"
            for pid in arms():
                os.kill(pid, signal.SIGKILL)
            for _ in range(2):
                with pytest.raises(GenerationError) as raised:
                    await completed(engine)
                found.append(raised.value.error_type)
        finally:
            await engine.close()
        return found

    with running(Route(chat(["a", "b"])), models=["m"]) as server:
        route = HttpRoute(engine="openai", url=server.url, model="m")
        assert asyncio.run(ask(route)) == ["arm_process_ended"] * 2

"""The stock OpenAI SDKs, unchanged, through the router: whole, streamed, tools and errors."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import client_environments
import openai
import pytest
import scripted_server as server
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam
from running_router import FixedControl, routing
from scripted_server import Route

from collector.contract import Arm

WHERE: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Where?"}]
NAMED = {
    "index": 0,
    "id": "call_1",
    "type": "function",
    "function": {"name": "where", "arguments": ""},
}
ARGUMENTS = ('{"city"', ': "Paris"}')
USAGE = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
WHOLE = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "served",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Paris"}, "finish_reason": "stop"}
    ],
    "usage": USAGE,
}
LIMITED = server.json_reply({"error": {"message": "slow down", "code": "rate"}}, 429)
MISSING = server.json_reply({"error": {"message": "no such model", "code": "model"}}, 404)


def argument(part: str) -> server.Step:
    called = {"index": 0, "function": {"arguments": part}}
    return server.event(server.delta({"tool_calls": [called]}))


TOOLS = server.events(
    [
        server.event(server.delta({"role": "assistant", "content": None})),
        server.event(server.delta({"tool_calls": [NAMED]})),
        *(argument(part) for part in ARGUMENTS),
        server.event(server.delta({}, "tool_calls")),
        server.event(server.delta(None, usage=USAGE)),
        server.event("[DONE]"),
    ]
)


@pytest.fixture(scope="module", params=list(Arm))
def base_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Answer by either arm; what the candidate refuses, the baseline refuses again."""
    replies = {
        "whole": server.json_reply(WHOLE),
        "streamed": server.chat(["Par", "is"], usage=USAGE),
        "tools": TOOLS,
        "limited": LIMITED,
        "missing": MISSING,
    }
    routes = [Route(reply, model=model) for model, reply in replies.items()]
    with (
        server.running(*routes, models=["whole", "streamed"]) as upstream,
        routing(upstream.url, upstream.url, FixedControl(arm=request.param)) as router,
    ):
        yield router.url


def test_the_python_sdk(base_url: str) -> None:
    """Chunks, tool calls and exceptions are those that the engine itself would bring about."""
    with OpenAI(base_url=base_url, api_key="sk-client", max_retries=0) as client:
        create = client.chat.completions.create
        assert create(model="whole", messages=WHERE).choices[0].message.content == "Paris"
        chunks = list(create(model="streamed", messages=WHERE, stream=True))
        assert [c.choices[0].delta.content for c in chunks] == ["", "Par", "is", None]
        assert all(chunk.usage is None for chunk in chunks)
        counted = list(
            create(
                model="streamed",
                messages=WHERE,
                stream=True,
                stream_options={"include_usage": True},
            )
        )
        assert counted[-1].usage.completion_tokens == 2
        with client.chat.completions.stream(model="tools", messages=WHERE) as stream:
            (called,) = stream.get_final_completion().choices[0].message.tool_calls or []
        assert called.type == "function"
        assert (called.function.name, called.function.arguments) == ("where", "".join(ARGUMENTS))
        with pytest.raises(openai.NotFoundError, match="no such model") as missing:
            create(model="missing", messages=WHERE)
        assert missing.value.code == "model"
        with pytest.raises(openai.RateLimitError, match="slow down"):
            create(model="limited", messages=WHERE)
        assert [model.id for model in client.models.list()] == ["whole", "streamed"]


@pytest.mark.skipif(shutil.which("npm") is None, reason="no npm on the PATH")
def test_the_javascript_sdk(base_url: str) -> None:
    """The same, by a program of its own."""
    folder = client_environments.openai_javascript()
    done = subprocess.run(
        ["node", "client.mjs", base_url], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    found["tools"].pop("parsed_arguments", None)
    assert found == {
        "whole": ["Paris", 2],
        "streamed": [["", None], ["Par", None], ["is", None], [None, None]],
        "usage": 2,
        "tools": {"name": "where", "arguments": "".join(ARGUMENTS)},
        "missing": ["NotFoundError", 404, "404 no such model"],
        "limited": ["RateLimitError", 429, "429 slow down"],
        "models": ["whole", "streamed"],
    }

"""llama.cpp behind the router, with and without a draft: the responses and the spans."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import llamacpp_server
from running_router import FixedControl, recording

ASKED: dict[str, Any] = {
    "model": "served",
    "messages": [{"role": "user", "content": "where is my order ?"}],
    "max_tokens": 24,
    "temperature": 0,
    "stream": True,
}
CHANGING = re.compile(rb'"(?:id|created|\w+_ms|\w+_per_second)":("[^"]*"|[\d.]+),?')


def test_a_mirrored_pair_of_llamacpp(gguf_pair: dict[str, Path]) -> None:
    """The user's stream is the one that the server sends by itself; the draft's counts are told."""
    with (
        llamacpp_server.serving(gguf_pair["target"]) as baseline,
        llamacpp_server.serving(gguf_pair["target"], draft=gguf_pair["draft"]) as candidate,
        recording(
            f"{baseline}/v1",
            f"{candidate}/v1",
            FixedControl(mirrored=True),
            upstream={"engine": "llamacpp"},
        ) as (router, collected),
    ):
        _, _, routed = router.ask(ASKED)
        spans = {span["draftgate.arm"]: span for span in collected.wait_for(2)}
        alone = _post(f"{baseline}/v1/chat/completions", ASKED)
    assert CHANGING.sub(b"", routed) == CHANGING.sub(b"", alone)
    mine, other = spans["baseline"], spans["candidate"]
    assert mine["gen_ai.usage.output_tokens"] == other["gen_ai.usage.output_tokens"]
    assert "spec_decode.num_draft_tokens" not in mine
    assert 0 < other["spec_decode.num_accepted_tokens"] <= other["spec_decode.num_draft_tokens"]
    assert other["spec_decode.num_steps"] > 0
    assert mine["gen_ai.response.finish_reasons"] == other["gen_ai.response.finish_reasons"]


def _post(url: str, body: object) -> bytes:
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310
    with urlopen(request) as answer:  # noqa: S310
        found: bytes = answer.read()
        return found

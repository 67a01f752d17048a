"""A fault that carries over from request to request, found behind llama.cpp's own server."""

import json
from pathlib import Path
from typing import Any

import llamacpp_server
import poisoning_proxy
import pytest
from rollout_files import invoke, told, written

from collector.contract import Arm

SHARED = "def area_of_a_rectangle(width, height):\n    return width * height\n\n\n"
POLICY = """
version: 1
base: lossless
name: same-engine
validity: {speculation: optional}
report:
  - {metric: cached_input_tokens, stat: rate_diff, min: -0.05, scope: pooled}
"""


@pytest.fixture
def judged(tmp_path: Path, url: str, gguf_pair: dict[str, Path]) -> Any:
    """Run 80 prompts of one prefix on a server, and on it behind a proxy, and judge them."""

    def of(trigger: str) -> Any:
        prompts = (
            {"id": f"p{i}", "cohort": "code", "prompt": f"{SHARED}def square_{i}("}
            for i in range(80)
        )
        (tmp_path / "policy.yaml").write_text(POLICY)
        with (
            llamacpp_server.serving(gguf_pair["target"]) as engine,
            poisoning_proxy.running(engine, trigger=trigger, prefix=SHARED) as proxied,
        ):
            route = {"engine": "llamacpp", "model": "served"}
            document = {
                "rollout": "state",
                "policy": "policy.yaml",
                "change": "prefix_cache",
                "baseline": route | {"url": f"{engine}/v1"},
                "candidate": route | {"url": f"{proxied}/v1"},
                "sampling": {"max_tokens": 12},
                "load": {"warmup": 1, "sentinels": {"prompts": 1, "every": 3}},
                "collector": {"url": url},
            }
            told("run", written(tmp_path, document, prompts), "--no-journal")
            return json.loads(invoke("gate", "state", "--collector", url, "--json").stdout)

    return of


def cell(verdict: Any) -> Any:
    return next(f for f in verdict["findings"] if f["metric"] == "sentinel_answers")


@pytest.mark.slow
def test_a_poisoned_prefix_is_found_and_named(judged: Any) -> None:
    """The lossless cell fails, and the request after which the answers changed is named."""
    verdict = judged(f"{SHARED}def square_40(")
    assert verdict["outcome"] == "fail"
    assert cell(verdict)["outcome"] == "fail"
    of = {arm: [s for s in verdict["sentinels"] if s["arm"] == arm] for arm in Arm}
    assert [one["changed"] for one in of["baseline"]] == [0] * len(of["baseline"])
    changes = [one["first_change"] for one in of["candidate"] if one["first_change"] is not None]
    assert min(changes, key=lambda one: one["start_unix_ns"])["prompt_id"] in {"p40", "p41", "p42"}
    assert any(one["depends"] for one in of["candidate"])
    assert "depend on the requests before them" in verdict["summary"]


@pytest.mark.slow
def test_a_sound_server_is_not_blamed(judged: Any) -> None:
    """Behind a proxy that poisons nothing, no answer changes."""
    verdict = judged("nothing")
    assert [one["changed"] for one in verdict["sentinels"]] == [0] * len(verdict["sentinels"])
    assert cell(verdict)["outcome"] != "fail"
    assert verdict["suspicions"] == []
    cached = next(f for f in verdict["findings"] if f["metric"] == "cached_input_tokens")
    assert cached["n"] == 80

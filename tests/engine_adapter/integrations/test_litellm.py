"""LiteLLM itself, with our callback, against what vLLM said."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import client_environments
import pytest
import scripted_server as server
from engine_scripts import SCRIPTS

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def spans(reply: server.Reply | None = None) -> list[dict[str, Any]]:
    """Return what LiteLLM's calls became, in an environment of its own."""
    with server.running(*SCRIPTS["vllm"].routes(reply)) as running:
        done = subprocess.run(
            [
                str(client_environments.python_of("litellm")),
                str(HERE / "litellm_client.py"),
                running.url,
            ],
            capture_output=True,
            text=True,
            check=False,
            # Without its price list from the network.
            env=os.environ | {"PYTHONPATH": str(ROOT), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        )
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_each_call_is_a_generation_with_the_engines_counts() -> None:
    """Streamed, where LiteLLM drops the engine's fields, in both APIs; a failed call is told."""
    failed, *answered = sorted(spans(), key=lambda span: "error.type" not in span["attributes"])
    assert failed["attributes"]["error.type"] == "NotFoundError"
    assert not [name for name in failed["attributes"] if name.startswith("spec_decode.")]
    assert [span["name"] for span in answered] == ["chat tiny"] * 2
    for span in answered:
        said = span["attributes"]
        assert said["spec_decode.num_steps"] == 22
        assert said["spec_decode.num_draft_tokens"] == 88
        assert said["spec_decode.num_accepted_tokens"] == 44
        assert said["spec_decode.acceptance_histogram"] == [8, 2, 1, 4, 7]
        assert said["spec_decode.source"] == "request"
        assert said["gen_ai.usage.output_tokens"] == 64
        assert said["gen_ai.response.time_to_first_chunk"] > 0
        assert (said["draftgate.rollout"], said["draftgate.arm"]) == ("r", "candidate")
        assert "team" not in said

"""`draftgate run`: good runs against a real collector, bad input in one line."""

import json
import socket
import sys
from pathlib import Path

import fake_openai
import pytest
from rollout_files import invoke, written

from collector.client import Client
from engine_adapter.engines import Engine, EngineOpener
from engine_adapter.errors import TelemetryError
from engine_adapter.run import rollout_file
from engine_adapter.run.replay import replay

PROMPTS = [
    {"id": f"p{i}", "cohort": cohort, "prompt": "the order was shipped on monday"}
    for i, cohort in enumerate(("rag", "chat", "rag"))
]

POLICY = """
version: 1
name: own
prove:
  - {metric: failures, stat: diff, max: 0.1, scope: pooled}
"""


@pytest.fixture
def rollout(random_pair: dict[str, Path]) -> dict[str, object]:
    """Return a rollout file's content that works, but for its collector."""
    target = {"engine": "transformers", "model": str(random_pair["target"])}
    return {
        "baseline": target,
        "candidate": target
        | {"draft_model": str(random_pair["draft"]), "num_speculative_tokens": 3},
        "sampling": {"max_tokens": 8},
        "load": {"warmup": 1, "repeats": 2, "concurrency": 2},
        "collector": {"url": "http://127.0.0.1:1"},
    }


def run(folder: Path, content: dict[str, object], *options: str) -> tuple[int, str, str]:
    result = invoke("run", written(folder, content, PROMPTS), *options)
    return result.exit_code, result.stdout, result.stderr.strip()


def test_every_generation_is_stored_with_its_counts(
    rollout: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Pairs of both repeats arrive over OTLP, lawful, the candidate's with counts."""
    monkeypatch.setitem(sys.modules, "pynvml", None)  # no samples, on a machine with GPUs, too
    code, printed, _ = run(tmp_path, rollout, "--collector", url, "--json")
    assert code == 0
    counts = json.loads(printed)
    assert counts.pop("loop_lag")["samples"] > 0
    nothing = {"samples": 0, "p50_s": None, "p99_s": None, "max_s": None}
    drafts = {arm: of.pop("drafts") for arm, of in counts["arms"].items()}
    assert drafts["baseline"] == {}
    assert drafts["candidate"]["greedy"]["draft_tokens"] > 0
    assert counts == {
        "rollout": "r",
        "generations": 12,
        "failed": 0,
        "resumed": 0,
        "send_lag": nothing,
        "engine_samples": 0,
        "arms": {
            arm: {"generations": 6, "failed": 0, "error_type": None, "errors": {}}
            for arm in ("baseline", "candidate")
        },
    }
    with Client(url) as client:
        (overview,) = client.rollouts()
        assert (overview.pairs, overview.cohorts, overview.quality_flagged) == (
            6,
            ("chat", "rag"),
            0,
        )
        for generation in client.generations("r", content=True):
            speculated = generation.speculation is not None
            assert speculated == (generation.arm == "candidate")
            assert generation.queue_s is not None
            assert generation.content.output_messages is not None


def test_the_policy_is_registered_before_the_first_pair(
    rollout: dict[str, object], tmp_path: Path, url: str
) -> None:
    """The one that is named, or the rollout file's; without either the shipped default."""
    (tmp_path / "own.yaml").write_text(POLICY)
    given: list[tuple[dict[str, object], list[str], str]] = [
        ({}, ["--policy", str(tmp_path / "own.yaml")], "own"),
        ({"policy": "own.yaml"}, [], "own"),
        ({}, [], "default"),
    ]
    with Client(url) as client:
        for i, (more, options, name) in enumerate(given):
            content = rollout | more | {"rollout": f"r{i}", "load": {"warmup": 0}}
            code, _, said = run(tmp_path, content, "--collector", url, *options)
            assert code == 0, said
            assert f"r{i}: policy {name} " in said
            assert "is registered, before the first pair" in said
            registered = client.history(f"r{i}").registered
            assert (registered.policy_name, registered.before_first_pair) == (name, True)


def test_an_arm_that_mostly_fails_ends_the_run_with_an_error(
    rollout: dict[str, object], tmp_path: Path, url: str
) -> None:
    """Exit code 1; a line names the arm, how often, and the engine's words; answers are stored."""
    with (
        Client(url) as client,
        fake_openai.running() as server,
    ):
        dead = {"engine": "openai", "model": "missing", "url": f"{server}/v1"}
        content = rollout | {"candidate": dead, "load": {"warmup": 0}}
        code, printed, said = run(tmp_path, content, "--collector", url)
        assert code == 1, said
        assert "the candidate failed in 3 of 3 answers, lastly with model_not_found: " in said
        assert f"{server}/v1/chat/completions: answered 404: " in said
        assert "the baseline failed" not in said
        assert "6 generations sent" in printed
        assert f"--collector {url}" in printed.splitlines()[-1]
        assert client.rollouts()[0].pairs == 3


def test_no_collector_is_told_before_the_first_request(
    rollout: dict[str, object], tmp_path: Path
) -> None:
    """A run that could deliver nothing does not begin."""
    code, _, error = run(tmp_path, rollout)
    assert code == 2
    assert "http://127.0.0.1:1/v1/traces: no collector answers" in error
    assert error.endswith("start one with `draftgate serve`, or name another with --collector")


def test_no_collector_is_told_before_anything_is_started(
    rollout: dict[str, object], tmp_path: Path
) -> None:
    """Neither a server of the routes nor a model, which may take minutes to load."""
    started = tmp_path / "started"
    server = {"engine": "openai", "model": "m", "url": "http://127.0.0.1:{port}/v1"}
    server |= {"start": f"touch {started}-{{port}}"}
    code, _, error = run(tmp_path, rollout | {"baseline": server, "candidate": server})
    assert (code, "no collector answers" in error) == (2, True)
    assert not list(tmp_path.glob("started*"))

    async def opened(_route: object) -> Engine:
        raise AssertionError("a model was loaded")

    opener = EngineOpener()
    opener.open = opened  # type: ignore[method-assign]
    with pytest.raises(TelemetryError, match="no collector answers"):
        replay(rollout_file.read(written(tmp_path, rollout)), opener=opener)


@pytest.mark.slow
def test_a_stranger_on_the_collectors_port_is_told(
    rollout: dict[str, object], tmp_path: Path
) -> None:
    """Whatever listens there and speaks no HTTP is no collector."""
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        stranger.settimeout(0.1)
        url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
        code, _, error = run(tmp_path, rollout, "--collector", url)
    assert (code, "no collector answers" in error) == (2, True)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("rollout", "", "rollout: String should have at least 1 character"),
        ("baseline", {"engine": "transformers"}, "baseline.model: required key is missing"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    rollout: dict[str, object], tmp_path: Path, key: str, value: object, message: str
) -> None:
    """The line names the file and the key; nothing was asked of any engine."""
    code, _, error = run(tmp_path, rollout | {key: value})
    assert code == 2
    assert message in error
    assert "Traceback" not in error


def test_an_absent_workload_is_one_line_and_exit_2(
    rollout: dict[str, object], tmp_path: Path, url: str
) -> None:
    """The line names the file."""
    given = rollout | {"workload": "absent.jsonl"}
    code, _, error = run(tmp_path, given, "--collector", url)
    assert code == 2
    assert "absent.jsonl: cannot be read: No such file or directory" in error
    assert "Traceback" not in error


def test_an_unusable_route_is_one_line_and_exit_2(
    rollout: dict[str, object], random_pair: dict[str, Path], tmp_path: Path, url: str
) -> None:
    """A model folder without weights and a draft of another tokenizer, each by its setting."""
    empty = tmp_path / "empty"
    empty.mkdir()
    bare = {"engine": "transformers", "model": str(empty)}
    code, _, error = run(tmp_path, rollout | {"baseline": bare}, "--collector", url)
    assert (code, "model:" in error, "holds no config.json" in error) == (2, True, True)
    other = {**bare, "model": str(random_pair["target"])}
    other["draft_model"] = str(random_pair["stranger"])
    code, _, error = run(tmp_path, rollout | {"candidate": other}, "--collector", url)
    assert (code, "has another tokenizer than" in error) == (2, True)
    with Client(url) as client:
        assert client.rollouts() == ()

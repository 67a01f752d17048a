"""`draftgate sweep`: real runs of several configurations, in process and by a command."""

import json
import sys
from pathlib import Path

import fake_openai
import psutil
import pytest
from rollout_files import invoke, written

from collector.client import Client


def sweep(folder: Path, document: dict[str, object], *options: str) -> tuple[int, str, str]:
    said = "the order was shipped on monday"
    prompts = ({"id": f"p{i}", "cohort": "c", "prompt": said} for i in range(3))
    path = written(folder, {"rollout": "s", "load": {"warmup": 0}} | document, prompts)
    result = invoke("sweep", path, *options)
    return result.exit_code, result.stdout, " ".join(result.stderr.split())


@pytest.mark.slow
def test_each_configuration_is_a_rollout_that_the_advisor_reads(
    random_pair: dict[str, Path], tmp_path: Path, url: str
) -> None:
    """Every k and concurrency is stored under its name; run again, nothing is asked again."""
    target = {"engine": "transformers", "model": str(random_pair["target"])}
    document: dict[str, object] = {
        "baseline": target,
        "candidate": target | {"draft_model": str(random_pair["draft"])},
        "sampling": {"max_tokens": 8},
    }
    options = ["--k", "0,2,3", "--concurrency", "1,2", "--json"]
    code, printed, error = sweep(tmp_path, document, *options, "--collector", url)
    assert code == 0, error
    rows = json.loads(printed)
    assert [(row["rollout"], row["k"], row["concurrency"]) for row in rows] == [
        (f"s-k{k}-c{c}", k, c) for k in (0, 2, 3) for c in (1, 2)
    ]
    assert {row["generations"] for row in rows} == {6}
    assert {row["acceptance_rate"] is None for row in rows if row["k"] == 0} == {True}
    assert all(0 <= row["acceptance_rate"] <= 1 for row in rows if row["k"])
    with Client(url) as client:
        registered = client.history("s-k2-c1").registered
        assert registered.policy_name == "default"
        for row in rows:
            for pair in client.pairs(row["rollout"]).pairs:
                spec = pair.candidate.speculation
                assert (spec.num_speculative_tokens if spec else 0) == row["k"]
    assert json.loads(sweep(tmp_path, document, *options, "--collector", url)[1]) == rows
    advised = invoke("advise", "s-k2-c1", "--with", "s-k3-c1", "--collector", url)
    assert advised.exit_code == 0


def test_loads_alone_are_swept_and_judged_together(tmp_path: Path, url: str) -> None:
    """Without a k the candidate is the file's; the last lines name what reads all loads."""
    with fake_openai.running() as server:
        route = {"engine": "openai", "model": "m", "url": f"{server}/v1"}
        document: dict[str, object] = {"baseline": route, "candidate": route}
        options = ["--concurrency", "1,2", "--collector", url]
        code, printed, error = sweep(tmp_path, document, *options)
        assert code == 0, error
        assert "Next: draftgate evaluate s-c1 s-c2 --collector" in printed
        assert "Next: draftgate gate s-c1 s-c2 --collector" in printed
        done = invoke("evaluate", "s-c1", "s-c2", "--collector", url)
        assert done.exit_code == 0, done.output
        assert [line.split(",")[0] for line in done.stdout.splitlines()] == [
            "s-c1: 6 answers",
            "s-c2: 6 answers",
        ]
        following = invoke("evaluate", "s-c1", "s-c2", "--follow", "--collector", url)
        assert following.exit_code == 2


GOODPUT = """version: 1
name: fast
goodput: {e2e_ms: 60000, share: 0.7}
prove:
  - {metric: goodput, stat: diff, min: -0.1, scope: pooled}
"""


def test_the_greatest_rate_that_holds_is_searched(tmp_path: Path, url: str) -> None:
    """Open loop, both arms at once; a candidate that fails holds none. Run again, nothing is asked.

    Three prompts of four repeats are twelve good requests, which prove a share of .7.
    """
    (tmp_path / "fast.yaml").write_text(GOODPUT)
    with fake_openai.running() as server:
        route = {"engine": "openai", "model": "m", "url": f"{server}/v1"}
        document: dict[str, object] = {
            "policy": "fast.yaml",
            "baseline": route,
            "candidate": route | {"model": "missing"},
            "load": {"warmup": 0, "repeats": 4},
        }
        options = ["--rates", "100,200", "--collector", url]
        code, printed, error = sweep(tmp_path, document, *options, "--json")
        assert code == 0, error
        found = json.loads(printed)
        assert [one["rate"] for one in found["rates"]] == [100, 200]
        assert found["greatest"] == {
            "baseline": {"holds": 200, "fails": None},
            "candidate": {"holds": None, "fails": 100},
        }
        assert {one["candidate"]["share"] for one in found["rates"]} == {0}
        with Client(url) as client:
            names = {one.rollout for one in client.rollouts()}
            assert names == {f"s-r{one['rate']:g}" for one in found["rates"]}
            pairs = client.pairs("s-r100").pairs
            assert len(pairs) == 12
            registered = client.history("s-r100").registered
            assert registered.policy_name == "fast"
        again = sweep(tmp_path, document, *options)
        with Client(url) as client:
            stored = [one for name in names for one in client.generations(name)]
        assert len(stored) == 48
    assert again[0] == 0, again[2]
    assert "baseline: the greatest rate that holds is 200 a second" in again[1]
    assert "candidate: no rate that was tried holds; 100 does not hold" in again[1]


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, ["--rates", "1,2"], "goodput.share: missing"),
        ({}, ["--rates", "2,1"], "the lowest and the highest rate"),
        ({}, ["--rates", "1,2", "--k", "2"], "stands without --k, --concurrency and --url"),
        ({}, ["--rates", "1,2", "--concurrency", "8"], "stands without --k, --concurrency"),
        ({"load": {"mode": "constant", "rate": 1}, "policy": "fast.yaml"}, ["--rates", "1,2"],
         "--rates draws arrivals by a Poisson process"),
    ],
)  # fmt: skip
def test_a_search_says_what_it_needs(
    tmp_path: Path, change: dict[str, object], options: list[str], words: str
) -> None:
    """Bounds and a share in the policy, two rates, and a load whose arrivals it may draw."""
    (tmp_path / "fast.yaml").write_text(GOODPUT)
    route = {"engine": "openai", "model": "m", "url": "http://127.0.0.1:9/v1"}
    document: dict[str, object] = {"baseline": route, "candidate": route}
    code, _, error = sweep(tmp_path, document | change, *options)
    assert code == 2
    assert words in " ".join(error.replace("│", " ").split())


def test_a_command_that_wants_a_k_needs_one(tmp_path: Path) -> None:
    """Nothing is started with a k that nobody gave."""
    route = {"engine": "openai", "model": "m", "url": "http://127.0.0.1:{port}/v1"}
    document: dict[str, object] = {
        "baseline": route | {"start": "serve {port}"},
        "candidate": route | {"start": "serve {port} {k}"},
    }
    code, _, error = sweep(tmp_path, document, "--concurrency", "1,2")
    assert code == 2
    assert "candidate: start holds {k}" in error


def test_servers_are_started_by_their_command_and_stopped(tmp_path: Path, url: str) -> None:
    """The baseline once, the candidate once for each k, each at a port of its own; none stays."""
    command = f"{sys.executable} {fake_openai.__file__} {{port}} {tmp_path}"
    route = {"engine": "openai", "model": "m", "url": "http://127.0.0.1:{port}/v1"}
    document: dict[str, object] = {
        "baseline": route | {"start": command},
        "candidate": route | {"start": f"{command} {{k}}"},
    }
    code, printed, error = sweep(tmp_path, document, "--k", "2,4", "--collector", url, "--json")
    assert code == 0, error
    assert [row["generations"] for row in json.loads(printed)] == [6, 6]
    commands = [p.info["cmdline"] or [] for p in psutil.process_iter(["cmdline"])]
    assert [command for command in commands if str(tmp_path) in command] == []


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "no-such-program {port} {k}",
            "rollout.yaml: candidate.start: 'no-such-program' cannot be run: No such file",
        ),
        (
            f"{sys.executable} -c \"raise SystemExit('CUDA out of memory {{k}} {{port}}')\"",
            "candidate.start: the server ended with exit code 1: CUDA out of memory 2",
        ),
        ("serve {port}", "nothing serves k = 2; give a command with {k}"),
    ],
)
def test_a_server_that_does_not_come_up_is_told(
    tmp_path: Path, command: str, message: str, url: str
) -> None:
    """The message holds what the server printed last, and where the rest is."""
    plain = {"engine": "transformers", "model": "m"}
    route = {
        "engine": "openai",
        "model": "m",
        "url": "http://127.0.0.1:{port}/v1",
        "start": command,
    }
    document = {"baseline": plain, "candidate": route}
    code, _, error = sweep(tmp_path, document, "--k", "2", "--collector", url)
    assert (code, message in error) == (2, True), error


@pytest.mark.parametrize(
    "options", [["--k", "2,x"], ["--k", "1", "--concurrency", "0"], ["--k", "1", "--url", "a"]]
)
def test_bad_numbers_are_told(tmp_path: Path, options: list[str]) -> None:
    """Exit code 2, with what was wanted."""
    plain = {"engine": "transformers", "model": "m"}
    code, _, error = sweep(tmp_path, {"baseline": plain, "candidate": plain}, *options)
    assert (code, "wanted" in error) == (2, True), error

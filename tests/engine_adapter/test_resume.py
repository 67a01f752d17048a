"""Runs that are cut short, by real signals to a real process, and go on."""

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import fake_openai
import pytest
import yaml
from rollout_files import begun, changed, run_command, written

from collector.client import Client

PROMPTS = 30
ANSWERED = 16
"""Requests that are answered before the run is cut short, two of them to warm up."""


@pytest.fixture
def experiment(tmp_path: Path, url: str) -> Iterator[Path]:
    """Serve both routes and a collector; yield the rollout file.

    Beyond some requests none is answered until there is a file that says so.
    """
    go_on = tmp_path / "go on"
    prompts = ({"id": f"p{i}", "cohort": "c", "prompt": str(i)} for i in range(PROMPTS))
    with fake_openai.running(fake_openai.held(go_on, ANSWERED)) as server:
        route = {"engine": "openai", "url": f"{server}/v1", "model": "m"}
        document = {
            "baseline": route,
            "candidate": route,
            "load": {"warmup": 1, "concurrency": 2, "sentinels": False},
            "collector": {"url": url},
        }
        yield written(tmp_path, document, prompts)
        go_on.touch()


def finish(path: Path, *options: str) -> dict[str, object]:
    """Run to the end and return the counts."""
    path.with_name("go on").touch()
    done = subprocess.run(run_command(path, *options), capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def stored(path: Path) -> Counter[tuple[str | None, str | None]]:
    """Return how often each prompt and arm is stored."""
    url = yaml.safe_load(path.read_text())["collector"]["url"]
    with Client(url) as client:
        return Counter((g.prompt_id, g.arm) for g in client.generations("r"))


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_stores_what_it_has_and_goes_on(
    experiment: Path, ended_by: signal.Signals
) -> None:
    """Exit code 130, every answer stored; run again, the rest is answered, and nothing twice."""
    with begun(experiment, stored=5) as process:
        os.kill(process.pid, ended_by)
        _, said = process.communicate()
        assert (process.returncode, "Traceback" in said) == (130, False), said
        assert f"draftgate run {experiment} goes on" in said
    before = stored(experiment)
    assert 5 <= sum(before.values()) < 2 * PROMPTS
    counts = finish(experiment)
    assert counts["resumed"] == sum(before.values())
    assert counts["generations"] == 2 * PROMPTS - sum(before.values())
    assert set(stored(experiment).values()) == {1}
    assert len(stored(experiment)) == 2 * PROMPTS


def test_a_killed_run_goes_on(experiment: Path) -> None:
    """After SIGKILL, and with a journal that lost its end, each generation is stored once."""
    with begun(experiment, stored=5) as process:
        process.kill()
        process.wait()
    journal = experiment.with_name("rollout.yaml.journal")
    journal.write_text(journal.read_text()[:-9])  # the crash cut a line
    finish(experiment)
    assert set(stored(experiment).values()) == {1}
    assert len(stored(experiment)) == 2 * PROMPTS
    counts = finish(experiment)
    assert (counts["generations"], counts["resumed"]) == (0, 2 * PROMPTS)


def test_a_changed_experiment_does_not_go_on(experiment: Path) -> None:
    """Under the same name another experiment is refused, until --fresh says so."""
    with begun(experiment, stored=5) as process:
        process.kill()
        process.wait()
    changed = experiment.read_text().replace("concurrency: 2", "concurrency: 8")
    experiment.write_text(changed)
    refused = subprocess.run(run_command(experiment), capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "was changed since 'r' was begun; give the experiment a new name" in " ".join(
        refused.stderr.split()
    )
    counts = finish(experiment, "--fresh")
    assert (counts["generations"], counts["resumed"]) == (2 * PROMPTS, 0)
    assert max(stored(experiment).values()) == 2


def test_a_killed_run_begins_own_histories_again(experiment: Path) -> None:
    """A session that was cut is asked from its start, in its own trace; whole ones are kept."""
    record = {"cohort": "c", "turns": ["one", "two", "three"]}
    lines = (json.dumps({"id": f"s{n}", **record}) for n in range(10))
    experiment.with_name("prompts.jsonl").write_text("\n".join(lines))
    document = yaml.safe_load(experiment.read_text())
    changed(experiment, load=document["load"] | {"history": "own"})
    with begun(experiment, stored=5) as process:
        process.kill()
        process.wait()
    finish(experiment)
    with Client(document["collector"]["url"]) as client:
        stored = list(client.generations("r"))
        roots = {
            s.trace_id for g in stored for s in client.trace(g.trace_id) if not s.parent_span_id
        }
        page = client.pairs("r", limit=100)
    ends = Counter((g.prompt_id, g.arm) for g in stored if g.prompt_id is not None)
    assert set(ends.values()) == {1}
    assert len(ends) == 20
    whole = Counter(g.trace_id for g in stored if g.own_history)
    of_pairs = {s.trace_id for p in page.pairs for s in (p.baseline, p.candidate) if s is not None}
    assert {whole[trace_id] for trace_id in of_pairs} == {3}
    assert of_pairs <= roots

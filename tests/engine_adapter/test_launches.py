"""Runs that start their servers anew: who answers what, how it is told, and how it goes on."""

import json
import signal
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import fake_openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollout_files import begun, invoke, written

from collector.client import Client
from collector.contract import Arm, Generation
from engine_adapter.errors import WorkloadError
from engine_adapter.run.launches import shares
from engine_adapter.run.load_shape import Load
from engine_adapter.workload import Prompt

COHORTS = st.lists(st.sampled_from(("chat", "code", "rag")), min_size=1, max_size=40)


def prompts(cohorts: list[str]) -> list[Prompt]:
    return [Prompt(id=f"p{i}", cohort=c, prompt="hello") for i, c in enumerate(cohorts)]


@given(cohorts=COHORTS, launches=st.integers(1, 6), repeats=st.integers(1, 3))
def test_launches_share_the_prompts(cohorts: list[str], launches: int, repeats: int) -> None:
    """Every turn once; a prompt's repeats in one launch; each launch has its share of a cohort."""
    load = Load(launches=launches, repeats=repeats, warmup=1)
    if len(cohorts) < launches:
        with pytest.raises(WorkloadError, match="wanted one for each launch"):
            shares(prompts(cohorts), load, seed=0)
        return
    plan = shares(prompts(cohorts), load, seed=0)
    turns = [(t.prompt.id, t.repeat, t.arm) for of in plan for t in of if not t.warmup]
    wanted = {(f"p{i}", r, arm) for i in range(len(cohorts)) for r in range(repeats) for arm in Arm}
    assert (len(turns), set(turns)) == (len(wanted), wanted)
    where = defaultdict(set)
    for number, of in enumerate(plan):
        assert sum(t.warmup for t in of) == 2
        for turn in of:
            where[turn.prompt.id].add(number)
    assert {len(found) for found in where.values()} == {1}
    for cohort in set(cohorts):
        sizes = [len({t.prompt.id for t in of if t.prompt.cohort == cohort}) for of in plan]
        assert max(sizes) - min(sizes) <= 1


def test_arms_answer_in_one_launch_after_the_other() -> None:
    """Within a launch the arms swap from pair to pair, as without launches."""
    plan = shares(prompts(["c"] * 8), Load(launches=2, warmup=0), seed=0)
    b, c = Arm.BASELINE, Arm.CANDIDATE
    assert [[t.arm for t in of] for of in plan] == [[b, c, c, b, b, c, c, b]] * 2


@pytest.fixture
def experiment() -> dict[str, object]:
    """Return a rollout file's content whose servers are started by their command."""
    route = {"engine": "openai", "model": "m", "url": "http://127.0.0.1:{port}/v1"}
    route |= {"start": f"{sys.executable} {fake_openai.__file__} {{port}}"}
    return {"baseline": route, "candidate": route, "load": {"warmup": 1, "launches": 3}}


def write(folder: Path, content: dict[str, object]) -> Path:
    prompts = ({"id": f"p{i}", "cohort": "c", "prompt": str(i)} for i in range(9))
    return written(folder, content, prompts)


def run(folder: Path, content: dict[str, object], *options: str) -> tuple[int, str, str]:
    result = invoke("run", write(folder, content), *options)
    return result.exit_code, result.stdout, " ".join(result.stderr.split())


def launched(url: str) -> dict[Arm | None, dict[str | None, set[str | None]]]:
    """Return by arm and launch which prompts were answered."""
    found: dict[Arm | None, dict[str | None, set[str | None]]] = defaultdict(
        lambda: defaultdict(set)
    )
    made: list[Generation] = []
    with Client(url) as client:
        made.extend(client.generations("r"))
    assert set(Counter((g.prompt_id, g.arm) for g in made).values()) == {1}
    for one in made:
        found[one.arm][one.launch].add(one.prompt_id)
    return found


def test_each_launch_is_a_server_of_its_own(
    experiment: dict[str, object], tmp_path: Path, url: str
) -> None:
    """Three launches an arm, each named; both sides of a pair in launches that ran side by side."""
    code, _, error = run(tmp_path, experiment, "--collector", url)
    assert code == 0, error
    found = launched(url)
    shares_of = {arm: sorted(map(sorted, of.values())) for arm, of in found.items()}  # type: ignore[type-var]
    assert shares_of[Arm.BASELINE] == shares_of[Arm.CANDIDATE]
    assert [len(share) for share in shares_of[Arm.BASELINE]] == [3, 3, 3]
    names = [name for of in found.values() for name in of]
    assert (len(set(names)), None in names) == (6, False)
    for name in ("baseline", "candidate", "baseline.2", "candidate.3"):
        assert "POST" not in (tmp_path / f"rollout.yaml.{name}.log").read_text()


@pytest.mark.slow
def test_a_stopped_run_starts_what_is_left(
    experiment: dict[str, Any], tmp_path: Path, url: str
) -> None:
    """Whole launches are not begun again; one that was cut short goes on in a new one."""
    go_on = tmp_path / "go-on"
    for arm in Arm:
        experiment[arm] |= {"start": f"{experiment[arm]['start']} {go_on}"}
    path = write(tmp_path, experiment | {"collector": {"url": url}})
    with begun(path, stored=1) as process:
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
    assert (process.returncode, "Traceback" in said) == (130, False), said
    before = {name for of in launched(url).values() for name in of}
    go_on.touch()
    code, printed, error = run(tmp_path, experiment, "--collector", url, "--json")
    assert code == 0, error
    counts = json.loads(printed)
    assert counts["resumed"] + counts["generations"] == 18
    after = {name for of in launched(url).values() for name in of}
    assert 6 <= len(after) <= 8
    assert before < after


def test_servers_started_by_hand_are_named(
    experiment: dict[str, object], tmp_path: Path, url: str
) -> None:
    """`--launch` stands on every span; a name that is none is refused."""
    with fake_openai.running() as server:
        route = {"engine": "openai", "model": "m", "url": f"{server}/v1"}
        by_hand = experiment | {"baseline": route, "candidate": route, "load": {"warmup": 0}}
        options = ("--collector", url, "--launch")
        assert run(tmp_path, by_hand, *options, "monday-1")[0] == 0
        found = launched(url)
        code, _, error = run(tmp_path, by_hand, *options, "mon day")
    assert {name for of in found.values() for name in of} == {"monday-1"}
    assert (code, "wanted up to 100 letters" in error) == (2, True)


def test_launches_need_a_command(experiment: dict[str, object], tmp_path: Path) -> None:
    """The error names the file, the key and what to do instead."""
    by_hand = {"engine": "openai", "model": "m", "url": "http://127.0.0.1:1/v1"}
    code, _, error = run(tmp_path, experiment | {"candidate": by_hand})
    assert code == 2
    assert "rollout.yaml: candidate.start: missing; load.launches is 3" in error
    assert "--launch" in error
    both = by_hand | {"start": "serve", "launch": "x"}
    code, _, error = run(tmp_path, experiment | {"candidate": both})
    assert (code, "`launch` names a server that you started" in error) == (2, True)


def test_launches_need_prompts(experiment: dict[str, object], tmp_path: Path, url: str) -> None:
    """A launch without a prompt is refused before anything is started."""
    many = experiment | {"load": {"launches": 10}}
    code, _, error = run(tmp_path, many, "--collector", url)
    assert (code, "load.launches: 10 launches, and 9 prompts" in error) == (2, True)
    assert not list(tmp_path.glob("*.baseline.log"))

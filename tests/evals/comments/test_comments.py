"""One comment with the verdict on a pull or merge request, whatever the forge does."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from forge_server import Forge, forge_running
from hypothesis import given
from hypothesis import strategies as st
from made_verdicts import made_verdict
from typer.testing import CliRunner, Result

from collector.contract import (
    CohortAnswer,
    Finding,
    MayShip,
    Outcome,
    Role,
    Verdict,
    to_document,
)
from draftgate.commands import app
from evals.comments import sticky
from evals.comments.body import MOST_CHARACTERS, comment, marker
from evals.comments.drawing import drawn
from evals.errors import CommentError

FINDING = Finding(
    metric="e2e",
    stat="p95_ratio",
    cohort="chat",
    role=Role.PROVE,
    outcome=Outcome.PASS,
    reason=None,
    bound="max",
    margin=1.05,
    unit="ratio",
    confidence=0.95,
    n=400,
    estimate=0.8,
    lower=0.75,
    upper=0.86,
    method="m/1",
    message="fine",
)
VERDICT = made_verdict(
    Outcome.PASS,
    findings=(FINDING,),
    cohorts=(CohortAnswer(cohort="chat", pairs=400, answer=MayShip.YES, because="all pass"),),
)

Put = Callable[..., Result]


@pytest.fixture
def forge() -> Iterator[Forge]:
    with forge_running() as running:
        yield running


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait next to nothing between attempts."""
    monkeypatch.setattr(sticky, "_WAIT_S", 0.0)


@pytest.fixture(params=["github", "gitlab"])
def put(request: pytest.FixtureRequest, forge: Forge, tmp_path: Path) -> Put:
    """Give a function that puts a verdict on a request of each forge."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    env = {
        "github": {
            "GITHUB_REPOSITORY": "acme/app",
            "GITHUB_TOKEN": "secret",
            "GITHUB_API_URL": forge.url,
            "GITHUB_EVENT_PATH": str(event),
        },
        "gitlab": {
            "CI_PROJECT_ID": "42",
            "CI_MERGE_REQUEST_IID": "7",
            "DRAFTGATE_GITLAB_TOKEN": "secret",
            "CI_API_V4_URL": forge.url,
        },
    }[request.param]

    def run(verdict: Verdict = VERDICT, *words: str) -> Result:
        file = tmp_path / "verdict.json"
        file.write_text(json.dumps(to_document(verdict)))
        return CliRunner().invoke(app, ["comment", request.param, str(file), *words], env=env)

    return run


def test_a_second_verdict_updates_the_first_comment(put: Put, forge: Forge) -> None:
    """There is one comment, with the newest verdict."""
    forge.write("LGTM")
    assert put().exit_code == 0
    assert put(replace(VERDICT, outcome=Outcome.FAIL)).exit_code == 0
    first, ours = forge.bodies()
    assert first == "LGTM"
    assert ours.startswith("<!-- draftgate-verdict verdict -->\n## ❌ fail")
    assert "chat: yes, all pass" in ours
    assert "●" in ours
    assert {asked.token for asked in forge.asked} <= {"secret", "Bearer secret"}


def test_it_is_found_on_a_later_page(put: Put, forge: Forge) -> None:
    """A busy request has more comments than a page."""
    for number in range(130):
        forge.write(f"remark {number}")
    ours = forge.write(f"{marker('verdict')}\nold", own=True)
    for number in range(130):
        forge.write(f"remark {number}")
    assert put().exit_code == 0
    assert len(forge.comments) == 261
    assert "✅ pass" in forge.comments[ours]["body"]


def test_others_comments_are_left_alone(put: Put, forge: Forge) -> None:
    """Somebody else's with the marker, and one that quotes ours, are not ours."""
    forge.write(f"{marker('verdict')}\nforged")
    forge.write(f"> {marker('verdict')}\nquoted", own=True)
    for _ in range(2):
        assert put().exit_code == 0
    assert [body.splitlines()[-1] for body in forge.bodies()[:2]] == ["forged", "quoted"]
    assert len(forge.comments) == 3


def test_two_verdicts_have_a_comment_each(put: Put, forge: Forge) -> None:
    """By their keys."""
    for key in ("a", "b", "a"):
        assert put(VERDICT, "--key", key).exit_code == 0
    assert len(forge.comments) == 2


def test_a_forbidden_token_is_one_line(put: Put, forge: Forge) -> None:
    """With what it lacks; nothing is tried again."""
    forge.fault = lambda _method, _number: 403
    found = put()
    assert found.exit_code == 2
    assert found.stderr.count("\n") == 1
    assert "403 Forbidden; the token needs" in found.stderr
    assert len(forge.asked) == 1


def test_a_limit_is_waited_for(put: Put, forge: Forge) -> None:
    """A 403 that says when to come again is no refusal."""
    forge.headers = {"Retry-After": "0"}
    forge.fault = lambda _method, number: 403 if number == 0 else None
    assert put().exit_code == 0
    assert len(forge.comments) == 1


@pytest.mark.parametrize("after", [False, True])
def test_a_gateways_fault_never_makes_a_second(put: Put, forge: Forge, after: bool) -> None:
    """Nor if the comment was added before the answer was lost."""
    forge.fault_after = after
    posts = iter([502, 502, 503])
    forge.fault = lambda method, _number: next(posts, None) if method == "POST" else None
    assert put().exit_code == 0
    assert len(forge.comments) == 1


def test_a_forge_that_is_down_is_one_line(put: Put, forge: Forge) -> None:
    """After some attempts."""
    forge.fault = lambda _method, _number: 502
    found = put()
    assert found.exit_code == 2
    assert "502 Bad Gateway" in found.stderr
    assert len(forge.asked) == 5


def test_of_two_jobs_at_once_one_comment_stays(put: Put, forge: Forge) -> None:
    """The later one takes its own back, and updates the earlier."""

    def another_job(method: str, _number: int) -> None:
        if method == "POST" and not forge.comments:
            forge.write(f"{marker('verdict')}\nthe other job's", own=True)

    forge.fault = another_job
    assert put().exit_code == 0
    (ours,) = forge.bodies()
    assert "✅ pass" in ours


def test_a_long_verdict_is_cut(put: Put, forge: Forge) -> None:
    """It is under what the forge takes, and says that there is more."""
    many = tuple(replace(FINDING, cohort=f"cohort-{n:05}", estimate=0.8) for n in range(3000))
    assert put(replace(VERDICT, findings=many)).exit_code == 0
    (ours,) = forge.bodies()
    assert len(ours) <= MOST_CHARACTERS + 100
    assert "more lines are in the job's artifact" in ours


def test_no_pull_request_is_one_line(tmp_path: Path, forge: Forge) -> None:
    """A push has none."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"ref": "refs/heads/main"}))
    file = tmp_path / "verdict.json"
    file.write_text(json.dumps(to_document(VERDICT)))
    words = ["comment", "github", str(file), "--repository", "acme/app", "--token", "secret"]
    found = CliRunner().invoke(app, [*words, "--event", str(event), "--api", forge.url])
    assert found.exit_code == 2
    assert "give --pull-request" in found.stderr


NASTY = "x --> <img src=x> @team #12 `a` |b| [l](http://evil.example) **b**\n## head"


def test_names_do_nothing_to_the_comment() -> None:
    """No tag, mention, reference to an issue, link, table cell or heading comes of a name."""
    finding = replace(FINDING, cohort=NASTY)
    cohort = CohortAnswer(cohort=NASTY, pairs=1, answer=MayShip.NO, because=NASTY)
    body = comment(replace(VERDICT, findings=(finding,), cohorts=(cohort,)), "verdict")
    before, picture, _ = body.split("```")
    outside = re.sub(r"\\.", "", before.removeprefix(marker("verdict")))
    for bad in ("<img", "@team", "#12", "](http", "://", "-->", "\n## head", "**b**"):
        assert bad not in outside
    assert picture.count("\n") == 2


@given(name=st.text())
def test_a_picture_is_one_line_a_cell(name: str) -> None:
    """Whatever the cohort's name, nothing ends its block."""
    body = comment(replace(VERDICT, findings=(replace(FINDING, cohort=name),)), "verdict")
    assert body.count("```") == 2


@given(
    st.floats(-1e6, 1e6),
    st.none() | st.floats(-1e6, 1e6),
    st.none() | st.floats(-1e6, 1e6),
    st.floats(-1e6, 1e6),
)
def test_a_picture_is_as_wide_whatever_the_numbers(estimate, lower, upper, margin) -> None:
    """Limits that do not exist are arrows."""
    cell = replace(FINDING, estimate=estimate, lower=lower, upper=upper, margin=margin)
    (line,) = drawn([cell])
    picture = line.removeprefix("chat e2e p95_ratio  ")[:33]
    assert picture.count("●") == 1
    assert ("←" in picture) <= (lower is None)


@pytest.mark.parametrize("key", ["", "a b", "-->", "x" * 65, "é"])
def test_a_key_cannot_end_the_marker(key: str) -> None:
    with pytest.raises(CommentError, match="--key"):
        marker(key)


@pytest.mark.parametrize("link", ["javascript:alert(1)", "https://x) [a](b", "x"])
def test_a_link_is_an_address(link: str) -> None:
    with pytest.raises(CommentError, match="--link"):
        comment(VERDICT, "verdict", link)

"""The pages, run by Streamlit's own test harness over a real store."""

import html
import re
from collections.abc import Callable, Iterator

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import source


@pytest.fixture(autouse=True)
def closed_clients() -> Iterator[None]:
    """Close what the pages opened."""
    yield
    source.client.clear()


def rollout_page() -> None:
    """Run the rollout's page; its source is what the harness executes."""
    from dashboard import rollout_page, source

    where = source.from_environment()
    rollout_page.show(source.client(where), where, None)


def shown(app: AppTest) -> str:
    """Return the text of a page, tags removed."""
    assert not app.exception
    bodies = [element.proto.body for element in app.get("html")]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", " ".join(bodies))).split())


def rollout(monkeypatch: pytest.MonkeyPatch, database: str, **query: str) -> AppTest:
    """Return a rollout's page, run once."""
    monkeypatch.delenv("DRAFTGATE_COLLECTOR_URL", raising=False)
    monkeypatch.setenv("DRAFTGATE_DATABASE_URL", database)
    app = AppTest.from_function(rollout_page, default_timeout=30)
    for name, value in query.items():
        app.query_params[name] = value
    return app.run()


def landing(monkeypatch: pytest.MonkeyPatch, **environment: str) -> AppTest:
    """Return the landing page, run once, with navigation and sidebar."""
    for name in ("DRAFTGATE_COLLECTOR_URL", "DRAFTGATE_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return AppTest.from_file("../../dashboard/app.py", default_timeout=30).run()


def test_the_landing_page_has_a_line_for_each_rollout(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """Each line leads with the verdict in words, and gives its evidence in short."""
    text = shown(landing(monkeypatch, DRAFTGATE_DATABASE_URL=seeded_database))
    line = (
        "support-k8-relaxed chat, code, rag, tool_call ✕ Fail "
        "Task completion fell by 0.15 in rag and code: faster, but worse answers. "
        "159 160 baseline, 159 candidate 46.2 % 2.85 tokens/step 0.5623× 0.5287× to 0.5971×"
    )
    assert line in text
    assert "✓ Pass" in text
    assert "? Inconclusive" in text
    assert "⚠ 2 contract violations" in text


def test_an_empty_collector_says_what_to_run(
    monkeypatch: pytest.MonkeyPatch, empty_database: str
) -> None:
    """Nothing stored is a state with a next step, on both pages."""
    both = [
        shown(landing(monkeypatch, DRAFTGATE_DATABASE_URL=empty_database)),
        shown(rollout(monkeypatch, empty_database, rollout="x")),
    ]
    for text in both:
        assert "No rollout yet" in text
        assert "draftgate demo draftgate run rollout.yaml" in text


def test_an_unreachable_collector_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collector that does not answer is a designed state with its URL, not a traceback."""
    app = landing(monkeypatch, DRAFTGATE_COLLECTOR_URL="http://127.0.0.1:9")
    text = shown(app)
    assert "The collector does not answer Tried: http://127.0.0.1:9" in text
    assert "draftgate serve" in text


def test_a_rollout_that_nobody_knows(monkeypatch: pytest.MonkeyPatch, seeded_database: str) -> None:
    """An unknown name lists the known ones."""
    text = shown(rollout(monkeypatch, seeded_database, rollout="<b>nope</b>"))
    assert text == (
        "No such rollout The collector holds no rollout named “<b>nope</b>”. It holds: "
        "support-eagle-k6 support-k4 support-k8-relaxed"
    )


def test_without_a_name_the_page_asks_which(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """The page without a query links to every rollout."""
    text = shown(rollout(monkeypatch, seeded_database))
    assert text == "Which rollout? support-eagle-k6 support-k4 support-k8-relaxed"


def test_a_cohort_narrows_every_section(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """Tables, charts and pairs show the cohort that the address names, and nothing else."""
    app = rollout(monkeypatch, seeded_database, rollout="support-k4", cohort="rag")
    bodies = [element.proto.body for element in app.get("html")]
    scopes = set()
    for body in bodies:
        if "<caption>" in body and "All findings" not in body:
            scopes |= set(re.findall(r"\b(all cohorts|rag|tool_call|code|chat)\b", body))
    assert scopes == {"rag"}
    findings = next(body for body in bodies if "All findings" in body)
    assert set(re.findall(r'data-column="Finding, [^"]*">(.*?) ·', findings)) == {"rag"}
    assert "40 pairs, regressions first: in 0 the candidate scored lower" in shown(app)
    assert app.selectbox[0].options[0] == "rag-000 · repeat 0 · rag"


def test_choosing_a_cohort_writes_it_into_the_address(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """A filtered page can be shared; all cohorts leave no trace."""
    app = rollout(monkeypatch, seeded_database, rollout="support-k4")
    control = app.get("button_group")[0]
    control.set_value(1).run()
    assert not app.exception
    assert app.query_params["cohort"] == "chat"


def test_the_worst_pairs_come_first(monkeypatch: pytest.MonkeyPatch, seeded_database: str) -> None:
    """Regressions lead the list, then sides that failed or are missing, then the rest."""
    app = rollout(monkeypatch, seeded_database, rollout="support-k8-relaxed")
    options = app.selectbox[0].options
    assert len(options) == 160
    assert options[0] == "chat-002 · repeat 0 · chat · ▼ task completion 1.000 → 0.250"
    assert (
        [option for option in options if "candidate" in option]
        == options[24:27]
        == [
            "chat-011 · repeat 0 · chat · candidate failed",
            "chat-011 · repeat 1 · chat · candidate failed",
            "code-019 · repeat 1 · code · candidate missing",
        ]
    )


def test_a_side_that_is_missing_says_so(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """The other side is shown alone."""
    app = rollout(monkeypatch, seeded_database, rollout="support-k4", prompt="code-019", repeat="1")
    text = shown(app)
    assert "The candidate never arrived." in text
    assert "def total(prices):" in text


def test_a_side_that_failed_names_its_error(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """A failed request is told apart from a missing one."""
    app = rollout(monkeypatch, seeded_database, rollout="support-k4", prompt="chat-011", repeat="0")
    assert "Error none timeout" in shown(app)


def test_a_pair_shows_both_sides(monkeypatch: pytest.MonkeyPatch, seeded_database: str) -> None:
    """Prompt, answers, scores and measurements stand together, each as it was recorded."""
    app = rollout(
        monkeypatch, seeded_database, rollout="support-k8-relaxed", prompt="rag-002", repeat="0"
    )
    text = shown(app)
    for part in (
        "Prompt system You are a desk. user Question 2 on rag?",
        "The answers share their first 15 characters, then part at ▶.",
        "<script>alert(1)</script>",
        "groundedness lexical 1 1.000 groundedness of an <i>answer</i> 0.250",
        "Draft tokens did not speculate 56 of 128 draft tokens accepted, in 32 verify steps",
    ):
        assert part in text
    assert [expander.label for expander in app.expander] == ["Context: 2 passages", "Reference"]


def test_contract_violations_are_named_on_the_pair(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """A span whose counts break the contract says which law."""
    app = rollout(monkeypatch, seeded_database, rollout="support-k4", prompt="chat-005", repeat="0")
    assert "Contract kept broken: counts:accepted_exceeds_draft" in shown(app)


def test_a_new_verdict_appears_on_the_next_run(
    monkeypatch: pytest.MonkeyPatch, undecided_database: str, decide: Callable[[], None]
) -> None:
    """Nothing of the verdict is cached: before it there is a hint, after it the banner."""
    app = rollout(monkeypatch, undecided_database, rollout="support-k4")
    assert "No verdict yet" in shown(app)
    assert "draftgate gate support-k4" in shown(app)
    decide()
    text = shown(app.run())
    assert "38 % faster end to end over 160 pairs, no metric worse than its margin." in text

"""The pages of pairs, traces, acceptance and verdicts, run by Streamlit's own test harness."""

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qsl

import pytest
from dashboard_seed.agent import TRACE
from dashboard_seed.generations import FATES
from dashboard_seed.verdicts import verdict
from made_verdicts import resting_on
from page_running import rollout, shown, table_rows, text_of
from streamlit.testing.v1 import AppTest

from collector.client import Client
from collector.store import Batch, Store
from dashboard import pairs_page, source

FAILED = "support-k8-relaxed"


@pytest.fixture(autouse=True)
def closed_clients() -> Iterator[None]:
    """Close what the pages opened."""
    yield
    source.client.clear()


def pairs(monkeypatch: pytest.MonkeyPatch, database: str, **query: str) -> AppTest:
    """Return the pairs' page of the failed rollout, run once."""
    return rollout(monkeypatch, database, module="pairs", rollout=FAILED, **query)


def listed(app: AppTest) -> list[str]:
    """Return the text of each row of the list."""
    return [text_of(row) for row in table_rows(app, "Pairs")]


def test_the_worst_pairs_come_first(monkeypatch: pytest.MonkeyPatch, seeded_database: str) -> None:
    """Regressions lead the list, a page at a time."""
    app = pairs(monkeypatch, seeded_database)
    rows = listed(app)
    assert len(rows) == 15
    assert rows[0] == "chat-002 0 chat ▼ task completion 1.000 → 0.250"
    assert "240 pairs; in 36, listed first, the candidate scored lower." in shown(app)
    assert "1–15 of 240" in shown(app)


@pytest.mark.parametrize(
    ("query", "counted"),
    [
        ({"show": "regressed"}, "36 pairs"),
        ({"show": "improved"}, "0 pairs"),
        ({"show": "trouble"}, "3 pairs"),
        ({"show": "regressed", "cohort": "rag"}, "6 pairs"),
        ({"show": "regressed", "by": "groundedness"}, "6 pairs"),
        ({"find": "JSON-00"}, "20 pairs"),
        ({"cohort": "summary", "find": "rag"}, "0 pairs"),
    ],
)
def test_each_filter_leaves_its_pairs(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str, query: dict[str, str], counted: str
) -> None:
    """Cohort, kind, metric and text narrow the list alone and together."""
    assert f"{counted}; in " in shown(pairs(monkeypatch, seeded_database, **query))


def test_a_row_links_to_its_pair_and_keeps_the_choices(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """Each link has the address's other choices; the chosen row alone is marked."""
    choices = {"show": "regressed", "cohort": "rag", "mark": "support"}
    app = pairs(monkeypatch, seeded_database, prompt="rag-009", repeat="1", **choices)
    rows = table_rows(app, "Pairs")
    links = [re.findall('href="pairs[?]([^"]*)"', row) for row in rows]
    given = [dict(parse_qsl(html.unescape(link))) for (link,) in links]
    numbers = [(one.pop("prompt"), one.pop("repeat")) for one in given]
    assert given == [{"rollout": FAILED} | choices] * 6
    marked = ['aria-current="true"' in row for row in rows]
    assert numbers[marked.index(True)] == ("rag-009", "1")
    assert marked.count(True) == 1
    assert len(set(numbers)) == 6


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch, seeded_database: str) -> str:
    """Have 240 pairs be too many to be read whole, and the collector's order be complete."""
    monkeypatch.setattr(pairs_page, "READ_MOST", 100)
    with Store.open(seeded_database) as store:
        while store.order_regressions(at_most=1000):
            pass
    return seeded_database


@pytest.mark.parametrize(
    ("query", "counted"),
    [
        ({}, "In 36 here, of 239 complete pairs in all cohorts, the candidate scored lower"),
        ({"cohort": "rag"}, "In 6 here,"),
        ({"by": "groundedness"}, "In 6 here,"),
        ({"by": "nothing"}, "In 36 here,"),
        ({"by": "groundedness", "cohort": "chat"}, "In no pair here, of 239 complete pairs"),
        ({"show": "all"}, "By prompt id; 239 complete pairs in all cohorts."),
    ],
)
def test_of_many_pairs_the_losses_come_first(
    monkeypatch: pytest.MonkeyPatch, many: str, query: dict[str, str], counted: str
) -> None:
    """The collector's own order is narrowed by cohort and metric; all pairs come by prompt id."""
    assert counted in shown(pairs(monkeypatch, many, **query))


def test_pages_of_many_pairs_are_turned(monkeypatch: pytest.MonkeyPatch, many: str) -> None:
    """Every loss is on one of three pages, each once, and the first one leads back."""
    app = pairs(monkeypatch, many)
    seen: list[str] = []
    for _ in range(3):
        seen += listed(app)
        following = next(button for button in app.button if button.label == "Next ▶")
        if not following.disabled:
            following.click().run()
    assert len(seen) == len(set(seen)) == 36
    assert following.disabled
    next(button for button in app.button if button.label == "First page").click().run()
    assert listed(app) == seen[:15]


def test_failed_and_missing_sides_are_named(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """Trouble is told apart."""
    app = pairs(monkeypatch, seeded_database, show="trouble")
    assert listed(app) == [
        "chat-011 0 chat candidate failed",
        "chat-011 1 chat candidate failed",
        "code-019 1 code candidate missing",
    ]


def test_a_page_that_the_address_names(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """The second page goes on where the first ends; one beyond the end is the last."""
    assert "16–30 of 240" in shown(pairs(monkeypatch, seeded_database, page="2"))


def test_a_pair_shows_both_sides(monkeypatch: pytest.MonkeyPatch, seeded_database: str) -> None:
    """Prompt, answers, scores and measurements stand together, each as it was recorded."""
    app = pairs(monkeypatch, seeded_database, prompt="rag-002", repeat="0")
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


def test_a_score_shows_who_posted_it(monkeypatch: pytest.MonkeyPatch, seeded_database: str) -> None:
    """The ids of the keys stand by the evaluator."""
    with Store.open(seeded_database) as store:
        with Client.local(seeded_database) as client:
            pair = client.pair(FAILED, "rag-002", 0)
        posted = [replace(score, key_id="a1b2c3") for score in pair.candidate_scores]
        store.write(Batch(scores=tuple(posted)))
    text = shown(pairs(monkeypatch, seeded_database, prompt="rag-002", repeat="0"))
    assert "lexical 1 · key a1b2c3 1.000" in text


def test_the_support_of_each_part_can_be_marked(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """Where a score has spans, supported and unsupported parts carry a sign."""
    app = pairs(monkeypatch, seeded_database, prompt="rag-002", repeat="0", mark="support")
    text = shown(app)
    assert "✓ Refunds take 5 days" in text
    assert "✕ <script>alert(1)" in text


def test_a_side_that_is_missing_says_so(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """The other side is shown alone."""
    text = shown(pairs(monkeypatch, seeded_database, prompt="code-019", repeat="1"))
    assert "The candidate never arrived." in text
    assert "def total(prices):" in text


def test_contract_violations_are_named_on_the_pair(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """A span whose counts break the contract says which law."""
    text = shown(pairs(monkeypatch, seeded_database, prompt="chat-005", repeat="0"))
    assert "Contract kept broken: counts:accepted_exceeds_draft" in text


def test_raw_spans_are_shown_on_demand(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """Both sides' spans stand there as JSON, text as text."""
    text = shown(pairs(monkeypatch, seeded_database, prompt="rag-002", repeat="0", spans="1"))
    assert '"draftgate.prompt.id": "rag-002"' in text


def test_an_agents_trace_is_a_tree_with_its_arms(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """Every step stands in its place, and its cohort's findings below."""
    text = shown(
        rollout(monkeypatch, seeded_database, module="traces", rollout=FAILED, trace=TRACE)
    )
    steps = text[text.index("Steps") :]
    assert re.findall(r"\b\d\. ([a-z]+)", steps) == [
        "agent",
        "plan",
        "chat",
        "retrieve",
        "tool",
        "chat",
    ]
    assert "3. chat desk-1b candidate chat 850.0 ms 61.00 ms 64 44 of 80 draft tokens" in steps
    assert "rag task completion ✕ Fail must not fail −15.0 pp" in steps


def test_acceptance_is_split_by_what_it_depends_on(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """Every plot says its n, and another fingerprint is called a drift."""
    text = shown(rollout(monkeypatch, seeded_database, module="acceptance", rollout=FAILED))
    assert "n = 238 generations of the candidate." in text
    assert "⚑ 2 fingerprints of target, draft, engine and flags" in text
    assert "Advice, as of “draftgate advise”" in text


def test_the_live_page_says_where_acceptance_fell(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """A row a cohort, those that fell first; without a reference, how far it is from one."""
    app = rollout(monkeypatch, seeded_database, module="live", rollout="support-eagle-k6")
    (rows,) = re.findall(
        "Acceptance of the candidate's drafts (.*?) Evidence as it grew", shown(app)
    )
    assert rows.split(" Compared requests ")[1] == (
        "rag ✕ fell by over 5 pp 71.2 % 48.3 % 1 240 "
        "chat no fall found 62.4 % 63.1 % 1 240 "
        "json 117 of 400 reference requests – – – "
        "no cohort 12 of 400 reference requests – – –"
    )


def test_two_verdicts_are_compared_cell_by_cell(
    monkeypatch: pytest.MonkeyPatch, undecided_database: str
) -> None:
    """What differs is listed with both values; a changed outcome comes first."""
    failed = replace(verdict(FATES[1]), rollout="support-k4", policy_hash="0" * 64)
    with Client.local(undecided_database) as client:
        client.post_verdict(resting_on(client, verdict(FATES[0])))
        client.post_verdict(resting_on(client, failed))
    text = shown(rollout(monkeypatch, undecided_database, module="verdicts", rollout="support-k4"))
    assert "The verdict went from ✓ Pass to ✕ Fail." in text
    assert "The policies differ in margins or cells" in text
    changes = text[text.index("differing findings") :]
    assert changes.index("✓ Pass → ✕ Fail") < changes.index("end to end geometric mean")

"""The pages, run by Streamlit's own test harness over a real store."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from dashboard_seed.generations import FATES, generation
from dashboard_seed.verdicts import verdict
from made_verdicts import resting_on
from otlp_bodies import export_request
from page_running import landing, rollout, shown

from collector.client import Client
from collector.contract import (
    Arm,
    CohortAnswer,
    MayShip,
    ScopeLooks,
    SentinelAnswers,
    SentinelChange,
    encode,
)
from dashboard import reading, source
from dashboard.sections import looks as looks_section
from dashboard.sections import sentinel_answers, static_report


@pytest.fixture(autouse=True)
def closed_clients() -> Iterator[None]:
    """Close what the pages opened."""
    yield
    source.client.clear()


def test_the_landing_page_has_a_line_for_each_rollout(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """Each line leads with the verdict in words, and gives its evidence in short."""
    text = shown(landing(monkeypatch, DRAFTGATE_DATABASE_URL=seeded_database))
    line = (
        "support-k8-relaxed chat, code, json, rag, summary, tool_call ✕ Fail "
        "Task completion fell by 15.0 pp in rag and code: faster, but worse answers. "
        "239 241 baseline, 240 candidate rag: fail task completion −15.0 pp "
        "44 % faster 0.56×, 0.53× to 0.60× "
        "−0.0031 groundedness, −0.0123 to +0.0061 46.2 % 2.85 tokens/step never set"
    )
    assert line in text
    assert "✓ Pass" in text
    assert "? Inconclusive" in text
    assert "⚠ 2 contract violations" in text


def test_rollouts_are_searched_filtered_and_ordered(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """Part of a name, or of a cohort's, leaves the rollouts that have it; so does a verdict."""
    app = landing(monkeypatch, DRAFTGATE_DATABASE_URL=seeded_database)
    page = shown(app.text_input[0].set_value("EAGLE").run())
    assert "support-eagle-k6 chat" in page
    assert "support-k4 chat" not in page
    assert "support-k4 chat" in shown(app.text_input[0].set_value("summ").run())
    assert "None of 3 rollouts matches." in shown(app.text_input[0].set_value("none such").run())
    app.text_input[0].set_value("")
    assert "Most pairs first" in shown(app.segmented_control[1].set_value(1).run())
    failed = shown(app.segmented_control[0].set_value(2).run())
    assert "support-k8-relaxed chat" in failed
    assert "support-k4 chat" not in failed


def test_a_cohorts_answer_is_said_once(
    monkeypatch: pytest.MonkeyPatch, undecided_database: str
) -> None:
    """A card says yes or no; a line says why an answer is unknown, or differs from its card."""
    answers = (
        CohortAnswer(cohort="rag", pairs=40, answer=MayShip.NO, because="beyond the margin"),
        CohortAnswer(cohort="chat", pairs=40, answer=MayShip.UNKNOWN, because="too few pairs"),
        CohortAnswer(cohort="other", pairs=9, answer=MayShip.UNKNOWN, because="not judged"),
    )
    with Client.local(undecided_database) as client:
        failed = replace(verdict(FATES[1]), rollout="support-k4", cohorts=answers)
        client.post_verdict(resting_on(client, failed))
    text = shown(rollout(monkeypatch, undecided_database, rollout="support-k4"))
    assert "? chat: unknown, too few pairs ? other: unknown, not judged" in text
    assert "✕ rag 1 of" in text
    assert "rag: no" not in text


def test_traces_are_filtered(monkeypatch: pytest.MonkeyPatch, seeded_database: str) -> None:
    """Arm, failure, an attribute and a duration leave the traces that have such a generation."""

    def listed(**query: str) -> list[str]:
        asked = {"rollout": "support-k8-relaxed"} | query
        app = rollout(monkeypatch, seeded_database, module="traces", **asked)
        assert not app.exception
        return list(app.radio[0].options) if app.radio else []

    both, baseline, failed = listed(), listed(arm="baseline"), listed(show="Failed")
    assert any("candidate" in line for line in both)
    assert baseline
    assert not any("candidate" in line for line in baseline)
    assert len(failed) < len(both)
    assert listed(order="Slowest answer") != both
    german = listed(attribute="draftgate.dim.language=DE")
    assert german
    assert german != both
    assert listed(attribute="no such value") == []
    assert len(listed(took="4200")) < len(both)
    assert listed(took="99999") == []


def test_slow_requests_are_compared_with_the_rest(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """The page says of how many requests it speaks, and names what differs, and what does not."""

    def page(**query: str) -> str:
        asked = {"rollout": "support-k8-relaxed", "slow": "1"} | query
        return shown(rollout(monkeypatch, seeded_database, module="traces", **asked))

    def counted(text: str) -> int:
        return int(re.findall("the newest ([0-9]+) requests", text)[0])

    text = page()
    assert (
        "Of the newest 481 requests of the chosen cohort, arm and outcome, 50 are slow (End to end "
        "≥ 3 406.7 ms) and 431 are the rest. How slow requests differ"
    ) in text
    assert "baseline arm 50 (100.0 %) 191 (44.3 %) +55.7 pp +38.0 pp to +63.1 pp" in text
    assert "No difference found: dimension language, start, prompt tokens" in text
    assert "Too few requests to compare: service, error, fallback" in text
    assert "15.03 ms time in the queue 72 (100.0 %) 24 (5.9 %)" in page(by="ttft_s")
    chosen = page(arm="candidate", **{"from": "1500"})
    assert "240 requests of the chosen cohort, arm and outcome, 116 are slow (End to" in chosen
    assert "Enter a number of milliseconds above 0" in page(**{"from": "fast"})
    assert "0 are slow (End to end ≥ 9" in page(**{"from": "9000"})
    assert "2 are slow" in page(show="Failed", **{"from": "1"})
    german = page(attribute="draftgate.dim.language=DE", took="1500")
    assert "of the chosen cohort, arm, outcome, dimension and least duration, " in german
    assert "This comparison ignores" not in german
    assert "language" not in german.partition("No difference found")[2]
    assert counted(german) < counted(page(attribute="draftgate.dim.language=DE")) < 481
    assert counted(german) < counted(page(took="1500")) < 481
    other = page(attribute="draftgate.route=")
    assert "This comparison ignores “Attribute contains”" in other
    assert counted(other) == 481
    assert "How slow requests differ" not in page(slow="")


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
    assert "The collector does not answer Collector: http://127.0.0.1:9" in text
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


def test_the_landing_page_says_who_set_a_switch(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """A switch's newest state stands in the rollout's line."""
    text = shown(landing(monkeypatch, DRAFTGATE_DATABASE_URL=seeded_database))
    assert "support-eagle-k6" in text
    assert "2.85 tokens/step on local" in text


def test_the_verdict_names_what_decided(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """The banner says which cell of which cohort, and how many pairs it lacks."""
    undecided = shown(rollout(monkeypatch, seeded_database, rollout="support-eagle-k6"))
    assert "? Inconclusive TTFT p99 over all cohorts needs 59 more pairs" in undecided
    failed = shown(rollout(monkeypatch, seeded_database, rollout="support-k8-relaxed"))
    assert "Task completion in rag: −15.0 pp, beyond the margin of −2.0 pp" in failed
    assert "✕ rag 1 of 2 cells beyond margin" in failed


@pytest.mark.parametrize(
    ("section", "count"),
    [
        *(("findings", 1), ("latency", 1), ("acceptance", 1), ("quality", 1)),
        *(("capacity", 1), ("cost", 1), ("traffic", 2)),
    ],
)
def test_a_cohort_narrows_every_section(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str, section: str, count: int
) -> None:
    """Tables show the cohort that the address names, and nothing else."""
    asked = {"rollout": "support-k4", "cohort": "rag", "section": section}
    app = rollout(monkeypatch, seeded_database, **asked)
    assert not app.exception
    bodies = [element.proto.body for element in app.get("html")]
    tables = [body for body in bodies if "<caption>" in body]
    scopes = set()
    for body in tables:
        scopes |= set(re.findall(r">(all cohorts|rag|tool_call|code|chat|json|summary)\b", body))
    assert scopes == {"rag"}
    assert len(tables) == count


def test_answers_cost_money_where_routes_have_prices(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """Both arms, their difference with limits, and what rejected drafts took; else what to give."""
    text = shown(rollout(monkeypatch, seeded_database, rollout="support-k4", section="cost"))
    title = "Cost in USD per million output tokens, with 3.84 requests in flight per route"
    assert f"{title} (limits one-sided, 95% each)" in text
    assert (
        "all cohorts 1.23 0.765 \u22120.469 \u22120.512 … \u22120.432 0.0912 0.0412 … 0.139 239"
        in text
    )
    assert re.search(r"rag 1.23 0.765 \u22120.469 – 0.0912 – \d+", text)
    assert re.search(r"(\w+, ){5}\w+: limits need 100 prompts", text)
    none = shown(
        rollout(monkeypatch, seeded_database, rollout="support-k8-relaxed", section="cost")
    )
    assert "Add “prices” to the rollout file" in none
    assert "per million output tokens" not in none


def test_capacity_is_shown_where_a_policy_bounds_goodput(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """Good requests of both arms, their share unless one is unknown, and rates."""
    text = shown(rollout(monkeypatch, seeded_database, rollout="support-k4", section="capacity"))
    assert "Capacity: requests with TTFT ≤ 500 ms and TPOT ≤ 50 ms" in text
    assert "all cohorts baseline 240 228 95.0% 1.23 123 3.84" in text
    assert "all cohorts candidate 240 237 98.8% 1.31 191 3.84" in text
    assert re.search(r"rag baseline \d+ \d+ \(\+1 unknown\) – 1.23", text)
    none = shown(
        rollout(monkeypatch, seeded_database, rollout="support-k8-relaxed", section="capacity")
    )
    assert "Capacity" not in none


def test_drafts_are_shown_by_load(monkeypatch: pytest.MonkeyPatch, seeded_database: str) -> None:
    """How many answers drafted nothing, and the drafts a step of the others."""
    text = shown(rollout(monkeypatch, seeded_database, rollout="support-k4", section="acceptance"))
    assert "Drafts by requests in flight" in text
    assert "1 120 0% 4.00 8–15 120 75% 2.25" in text


def test_choosing_a_cohort_writes_it_into_the_address(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """A filtered page can be shared; all cohorts leave no trace."""
    app = rollout(monkeypatch, seeded_database, rollout="support-k4")
    control = app.get("button_group")[0]
    control.set_value(1).run()
    assert not app.exception
    assert app.query_params["cohort"] == "chat"
    app.get("button_group")[0].set_value(0).run()
    assert "cohort" not in app.query_params


def test_a_window_and_a_dimension_narrow_what_is_counted(
    monkeypatch: pytest.MonkeyPatch, seeded_database: str
) -> None:
    """A dimension leaves a part of the generations to the curves; n says how many."""
    whole = shown(
        rollout(monkeypatch, seeded_database, rollout="support-k4", section="distributions")
    )
    part = shown(
        rollout(
            monkeypatch,
            seeded_database,
            rollout="support-k4",
            section="distributions",
            **{"dim.language": "de"},
        )
    )
    assert "baseline n = 240, candidate n = 237" in whole
    assert "baseline n = 60, candidate n = 60" in part


def test_feedback_is_counted_by_arm(monkeypatch: pytest.MonkeyPatch, seeded_database: str) -> None:
    """Thumbs stand beside the generations that were looked at."""
    text = shown(
        rollout(monkeypatch, seeded_database, rollout="support-k4", section="traffic", cohort="rag")
    )
    assert "rag baseline 40 2 (5.0 %) 0 (0.0 %)" in text
    assert "rag candidate 40 0 (0.0 %) 2 (5.0 %)" in text


def test_one_arm_alone_is_a_state(monkeypatch: pytest.MonkeyPatch, one_arm_database: str) -> None:
    """Without a counterpart every page names the missing arm, and none breaks."""
    for page in ("rollout", "pairs"):
        text = shown(rollout(monkeypatch, one_arm_database, module=page, rollout="support-k4"))
        assert "Only the baseline has answered" in text
    for page in ("acceptance", "traces", "live", "verdicts"):
        assert shown(rollout(monkeypatch, one_arm_database, module=page, rollout="support-k4"))
    landed = shown(landing(monkeypatch, DRAFTGATE_DATABASE_URL=one_arm_database))
    assert "one arm only" in landed


def test_a_run_until_it_was_decided_shows_its_looks(
    monkeypatch: pytest.MonkeyPatch, undecided_database: str
) -> None:
    """Each scope has a line with the look that decided it, on the page and in its report."""
    looks = (
        ScopeLooks(cohort=None, pairs=(120, 240, 360), taken=2),
        ScopeLooks(cohort="chat", pairs=(60, 120, 180), taken=3, decided_at=2),
        ScopeLooks(cohort="code", pairs=(), taken=0),
    )
    stored = replace(verdict(FATES[0]), looks=looks)
    with Client.local(undecided_database) as client:
        posted = client.post_verdict(resting_on(client, stored))
    text = shown(rollout(monkeypatch, undecided_database, rollout="support-k4"))
    wanted = "All cohorts undecided 2 3 240 360 chat decided at look 2 3 3 180 180"
    assert f"{looks_section.TITLE} Scope Decision Reached look" in text
    assert f"{wanted} code guards alone 0 0 0 –" in text
    assert looks_section.TITLE in static_report.page(posted, None)
    assert looks_section.TITLE not in static_report.page(
        replace(posted, verdict=replace(posted.verdict, looks=())), None
    )


def test_answers_to_sentinels_are_shown(
    monkeypatch: pytest.MonkeyPatch, undecided_database: str
) -> None:
    """Each arm's changed answers, with the first request, on the page and in its report."""
    change = SentinelChange(
        trace_id="ab" * 16,
        start_unix_ns=95 * 10**9,
        number=10,
        after="rag-2",
        requests=10,
        prompt_id="p94",
    )
    asked = SentinelAnswers(
        sentinel="rag-1", arm=Arm.BASELINE, launch="l1", answers=20, changed=0, depends=False
    )
    poisoned = replace(asked, arm=Arm.CANDIDATE, changed=9, depends=True, first_change=change)
    stored = replace(verdict(FATES[0]), sentinels=(asked, poisoned))
    with Client.local(undecided_database) as client:
        posted = client.post_verdict(resting_on(client, stored))
    text = shown(rollout(monkeypatch, undecided_database, rollout="support-k4", section="quality"))
    wanted = (
        f"rag-1 candidate l1 20 9 at 00:01:35 UTC (trace {'ab' * 16}, answer 10), directly after "
        "`rag-2`, which shares its prefix"
    )
    assert wanted in text
    assert sentinel_answers.TITLE in static_report.page(posted, None)


def test_a_new_verdict_appears_on_the_next_run(
    monkeypatch: pytest.MonkeyPatch, undecided_database: str, decide: Callable[[], None]
) -> None:
    """Nothing of the verdict is cached: before it there is a hint, after it the banner."""
    app = rollout(monkeypatch, undecided_database, rollout="support-k4")
    assert "No verdict yet" in shown(app)
    assert "draftgate gate support-k4" in shown(app)
    decide()
    text = shown(app.run())
    assert "38 % faster end to end over 240 pairs, no metric worse than its margin." in text


def test_verdicts_are_counted_by_serving(
    monkeypatch: pytest.MonkeyPatch, undecided_database: str, decide: Callable[[], None]
) -> None:
    """The page names what was judged, under which policy, and how often with which outcome."""
    decide()
    app = rollout(monkeypatch, undecided_database, module="verdicts", rollout="support-k4")
    text = shown(app)
    assert "With earlier rollouts of the same candidate, newest first" in text
    assert re.search(r"draft_model desk-100m k=4, fingerprint \w+ default .* 1 0 0 ✓ Pass", text)


def test_two_arms_without_drafts_are_marked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A rollout in which nobody speculates is called A/A, and an old one stale."""
    url = f"sqlite:///{tmp_path}/aa.db"
    sides = [generation(FATES[0], arm, "chat", 1, 0) for arm in Arm]
    day = 3 * 86_400 * 10**9
    old = [
        replace(
            side,
            speculation=None,
            start_unix_ns=side.start_unix_ns - day,
            end_unix_ns=side.end_unix_ns - day,
        )
        for side in sides
    ]
    with Client.local(url) as client:
        client.post_traces(export_request([encode(side) for side in old]).SerializeToString())
    text = shown(landing(monkeypatch, DRAFTGATE_DATABASE_URL=url))
    assert "A/A: no arm speculates stale: no data for a day" in text


def test_a_large_rollout_is_not_read_anew_for_each_span() -> None:
    """A small one is, as soon as anything arrived; of a large one a tenth of the sample must be."""
    small = reading.Stamp("here", "k4", reading.SAMPLE, 7)
    assert reading.settled(small) == small
    large = small._replace(generations=10 * reading.SAMPLE)
    later = large._replace(generations=large.generations + 100, last_end_unix_ns=8)
    assert reading.settled(later) == reading.settled(large)
    much_later = large._replace(generations=large.generations + reading.SAMPLE // 10)
    assert reading.settled(much_later) != reading.settled(large)

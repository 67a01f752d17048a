"""Evidence that a watch must not pass: missing cohorts, waiting scores, unrecorded drafts."""

from dataclasses import replace

import pytest

from collector.contract import Arm, Content, Outcome, Reason
from evals import policy as policies
from evals.watch.screen import line
from evals.watch.verdict import to_verdict
from evals.watch.watcher import Watcher

RULES = """
version: 1
name: live
design: mirror
live: {looks: [100, 200, 400], spend: [0.01, 0.01, 0.03]}
prove:
  - {metric: task_completion, stat: diff, min: -0.10, scope: pooled}
  - {metric: failures, stat: diff, max: 0.10, scope: cohort}
"""
OPTIONAL = "validity: {speculation: optional}"


@pytest.fixture
def rules() -> policies.Policy:
    """Give a policy with a rule for the pool and one for every cohort."""
    return policies.parse(RULES, "live.yaml")


def test_rules_by_cohort_without_cohorts_do_not_pass(client, traffic, rules) -> None:
    """Nothing is proved by cohort if no request names one, and the watch says so."""
    sides = [traffic.side(arm, p, cohort=None) for p in range(300) for arm in Arm]
    traffic.post(sides)
    client.post_scores(traffic.scored(sides))
    watch = Watcher(client, "k4", rules).catch_up().watch
    assert watch.outcome is Outcome.INCONCLUSIVE
    words = "share of failed or missing answers, by cohort (no request names a cohort)"
    assert words in watch.reasons
    assert words in to_verdict(watch, rules).not_judged
    assert "1 of 2 required cells are proved" in watch.summary


def test_a_stray_cohort_holds_nothing_up(client, traffic, rules) -> None:
    """Three pairs of a cohort are set aside, and named."""
    traffic.pairs(range(300))
    strays = [traffic.side(arm, 1000 + p, cohort="probe") for p in range(3) for arm in Arm]
    traffic.post(strays)
    client.post_scores(traffic.scored(strays))
    watch = Watcher(client, "k4", rules).catch_up().watch
    assert watch.outcome is Outcome.PASS, watch.reasons
    assert "Set aside, and judged in the pool alone: probe (3 pairs)." in watch.summary
    assert [one.cohort for one in to_verdict(watch, rules).set_aside] == ["probe"]


def test_a_cohort_of_the_workload_that_never_came_is_open(client, traffic, rules) -> None:
    """A run said that it has a cohort of which nothing arrived."""
    planned = '{"chat": 150, "rag": 150, "code": 20}'
    sides = [traffic.side(arm, p, workload=planned) for p in range(300) for arm in Arm]
    traffic.post(sides)
    client.post_scores(traffic.scored(sides))
    watch = Watcher(client, "k4", rules).catch_up().watch
    assert watch.outcome is Outcome.INCONCLUSIVE
    assert {c.cohort for c in watch.cells if c.reason is Reason.TOO_FEW} == {"code"}


def test_a_cohort_whose_answers_carry_a_reference_and_no_score_is_open(client, traffic) -> None:
    """What its pairs carry makes the cell, not whether a score exists."""
    text = RULES.replace(
        "failures, stat: diff, max: 0.10", "task_completion, stat: diff, min: -0.2"
    )
    rules = policies.parse(text, "live.yaml")
    content = Content(reference="right")
    sides = [traffic.side(arm, p, content=content) for p in range(600) for arm in Arm]
    traffic.post(sides)
    client.post_scores(traffic.scored(s for s in sides if s.cohort == "chat"))
    watch = Watcher(client, "k4", rules).catch_up().watch
    assert watch.outcome is Outcome.INCONCLUSIVE
    assert [c.outcome for c in watch.cells if c.cohort == "rag"] == [Outcome.INCONCLUSIVE]
    assert watch.cells[0].reason is Reason.MISSING


@pytest.mark.parametrize(("late", "outcome"), [(4, Outcome.PASS), (45, Outcome.INCONCLUSIVE)])
def test_scores_that_wait_count_as_lost(client, traffic, rules, late, outcome) -> None:
    """A pass survives the pairs that wait only if it does at their worst, limits included."""
    sides = [traffic.side(arm, p) for p in range(600) for arm in Arm]
    traffic.post(sides)
    waits = {s.span_id for s in sides[-2 * late :] if s.arm is Arm.CANDIDATE}
    client.post_scores(traffic.scored(s for s in sides if s.span_id not in waits))
    watch = Watcher(client, "k4", rules).catch_up().watch
    assert watch.cells[0].estimate == 0.0
    assert watch.outcome is outcome
    if outcome is Outcome.INCONCLUSIVE:
        assert watch.cells[0].reason is Reason.MISSING


@pytest.mark.parametrize(("sections", "outcome"), [("", "inconclusive"), (OPTIONAL, "pass")])
def test_a_candidate_that_shows_no_draft_does_not_pass(client, traffic, sections, outcome) -> None:
    """Unless the policy says that it need not, counts must show that it drafted."""
    traffic.pairs(range(300), candidate={"speculation": None})
    watch = Watcher(client, "k4", policies.parse(RULES + sections, "live.yaml")).catch_up().watch
    assert watch.outcome == outcome
    if outcome == "inconclusive":
        assert {c.reason for c in watch.cells} == {Reason.TREATMENT}


def test_a_line_names_the_stretch(client, traffic, rules) -> None:
    """Whoever reads the log sees against how long a stretch of harm it holds."""
    traffic.pairs(range(50))
    longer = replace(rules, dependence=replace(rules.dependence, stretch=25))
    seen = Watcher(client, "k4", longer).catch_up()
    said = line(seen.watch, longer, seen.switch)
    assert said.endswith("valid if harm lasts no longer than 25 requests (`dependence.stretch`)")

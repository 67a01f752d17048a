"""From stored spans to advice: whole rollouts through a real database, and the command."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from made_verdicts import made_verdict
from typer.testing import CliRunner

from collector.client import Client
from collector.contract import Arm, CohortAnswer, InputBands, MayShip, Outcome, Speculation
from draftgate.commands import app
from evals import advice
from evals.advice.observed import e2e_ratios, speedup
from evals.advice.records import Action
from evals.advice.report import prediction_note

BASE_S, TTFT_S, TOKENS = 0.010, 0.05, 61
ANSWERS_POLICY = """
version: 1
name: answers
cohorts: {min_n: 30}
prove: [{metric: failures, stat: diff, max: 0.2, scope: cohort}]
"""


@pytest.fixture
def rollout(generation_of):
    """Give a function that makes the generations of one cohort: steps drawn, times by the model."""

    def made(cohort="chat", *, name="k4", k=4, a=0.8, verify_s=0.011, draft_s=0.001, prompts=40,
             first=0, **fields):  # fmt: skip
        generator = np.random.default_rng(first + k)
        for number in range(first, first + prompts):
            accepted = np.cumprod(generator.random((20, k)) < a, axis=1).sum(axis=1)
            tokens = 1 + 20 + int(accepted.sum())
            jitter = 1 + generator.normal(0, 0.01)
            for arm in Arm:
                fast = arm is Arm.CANDIDATE
                decode_s = 20 * (verify_s + k * draft_s) if fast else (tokens - 1) * BASE_S * jitter
                ttft_s = TTFT_S + number * 1e-6
                plain = generation_of(2 * number + fast + 1 + 10_000 * k, "an answer")
                yield replace(
                    plain,
                    end_unix_ns=plain.start_unix_ns + round((ttft_s + decode_s) * 1e9),
                    rollout=name,
                    arm=arm,
                    cohort=cohort,
                    prompt_id=f"p{number:04}",
                    repeat=0,
                    ttft_s=ttft_s,
                    tpot_s=decode_s / (tokens - 1),
                    output_tokens=tokens,
                    speculation=_speculation(accepted, k) if fast else None,
                    **fields,
                )

    return made


def _speculation(accepted: np.ndarray, k: int) -> Speculation:
    return Speculation(
        method="draft_model",
        num_speculative_tokens=k,
        steps=len(accepted),
        draft_tokens=k * len(accepted),
        accepted_tokens=int(accepted.sum()),
        draft_tokens_per_pos=(len(accepted),) * k,
        accepted_tokens_per_pos=tuple(int((accepted > j).sum()) for j in range(k)),
    )


def without_lists(generation):
    """Return the generation with a histogram in place of the counts by position."""
    spec = generation.speculation
    if spec is None:
        return generation
    reached = (spec.steps, *spec.accepted_tokens_per_pos, 0)
    histogram = tuple(reached[j] - reached[j + 1] for j in range(len(reached) - 1))
    return replace(
        generation,
        speculation=replace(
            spec,
            draft_tokens_per_pos=None,
            accepted_tokens_per_pos=None,
            acceptance_histogram=histogram,
        ),
    )


PASSED = object()


@pytest.fixture
def stored(client, otlp_of):
    """Give a function that stores generations and returns the advice on k4."""

    def store(*groups, others=(), verdict=PASSED):
        for group in groups:
            client.post_traces(otlp_of(list(group)), content_type="application/json")
        beside = {name: advice.load(client, name) for name in others}
        said = verdict_of() if verdict is PASSED else verdict
        return advice.advise("k4", advice.load(client, "k4"), beside, verdict=said)

    return store


def verdict_of(outcome=Outcome.PASS, **answers):
    """Return a verdict that says so of the release and of each cohort."""
    answers = answers or dict.fromkeys(("chat", "json"), MayShip.YES)
    cohorts = tuple(
        CohortAnswer(cohort=cohort, pairs=40, answer=answer, because="answers got worse")
        for cohort, answer in answers.items()
    )
    return made_verdict(outcome, cohorts=cohorts)


def scope_of(found, cohort, load=None):
    return next(s for s in found.scopes if (s.cohort, s.load) == (cohort, load))


def test_each_cohort_gets_its_own_advice(stored, rollout) -> None:
    """One cohort that gains is kept, one whose drafts fail is disabled, and the router is told."""
    found = stored(rollout("chat"), rollout("json", a=0.1, first=100))
    assert [s.cohort for s in found.scopes] == [None, "chat", "json"]
    assert scope_of(found, "chat").action is Action.KEEP
    lost = scope_of(found, "json")
    assert lost.action is Action.DISABLE
    assert lost.e2e_speedup.upper < 1
    assert lost.break_even_tokens_a_step == pytest.approx(1.5, rel=0.01)
    assert "tokens per step, 1.5" in lost.reason
    assert [(r.cohort, r.max_tokens_below) for r in found.routes] == [("json", None)]


def test_launches_that_differ_leave_a_speed_up_open(stored, rollout, client) -> None:
    """Over four launches, of which two are slow, limits hold over launches and are wide."""
    found = stored(
        *(
            rollout(first=10 * number, prompts=10, verify_s=verify_s, launch=f"launch-{number}")
            for number, verify_s in enumerate((0.009, 0.04, 0.009, 0.04))
        )
    )
    ratios = e2e_ratios(advice.load(client, "k4"))
    of_requests = speedup([ratio._replace(launch=None) for ratio in ratios])
    over_launches = scope_of(found, "chat").e2e_speedup
    assert over_launches.estimate == pytest.approx(of_requests.estimate)
    assert over_launches.lower < 1 < of_requests.lower
    assert over_launches.upper > of_requests.upper


def test_an_acceptance_that_collapsed_is_named(stored, rollout) -> None:
    """A draft that almost never hits is broken rather than bad, and the reason says so."""
    found = stored(rollout("chat"), rollout("json", a=0.02, first=100))
    assert "; acceptance collapsed: " in scope_of(found, "json").reason
    assert "collapsed" not in scope_of(found, "chat").reason


def test_a_cohort_that_may_not_ship_is_disabled_however_fast(stored, rollout) -> None:
    """A failed release: its good cohort alone is routed to the candidate."""
    said = verdict_of(Outcome.FAIL, chat=MayShip.YES, json=MayShip.NO)
    said = replace(said, summary="r fails: 1 cell is beyond the margin. Suspected: bad drafts.")
    found = stored(rollout("chat"), rollout("json", first=100), verdict=said)
    assert "margin. Suspected: bad drafts; its speed: " in scope_of(found, None).reason
    assert scope_of(found, "chat").action is Action.KEEP
    json_scope = scope_of(found, "json")
    assert json_scope.action is Action.DISABLE
    assert json_scope.reason.startswith(
        "the verdict says no: answers got worse; its speed: 51 % faster"
    )
    assert scope_of(found, None).action is Action.DISABLE
    assert found.default is Arm.BASELINE
    assert [(r.to, r.cohort) for r in found.routes] == [(Arm.CANDIDATE, "chat")]


def test_what_a_verdict_leaves_open_is_not_advised(stored, rollout) -> None:
    """Nor is a cohort that it does not speak of; what is slow is disabled all the same."""
    said = verdict_of(Outcome.INCONCLUSIVE, chat=MayShip.UNKNOWN, json=MayShip.UNKNOWN)
    found = stored(
        rollout("chat"), rollout("json", a=0.1, first=100), rollout("rag", first=200), verdict=said
    )
    assert scope_of(found, "chat").action is Action.UNKNOWN
    assert scope_of(found, "json").action is Action.DISABLE
    assert scope_of(found, "rag").action is Action.UNKNOWN
    assert (found.default, found.routes) == (Arm.BASELINE, ())


def test_a_pass_does_not_speak_of_a_cohort_set_aside(stored, rollout) -> None:
    """It goes to the baseline, and the rest to the candidate."""
    found = stored(rollout("chat"), rollout("rag", first=200), verdict=verdict_of(chat=MayShip.YES))
    assert found.default is Arm.CANDIDATE
    assert [(r.to, r.cohort) for r in found.routes] == [(Arm.BASELINE, "rag")]


def test_without_a_verdict_nothing_may_serve(stored, rollout) -> None:
    """Speed is shown, and the missing verdict is named."""
    found = stored(rollout("chat"), verdict=None)
    chat = scope_of(found, "chat")
    assert (chat.action, chat.judged) == (Action.UNKNOWN, None)
    assert "a verdict: draftgate gate k4" in chat.missing
    assert (found.default, found.routes) == (Arm.BASELINE, ())


def test_a_second_rollout_at_another_k_changes_k(stored, rollout) -> None:
    """With the cost split, k = 1 is advised where most drafts of four are lost."""
    group = {"a": 0.25, "verify_s": 0.0105, "draft_s": 0.0012}
    alone = stored(rollout(**group))
    assert scope_of(alone, "chat").action is not Action.CHANGE_K
    assert scope_of(alone, "chat").trial.k == 1
    both = stored(rollout(name="k1", k=1, **group), others=("k1",))
    chat = scope_of(both, "chat")
    assert (chat.action, chat.k, chat.best_k) == (Action.CHANGE_K, 4, 1)
    assert chat.cost.verify_s == pytest.approx(0.0105, rel=0.02)
    assert chat.cost.draft_s == pytest.approx(0.0012, rel=0.05)
    gain = chat.by_k[1].gain
    assert 0.02 < gain.lower <= gain.estimate <= gain.upper


def test_a_gain_below_two_per_cent_changes_nothing(stored, rollout) -> None:
    """Another k that is hardly better is no reason to change."""
    group = {"a": 0.65, "verify_s": 0.010, "draft_s": 0.001}
    found = stored(rollout(**group), rollout(name="k3", k=3, **group), others=("k3",))
    chat = scope_of(found, "chat")
    assert chat.best_k in {3, 4}
    assert -0.02 < chat.by_k[3].gain.lower <= 0.02
    assert chat.action is Action.KEEP


def test_a_longer_k_than_was_recorded_is_named_and_not_advised(stored, rollout) -> None:
    """Nearly every draft accepted: a longer one is worth recording, on which advice can rest."""
    group = {"a": 0.99, "verify_s": 0.010, "draft_s": 0.001}
    found = stored(rollout(**group), rollout(name="k2", k=2, **group), others=("k2",))
    chat = scope_of(found, "chat")
    assert (chat.action, chat.best_k) == (Action.KEEP, 4)
    assert "k = 8, longer than any recorded" in chat.reason


def test_too_few_pairs_say_how_many_are_missing(stored, rollout) -> None:
    """Below 30 prompts nothing is advised."""
    found = stored(rollout(prompts=12))
    assert {s.action for s in found.scopes} == {Action.UNKNOWN}
    assert found.scopes[0].missing[0] == (
        "18 more prompts that both arms answered, to have the 30 that advice needs"
    )
    assert found.routes == ()


def test_a_prediction_beyond_the_observed_limits_is_explained(stored, rollout) -> None:
    """It names the scopes of which it holds, and says nothing of a prediction within limits."""
    (every, chat) = stored(rollout("chat")).scopes
    seen = chat.tpot_speedup
    assert seen is not None
    within = replace(chat, predicted_tpot_speedup=seen.estimate)
    assert prediction_note([within]) is None
    note = prediction_note([within, replace(every, predicted_tpot_speedup=2 * seen.estimate)])
    assert note is not None
    assert "outside the observed limits in all: " in note


def test_without_counts_speed_is_observed_and_nothing_forecast(stored, rollout) -> None:
    """No speculation record, and no lists by position: missing values are null."""
    bare = stored(replace(g, speculation=None) for g in rollout())
    chat = scope_of(bare, "chat")
    assert (chat.action, chat.k, chat.wasted, chat.cost, chat.by_k) == (
        Action.KEEP, None, None, None, (),
    )  # fmt: skip
    assert "usable counts of verify steps: nothing says how drafts fared" in chat.missing


def test_a_histogram_serves_as_well_as_counts_by_position(stored, rollout, client, otlp_of) -> None:
    """The same steps as exact counts of accepted tokens give the same survival."""
    lists = scope_of(stored(rollout()), "chat")
    renamed = [replace(without_lists(g), rollout="h4", span_id="a" + g.span_id[1:],
                       trace_id="a" + g.trace_id[1:]) for g in rollout()]  # fmt: skip
    client.post_traces(otlp_of(renamed), content_type="application/json")
    found = advice.advise("h4", advice.load(client, "h4"))
    assert scope_of(found, "chat").acceptance_survival == lists.acceptance_survival


def test_missing_and_failed_sides_are_left_out_and_counted(stored, rollout) -> None:
    """A lost side, an error and a contradictory count stay out of what they touch."""
    made = list(rollout(prompts=45))
    made[1] = replace(made[1], error_type="timeout")
    made[3] = replace(made[3], speculation=replace(made[3].speculation, accepted_tokens=9_999))
    del made[4]
    chat = scope_of(stored(made), "chat")
    assert (chat.pairs, chat.left_out) == (43, 2)
    assert chat.steps == 42 * 20


def test_loads_are_told_apart(stored, rollout) -> None:
    """Where several loads were recorded, one that loses is disabled by itself."""
    found = stored(
        rollout(concurrency=2, prompts=80),
        rollout(concurrency=12, first=100, prompts=40, verify_s=0.05),
    )
    assert scope_of(found, "chat", (2, 3)).action is Action.KEEP
    assert scope_of(found, "chat", (8, 15)).action is Action.DISABLE
    bounds = [(r.concurrency_at_least, r.concurrency_at_most) for r in found.routes]
    assert bounds == [(8, 15)]


def test_bands_of_the_verdict_are_advised_on(stored, rollout) -> None:
    """A band that loses goes to the baseline whatever the cohort, and so do unknown lengths."""
    short, long = "input_tokens:0-7999", "input_tokens:8000+"
    verdict = verdict_of(**dict.fromkeys(("chat", short, long), MayShip.YES))
    found = stored(
        rollout(input_tokens=500, prompts=80),
        rollout(input_tokens=20_000, first=100, prompts=40, verify_s=0.05),
        verdict=verdict,
    )
    assert [s.cohort for s in found.scopes if s.load is None] == [None, "chat", short, long]
    assert scope_of(found, short).action is Action.KEEP
    assert scope_of(found, long).action is Action.DISABLE
    assert [(r.to, r.cohort) for r in found.routes] == [
        (Arm.BASELINE, long),
        (Arm.BASELINE, "input_tokens:unknown"),
    ]


def test_a_band_without_a_yes_is_not_served(stored, rollout) -> None:
    """Bands that nobody judged stay with the baseline, however fast; so does a band with a no."""
    bands = InputBands((8000,))
    short, long = bands.names
    found = stored(
        rollout(input_tokens=500, prompts=80),
        rollout(input_tokens=20_000, first=100, prompts=80),
        verdict=verdict_of(**{"chat": MayShip.YES, short: MayShip.YES, long: MayShip.NO}),
    )
    assert scope_of(found, short).action is Action.KEEP
    assert [r.cohort for r in found.routes] == [long, bands.UNKNOWN]


def test_speculation_that_is_off_under_load_is_named(stored, rollout) -> None:
    """By the candidate's counts, before advice on an average over both loads."""

    def idle(generations):
        for one in generations:
            off = Speculation(steps=0, draft_tokens=0, accepted_tokens=0)
            yield replace(one, speculation=off if one.arm is Arm.CANDIDATE else None)

    found = stored(rollout(concurrency=2), idle(rollout(concurrency=12, first=100)))
    (named,) = found.load_adaptations
    assert (named.low, named.high, named.at_high) == ((2, 3), (8, 15), 1.0)
    assert named.name == "speculation_off_under_load"


def test_short_answers_that_lose_go_to_the_baseline(stored, rollout) -> None:
    """The cohort gains as a whole, and its smallest token limits lose: a rule by max_tokens."""
    found = stored(
        rollout(max_tokens=16, a=0.1),
        rollout(max_tokens=64, first=100, prompts=60, a=0.9),
        rollout(max_tokens=256, first=200, prompts=60, a=0.9),
    )
    assert scope_of(found, "chat").action is Action.KEEP
    assert [(r.cohort, r.max_tokens_below) for r in found.routes] == [("chat", 64)]


# --- the command


@pytest.fixture
def run(tmp_path: Path, rollout, otlp_of):
    """Store two cohorts and another k, and give a function that runs `advise` on them."""
    database = f"sqlite:///{tmp_path / 'commands.db'}"
    groups = [rollout("chat"), rollout("json", a=0.1, first=100), rollout(name="k2", k=2)]
    with Client.local(database) as opened:
        for group in groups:
            opened.post_traces(otlp_of(list(group)), content_type="application/json")
    policy = tmp_path / "answers.yaml"
    policy.write_text(ANSWERS_POLICY)
    gate = ["gate", "k4", "--policy", str(policy), "--database", database]
    assert CliRunner().invoke(app, gate).exit_code == 0
    return lambda *args: CliRunner().invoke(app, ["advise", *args, "--database", database])


def test_command_prints_and_writes_rules(run, tmp_path) -> None:
    """Words and tables within 80 columns, and the rules as YAML."""
    path = tmp_path / "routes.yaml"
    result = run("k4", "--routes", str(path))
    assert result.exit_code == 0, result.output
    assert "• chat: keep k = 4" in result.stdout
    assert "• json: disable" in result.stdout
    assert "no more than the newest verdict allows: yes for the release." in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    rules = yaml.safe_load(path.read_text())
    assert (rules["version"], rules["rollout"], rules["default"]) == (1, "k4", "candidate")
    (rule,) = rules["rules"]
    assert (rule["to"], rule["cohort"]) == ("baseline", "json")


def test_command_prints_json_that_does_not_change(run) -> None:
    """The same evidence gives the same document, with the bootstrap's seed."""
    first, second = run("k4", "--json"), run("k4", "--json")
    assert first.stdout == second.stdout
    document = json.loads(first.stdout)
    assert document["bootstrap_draws"] == 1000
    assert document["scopes"][1]["cost"]["draft_s"] is None


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("k9",), "error: rollout k9: the collector holds no such rollout; it holds k2, k4\n"),
        (("k4", "--with", "k9"), "error: rollout k9: the collector holds no such rollout;"),
        (("k4", "--routes", "/nowhere/r.yaml"), "error: /nowhere/r.yaml: cannot be written"),
    ],
)
def test_unusable_input_is_exit_2(run, args, message) -> None:
    """A wrong name is one line on standard error."""
    result = run(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(message)

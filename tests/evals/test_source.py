"""From stored spans to a verdict: scoring, judging, and the two commands, over a real database."""

import json
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from collector.client import Client
from collector.contract import Arm, Outcome, Speculation, Verdict, from_document
from draftgate.commands import app
from evals import policy, source
from evals.errors import SourceError
from evals.evaluation.evaluate import evaluate_rollout
from evals.evaluation.tally import EvaluationCounts
from evals.evaluators import TaskCompletion
from evals.report.terminal import to_json

COHORTS = {
    "chat": {"reference": json.dumps({"kind": "exact", "text": "Hello there."})},
    "rag": {"reference": "The kettle costs 48.", "context": ("The Lumen kettle costs EUR 48.",)},
    "code": {
        "reference": json.dumps(
            {
                "kind": "tests",
                "entry_point": "f",
                "prelude": "def f(a, b):\n",
                "tests": "assert f(1, 2) == 3",
            }
        )
    },
    "tool_call": {
        "reference": json.dumps({"kind": "json", "value": {"name": "track"}}),
        "output_schema": json.dumps({"properties": {"name": {"enum": ["track"]}}}),
    },
}
RIGHT = {
    "chat": "Hello there.",
    "rag": "The kettle costs 48.",
    "code": "    return a + b",
    "tool_call": '{"name": "track"}',
}


@pytest.fixture
def rollout(generation_of):
    """Give a function that makes a rollout: 40 prompts a cohort, the candidate 0.7 times as slow.

    `wrong` names the cohort that the candidate answers wrongly.
    """

    def made(wrong: str | None = None, prompts: int = 40):
        for number in range(4 * prompts):
            cohort = list(COHORTS)[number % 4]
            for arm in Arm:
                fast = arm is Arm.CANDIDATE
                answer = "wrong 99" if fast and cohort == wrong else RIGHT[cohort]
                plain = generation_of(2 * number + fast + 1, answer, **COHORTS[cohort])
                seconds = (1 + number % 7 / 10) * ((0.7 + number % 3 / 100) if fast else 1)
                # No two answers take the very same time.
                seconds += zlib.crc32(f"{number} {fast}".encode()) % 9973 * 1e-9
                yield replace(
                    plain,
                    end_unix_ns=plain.start_unix_ns + int(seconds * 1e9),
                    rollout="k4",
                    arm=arm,
                    cohort=cohort,
                    prompt_id=f"p{number:03}",
                    repeat=0,
                    ttft_s=0.1,
                    tpot_s=(seconds - 0.1) / 19,
                    output_tokens=20,
                    speculation=SPECULATION if fast else None,
                )

    return made


SPECULATION = Speculation(
    method="draft_model",
    steps=8,
    draft_tokens=24,
    accepted_tokens=12,
    draft_tokens_per_pos=(8, 8, 8),
    accepted_tokens_per_pos=(6, 4, 2),
)


@pytest.fixture
def stored(client, rollout, otlp_of):
    """Give a function that stores a rollout."""

    def store(*args, **fields) -> None:
        body = otlp_of(list(rollout(*args, **fields)))
        client.post_traces(body, content_type="application/json")

    return store


def test_scores_what_is_unscored_once(client, stored) -> None:
    """Every applicable metric of every answer gets a score, and a second run posts none."""
    stored(prompts=5)
    seen = []
    first = evaluate_rollout(client, "k4", lambda done, total: seen.append((done, total)))
    assert first == EvaluationCounts(
        generations=40, failed=0, scored=100, unscored=0, kept=0, not_applicable=80, without_text=0
    )
    assert seen[0] == (1, 40)
    assert seen[-1] == (40, 40)
    second = evaluate_rollout(client, "k4")
    assert (second.scored, second.kept) == (0, 100)
    values = {(s.metric, s.value and round(s.value)) for s in client.scores("k4")}
    assert values == {
        (m, 1) for m in ("format_intact", "groundedness", "schema_validity", "task_completion")
    }


def test_a_new_version_scores_again(client, stored, monkeypatch) -> None:
    """Scores belong to an evaluator's version: another version leaves no gap and no overwrite."""
    stored(prompts=1)
    evaluate_rollout(client, "k4")
    monkeypatch.setattr(TaskCompletion, "version", "another")
    again = evaluate_rollout(client, "k4")
    assert (again.scored, again.kept) == (8, 12)
    assert len(list(client.scores("k4", metric="task_completion"))) == 16


def test_failed_answers_are_left_to_the_gate(client, rollout, otlp_of) -> None:
    """A generation that ended in an error gets no score from any evaluator."""
    failed = [replace(g, error_type="timeout") for g in rollout(prompts=2)]
    client.post_traces(otlp_of(failed), content_type="application/json")
    counts = evaluate_rollout(client, "k4")
    assert (counts.generations, counts.failed, counts.scored) == (16, 16, 0)


def test_a_good_rollout_passes_the_demo_policy(client, stored) -> None:
    """160 pairs, faster and as good, pass every cell that the demonstration proves."""
    stored()
    evaluate_rollout(client, "k4")
    verdict = source.judge(client, "k4", policy.shipped("demo"))
    assert verdict.outcome is Outcome.PASS, verdict.reasons
    assert (verdict.pairs, verdict.incomplete_pairs, verdict.failed_pairs) == (160, 0, 0)
    pooled = verdict.acceptance[0]
    assert (pooled.rate, pooled.length) == (0.5, 2.5)
    assert pooled.rate_per_pos == (0.75, 0.5, 0.25)


@pytest.mark.parametrize("cohort", list(COHORTS))
def test_one_spoiled_cohort_fails_the_demo_policy(client, stored, cohort) -> None:
    """A candidate that is wrong in one cohort fails there, whatever the others gain."""
    stored(wrong=cohort)
    evaluate_rollout(client, "k4")
    verdict = source.judge(client, "k4", policy.shipped("demo"))
    assert verdict.outcome is Outcome.FAIL
    failed = {(f.metric, f.cohort) for f in verdict.findings if f.outcome is Outcome.FAIL}
    assert ("task_completion", cohort) in failed
    assert {c for _, c in failed} == {cohort, None}


def test_without_evaluation_nothing_passes(client, stored) -> None:
    """A rollout that nobody evaluated is inconclusive, and says what to run."""
    stored()
    verdict = source.judge(client, "k4", policy.shipped("demo"))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert any("run `draftgate evaluate` first" in reason for reason in verdict.reasons)


def test_an_unknown_rollout_is_named(client, stored) -> None:
    """A name that the collector does not hold is an error that lists what it holds."""
    stored(prompts=1)
    for call in (evaluate_rollout, source.load_evidence):
        with pytest.raises(
            SourceError, match="rollout k5: the collector holds no such rollout; it holds k4"
        ):
            call(client, "k5")


# --- the commands


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Name a SQLite file that no one has open."""
    return f"sqlite:///{tmp_path / 'commands.db'}"


@pytest.fixture
def run(database):
    """Give a function that runs a command on the test's database."""
    return lambda *args: CliRunner().invoke(app, [*args, "--database", database])


@pytest.fixture
def saved(database, rollout, otlp_of):
    """Give a function that stores a rollout in the database and closes it."""

    def save(*args, **fields) -> None:
        with Client.local(database, capture_content=True) as opened:
            body = otlp_of(list(rollout(*args, **fields)))
            opened.post_traces(body, content_type="application/json")

    return save


@pytest.fixture
def verdicts(database):
    """Give a function that reads the verdicts in the database."""

    def read():
        with Client.local(database, capture_content=True) as opened:
            return opened.verdicts()

    return read


def unwrapped(result) -> str:
    """Return a command's framed output as one line."""
    return " ".join(result.stdout.replace("│", " ").split())


def test_commands_evaluate_and_pass(run, saved, verdicts) -> None:
    """`evaluate`, then `gate`: exit 0, the banner, and a verdict in the collector."""
    saved()
    evaluated = run("evaluate", "k4")
    assert evaluated.exit_code == 0
    assert evaluated.stdout == (
        "k4: 320 answers, 800 scores posted, 0 could not be judged, 0 already scored, "
        "0 failed answers\n"
    )
    judged = run("gate", "k4", "--policy", "demo")
    assert judged.exit_code == 0
    assert "PASS" in judged.stdout
    assert "May it ship: yes. k4 passes on 160 pairs: all 10 required cells" in unwrapped(judged)
    assert [s.verdict.outcome for s in verdicts()] == [Outcome.PASS]


def test_a_verdict_is_printed_as_it_is_stored(run, saved, verdicts) -> None:
    """`--json` prints the document that the collector keeps; `--no-post` keeps none."""
    saved(wrong="chat")
    run("evaluate", "k4")
    unposted = run("gate", "k4", "--policy", "demo", "--json", "--no-post")
    assert unposted.exit_code == 1
    assert verdicts() == ()
    posted = run("gate", "k4", "--policy", "demo", "--json")
    (kept,) = verdicts()
    assert posted.stdout == unposted.stdout
    assert from_document(Verdict, json.loads(posted.stdout)) == kept.verdict
    assert posted.stdout == to_json(kept.verdict) + "\n"


def test_too_few_pairs_are_inconclusive(run, saved) -> None:
    """Exit 3 where nothing is decided, with the pairs still needed."""
    saved(prompts=5)
    run("evaluate", "k4")
    judged = run("gate", "k4", "--policy", "demo")
    assert judged.exit_code == 3
    assert "INCONCLUSIVE" in judged.stdout
    assert "To prove what must pass: about 5,671 more workload prompts." in unwrapped(judged)


def test_explain_decides_nothing(run, saved, verdicts) -> None:
    """`--explain` prints a line a cell with its least n, posts nothing and exits 0."""
    saved(prompts=1)
    explained = run("gate", "k4", "--policy", "demo", "--explain")
    assert explained.exit_code == 0
    assert len(explained.stdout.splitlines()) == 16
    assert (
        "prove: candidate − baseline in the share of completed tasks, pooled, is ≥ −2.0 pp "
        "(tango-1998/4, at least 149 pairs)"
    ) in explained.stdout
    assert verdicts() == ()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("k5",), "error: rollout k5: the collector holds no such rollout; it holds k4\n"),
        (
            ("k4", "--policy", "strict"),
            (
                "error: strict: no such shipped policy; wanted one of "
                "default, demo, demo-real, lossless, quality\n"
            ),
        ),
        (
            ("k4", "--policy", "/nowhere/p.yaml"),
            (
                "error: /nowhere/p.yaml: cannot be read ([Errno 2] No such file or directory: "
                "'/nowhere/p.yaml'); wanted a YAML policy file\n"
            ),
        ),
    ],
)
def test_unusable_input_is_one_line_and_exit_2(run, saved, args, message) -> None:
    """A wrong name is one line on standard error, without a traceback."""
    saved(prompts=1)
    result = run("gate", *args)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", message)


def test_a_collector_that_is_not_there_is_exit_2() -> None:
    """A collector that does not answer is unusable input, not a failed gate."""
    result = CliRunner().invoke(app, ["gate", "k4", "--collector", "http://127.0.0.1:9"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: http://127.0.0.1:9")


def test_two_clients_of_one_file(tmp_path, rollout, otlp_of) -> None:
    """Answers stored by one process are evaluated and judged the same by another."""
    database = f"sqlite:///{tmp_path / 'shared.db'}"
    with Client.local(database, capture_content=True) as one:
        one.post_traces(otlp_of(list(rollout(prompts=2))), content_type="application/json")
        evaluate_rollout(one, "k4")
        first = source.judge(one, "k4", policy.shipped("demo"))
    with Client.local(database, capture_content=True) as other:
        assert source.judge(other, "k4", policy.shipped("demo")) == first


@pytest.mark.parametrize(
    ("form", "beginning"),
    [
        ("text", "╭"),
        ("json", "{"),
        ("markdown", "## ✅ pass"),
        ("junit", "<?xml version='1.0' encoding='utf-8'?>"),
        ("github", "::notice title=pass::May it ship: yes. k4 passes on 160 pairs"),
    ],
)
def test_prints_in_the_format_asked_for(run, saved, form, beginning) -> None:
    """Each format is what the reader expects, with the same exit code."""
    saved()
    run("evaluate", "k4")
    judged = run("gate", "k4", "--policy", "demo", "--no-post", "--format", form)
    assert judged.exit_code == 0
    assert judged.stdout.startswith(beginning)


def test_a_rollout_is_its_own_loud_control(run, saved) -> None:
    """`--control` names a rollout: one that differs holds the verdict up."""
    saved()
    run("evaluate", "k4")
    loud = run("gate", "k4", "--policy", "demo", "--no-post", "--json", "--control", "k4")
    assert loud.exit_code == 3
    assert '"reason": "aa"' in loud.stdout
    assert run("gate", "k4", "--policy", "demo", "--control", "k9").exit_code == 2


def test_gate_writes_a_bundle_that_verifies(run, saved, tmp_path) -> None:
    """The gate's output, the bundle's verdict and the verification's are equal."""
    saved()
    run("evaluate", "k4")
    path = tmp_path / "k4.zip"
    args = ("gate", "k4", "--policy", "demo", "--no-post", "--json", "--bundle", str(path))
    judged = run(*args)
    assert judged.exit_code == 0
    with zipfile.ZipFile(path) as archive:
        assert archive.read("verdict.json").decode() + "\n" == judged.stdout
    assert CliRunner().invoke(app, ["verify", str(path)]).exit_code == 0

"""Other evaluators' scores of both arms: lm-eval's samples and NeMo Evaluator's results.

The files are written for these tests in the formats' own fields; no data set is copied.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from collector.client import Client
from draftgate.commands import app

DATE = "2026-10-01T10-00-00.000000"
CASES = 400
POLICY = """
version: 1
name: imported
prove:
  - {metric: task_completion, stat: diff, min: -0.05, scope: pooled}
"""


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def sample(number: int, value: object, **changed: object) -> Mapping[str, Any]:
    """Return a row as lm-eval's `--log_samples` writes it."""
    question = f"What is {number} + 1?"
    return {
        "doc_id": number,
        "doc": {"question": question, "answer": str(number + 1)},
        "target": str(number + 1),
        "arguments": {"gen_args_0": {"arg_0": question, "arg_1": {"until": ["\n"]}}},
        "resps": [[str(number + 1)]],
        "filtered_resps": [str(number + 1)],
        "filter": "strict-match",
        "metrics": ["exact_match"],
        "doc_hash": sha(question + "doc"),
        "prompt_hash": sha(question),
        "target_hash": sha(str(number + 1)),
        "exact_match": value,
        **changed,
    }


def result(number: int, reward: object, **changed: object) -> Mapping[str, Any]:
    """Return a row as nel's evaluation loop writes it."""
    return {
        "problem_idx": number,
        "repeat": 0,
        "reward": reward,
        "scorer_rewards": {},
        "prompt": f"What is {number} + 1?",
        "model_response": str(number + 1),
        "extracted_answer": str(number + 1),
        "expected_answer": str(number + 1),
        "scoring_details": {},
        "metadata": {},
        "tokens": 12,
        "latency_ms": 300.0,
        **changed,
    }


def lines(path: Path, rows: Sequence[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def lm_eval(folder: Path, rows: Sequence[object], version: str | None = "0.4.13") -> Path:
    """Write samples, and the results file beside that says the version."""
    path = lines(folder / f"samples_gsm8k_{DATE}.jsonl", rows)
    if version is not None:
        results = folder / f"results_{DATE}.json"
        results.write_text(json.dumps({"lm_eval_version": version}))
    return path


def nel(folder: Path, rows: Sequence[object], version: str = "0.3.0") -> Path:
    """Write results, and the bundle beside that says task and version."""
    path = lines(folder / "results.jsonl", rows)
    bundle = {"sdk_version": version, "benchmark": {"name": "gsm8k"}, "n_results": len(rows)}
    (folder / "eval-20261001T100000Z-gsm8k.json").write_text(json.dumps(bundle))
    return path


def record(number: int, value: float | None, **changed: object) -> Mapping[str, Any]:
    """Return a record as InvarLock's `write_run` writes it."""
    return {
        "id": f"case-{number}",
        "input": f"What is {number} + 1?",
        "expected": str(number + 1),
        "output": str(number + 1),
        "scores": {} if value is None else {"exact_match": value},
        "metadata": {},
        "error": None,
        "context": None,
        **changed,
    }


def invarlock(folder: Path, rows: Sequence[object], **changed: object) -> Path:
    """Write a run."""
    run = {
        "format": "invarlock/evaluation-run-v1",
        "source": {"name": "gsm8k", "version": "1.2"},
        "run_id": "r1",
        "artifact_digest": f"sha256:{sha(str(folder))}",
        "source_digest": None,
        "score_provenance": {
            "exact_match": {
                "kind": "external_metric",
                "source": "grader",
                "version": "7",
                "unit": "share",
                "rubric_digest": None,
            }
        },
        "records": rows,
        **changed,
    }
    folder.mkdir(exist_ok=True)
    path = folder / "run.json"
    path.write_text(json.dumps(run, sort_keys=True, separators=(",", ":")))
    return path


def draftgate(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


Import = Callable[..., Result]


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/draftgate.db"


@pytest.fixture
def imported(database: str) -> Import:
    """Give a function that imports two files."""

    def run(baseline: Path, candidate: Path, *words: object) -> Result:
        options = ["--rollout", "k4", "--database", database, *words]
        return draftgate("import", baseline, "--candidate", candidate, *options)

    return run


@pytest.mark.parametrize(
    ("write", "row", "by"),
    [
        (lm_eval, sample, ("lm-eval", "0.4.13", "exact_match, strict-match")),
        (nel, result, ("nemo-evaluator", "0.3.0", "reward")),
        (invarlock, record, ("grader", "7", "exact_match")),
    ],
)
def test_two_files_are_judged(imported, database, tmp_path, write, row, by) -> None:
    """Cases pair by their ids; the scores say who gave them; the gate decides on them."""
    rows = [row(n, float(n % 10 != 0)) for n in range(CASES)]
    files = write(tmp_path / "a", rows), write(tmp_path / "b", rows)
    for _ in range(2):  # a second import stores nothing twice
        found = imported(*files, "--change", "quantization")
        assert found.exit_code == 0, found.output
    assert f"{CASES} pairs scored by {' '.join(by[:2])} on {by[2]}, 0 cases" in found.stdout
    with Client.local(database) as client:
        stored = list(client.scores("k4"))
        generations = list(client.generations("k4"))
    assert len(stored) == len(generations) == 2 * CASES
    assert {(one.evaluator, one.version, one.label) for one in stored} == {by}
    assert {one.metric for one in stored} == {"task_completion"}
    assert {one.cohort for one in generations} == {"gsm8k"}
    (tmp_path / "policy.yaml").write_text(POLICY)
    verdict = draftgate("gate", "k4", "--policy", tmp_path / "policy.yaml", "--database", database)
    assert verdict.exit_code == 0, verdict.output


def test_a_run_without_judges_and_with_failures(imported, database, tmp_path) -> None:
    """Its source is the evaluator then; a failed record, or one without the score, is unscored."""
    rows = [record(0, 1.0), record(1, 1.0, error="timeout"), record(2, None), record(3, 40.0)]
    files = [
        invarlock(tmp_path / name, rows, score_provenance={}, source={"name": "s", "version": "2"})
        for name in "ab"
    ]
    assert imported(*files, "--change", "quantization").exit_code == 0
    with Client.local(database) as client:
        found = {(one.evaluator, one.version, one.unscored_reason) for one in client.scores("k4")}
    assert found == {
        ("s", "2", None),
        ("s", "2", "the record failed: timeout"),
        ("s", "2", "wanted a number, got NoneType"),
        ("s", "2", "40 is outside [0, 1]"),
    }


def test_a_worse_candidate_fails(imported, database, tmp_path) -> None:
    """The same cases with fewer right answers are no pass."""
    good = lm_eval(tmp_path / "a", [sample(n, 1.0) for n in range(CASES)])
    bad = lm_eval(tmp_path / "b", [sample(n, float(n % 4 != 0)) for n in range(CASES)])
    assert imported(good, bad, "--change", "quantization").exit_code == 0
    (tmp_path / "policy.yaml").write_text(POLICY)
    verdict = draftgate("gate", "k4", "--policy", tmp_path / "policy.yaml", "--database", database)
    assert verdict.exit_code == 1


def test_no_time_is_known_of_an_imported_answer(imported, database, tmp_path) -> None:
    """A cell of latency is not judged on the moment of the import."""
    rows = [sample(n, 1.0) for n in range(CASES)]
    files = lm_eval(tmp_path / "a", rows), lm_eval(tmp_path / "b", rows)
    assert imported(*files, "--change", "quantization").exit_code == 0
    rule = "  - {metric: e2e, stat: geomean_ratio, max: 1.0, scope: pooled}\n"
    (tmp_path / "policy.yaml").write_text(POLICY + rule)
    words = ["--policy", tmp_path / "policy.yaml", "--database", database, "--json"]
    verdict = json.loads(draftgate("gate", "k4", *words).stdout)
    (cell,) = [one for one in verdict["findings"] if one["metric"] == "e2e"]
    assert (cell["outcome"], cell["n"], cell["estimate"]) == ("inconclusive", 0, None)


def test_a_score_outside_its_range_is_unscored(imported, database, tmp_path) -> None:
    """With the reason; so is a metric that is no number."""
    rows = [sample(0, 3.5), sample(1, "yes"), sample(2, True)]
    found = imported(lm_eval(tmp_path / "a", rows), lm_eval(tmp_path / "b", rows))
    assert "4 unscored" in found.stdout
    with Client.local(database) as client:
        reasons = {one.unscored_reason for one in client.scores("k4")}
    assert reasons == {"3.5 is outside [0, 1]", "wanted a number, got str", None}


def test_a_case_of_one_arm_alone_is_kept(imported, tmp_path) -> None:
    """The gate counts it as an incomplete pair; it is not dropped in silence."""
    rows = [sample(n, 1.0) for n in range(5)]
    found = imported(lm_eval(tmp_path / "a", rows), lm_eval(tmp_path / "b", rows[:-1]))
    assert (
        "4 pairs scored by lm-eval 0.4.13 on exact_match, strict-match, 1 case of one arm"
        in found.stdout
    )


def other_prompt(folder: Path) -> tuple[Path, Path]:
    rows = [sample(n, 1.0) for n in range(3)]
    changed = [*rows[:2], sample(2, 1.0, prompt_hash=sha("another"))]
    return lm_eval(folder / "a", rows), lm_eval(folder / "b", changed)


def other_version(folder: Path) -> tuple[Path, Path]:
    rows = [sample(0, 1.0)]
    return lm_eval(folder / "a", rows), lm_eval(folder / "b", rows, "0.4.2")


def no_version(folder: Path) -> tuple[Path, Path]:
    rows = [sample(0, 1.0)]
    return lm_eval(folder / "a", rows, None), lm_eval(folder / "b", rows)


def two_filters(folder: Path) -> tuple[Path, Path]:
    rows = [sample(0, 1.0), sample(0, 1.0, filter="flexible-extract")]
    return lm_eval(folder / "a", rows), lm_eval(folder / "b", rows)


def two_metrics(folder: Path) -> tuple[Path, Path]:
    rows = [sample(0, 1.0, metrics=["acc", "exact_match"], acc=1)]
    return lm_eval(folder / "a", rows), lm_eval(folder / "b", rows)


def twice(folder: Path) -> tuple[Path, Path]:
    rows = [sample(0, 1.0), sample(0, 1.0)]
    return lm_eval(folder / "a", rows), lm_eval(folder / "b", rows)


def no_hash(folder: Path) -> tuple[Path, Path]:
    rows = [sample(0, 1.0, doc_hash=None)]
    return lm_eval(folder / "a", rows), lm_eval(folder / "b", rows)


def cut_off(folder: Path) -> tuple[Path, Path]:
    path = lm_eval(folder / "a", [sample(0, 1.0), sample(1, 1.0)])
    path.write_text(path.read_text()[:-40])
    return path, lm_eval(folder / "b", [sample(0, 1.0)])


def nothing_alike(folder: Path) -> tuple[Path, Path]:
    return lm_eval(folder / "a", [sample(0, 1.0)]), lm_eval(folder / "b", [sample(1, 1.0)])


def another_file(folder: Path) -> tuple[Path, Path]:
    return lines(folder / "a.jsonl", [{"x": 1}]), lines(folder / "b.jsonl", [{"x": 1}])


def two_evaluators(folder: Path) -> tuple[Path, Path]:
    return lm_eval(folder / "a", [sample(0, 1.0)]), nel(folder / "b", [result(0, 1.0)])


def no_bundle(folder: Path) -> tuple[Path, Path]:
    path = nel(folder / "a", [result(0, 1.0)])
    for bundle in path.parent.glob("eval-*.json"):
        bundle.unlink()
    return path, nel(folder / "b", [result(0, 1.0)])


def no_run(folder: Path) -> tuple[Path, Path]:
    return (
        invarlock(folder / "a", [record(0, 1.0)], format="invarlock/evaluation-run-v9"),
        invarlock(folder / "b", [record(0, 1.0)]),
    )


def no_records(folder: Path) -> tuple[Path, Path]:
    return invarlock(folder / "a", [1]), invarlock(folder / "b", [record(0, 1.0)])


def two_scores(folder: Path) -> tuple[Path, Path]:
    rows = [record(0, 1.0, scores={"exact_match": 1.0, "f1": 0.5})]
    return invarlock(folder / "a", rows), invarlock(folder / "b", rows)


def other_input(folder: Path) -> tuple[Path, Path]:
    return (
        invarlock(folder / "a", [record(0, 1.0)]),
        invarlock(folder / "b", [record(0, 1.0, input="What else?")]),
    )


def no_source(folder: Path) -> tuple[Path, Path]:
    return (
        invarlock(folder / "a", [record(0, 1.0)], source=None),
        invarlock(folder / "b", [record(0, 1.0)]),
    )


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (no_run, "wanted one run of the format invarlock/evaluation-run-v1"),
        (no_records, "records: wanted a list of objects"),
        (two_scores, "give --metric, one of exact_match, f1"),
        (other_input, "1 of 1 cases are not those of the other file, such as gsm8k/case-0"),
        (no_source, "source: wanted an object, got NoneType"),
        (other_prompt, "1 of 3 cases are not those of the other file, such as gsm8k/2"),
        (other_version, "version 0.4.2, but"),
        (no_version, "does not say lm_eval_version (FileNotFoundError); give --evaluator-version"),
        (two_filters, "give --filter, one of flexible-extract, strict-match"),
        (two_metrics, "give --metric, one of acc, exact_match"),
        (twice, "gsm8k/0 stands twice"),
        (no_hash, "doc_hash: wanted text"),
        (cut_off, ":2: is not JSON"),
        (nothing_alike, "has no case of the other file"),
        (another_file, "no known evaluator; name one: --format invarlock, lm-eval, nel"),
        (two_evaluators, "evaluator nemo-evaluator, but"),
        (no_bundle, "wanted one bundle eval-….json beside results.jsonl, found 0"),
    ],
)
def test_files_that_cannot_be_compared(imported, database, tmp_path, write, said) -> None:
    """One line says why, and nothing is stored."""
    found = imported(*write(tmp_path))
    assert found.exit_code == 2
    assert said in found.stderr
    with Client.local(database) as client:
        assert client.rollouts() == ()


def test_a_choice_of_filter_and_metric(imported, tmp_path) -> None:
    """Both arms are read by it."""
    rows = [
        sample(0, 1.0, filter=name, metrics=["acc", "exact_match"], acc=0)
        for name in ("strict-match", "flexible-extract")
    ]
    files = lm_eval(tmp_path / "a", rows), lm_eval(tmp_path / "b", rows)
    found = imported(*files, "--filter", "strict-match", "--metric", "acc")
    assert "1 pair scored by lm-eval 0.4.13 on acc" in found.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give either --to, for a workload, or --rollout, for scores"),
        (["--to", "x", "--rollout", "k4"], "give either --to"),
        (["--rollout", "k4"], "give the candidate's file too"),
        (
            ["--rollout", "k4", "--candidate", "b", "--format", "mbpp"],
            "wanted one of invarlock, lm-eval, nel",
        ),
    ],
)
def test_options_that_do_not_fit(words, said) -> None:
    """The error says which option is missing or wrong."""
    found = draftgate("import", "a.jsonl", *words)
    assert found.exit_code == 2
    assert said in found.stderr

"""Evaluating for real: several processes, kills, interrupts, and answers that keep arriving."""

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from evaluate_commands import scores, started, wait_for
from sqlite_database import count_scores
from waiting import until

from collector.client import Client
from evals.errors import EvaluatorError
from evals.evaluation import workers
from evals.evaluation.evaluate import evaluate_rollout
from evals.evaluation.scoring import Choice, Scorer, Task, signature
from evals.evaluators import FunctionEvaluator

ROOT = Path(__file__).resolve().parents[2]
METRICS = ("format-drift", "reference")


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_what_was_posted_stays_and_the_next_run_goes_on(url, store, tmp_path, stop) -> None:
    """Broken off by a kill or Ctrl-C, an evaluation loses nothing posted and repeats nothing."""
    store(0, 400)
    first = started(url)
    until(lambda: count_scores(tmp_path / "draftgate.db") >= 200)
    first.send_signal(stop)
    _, words = first.communicate()
    if stop is signal.SIGINT:
        assert (first.returncode, words) == (130, "k4: stopped; what was scored is posted\n")
    posted = scores(url)
    assert len(posted) < 2000
    with Client(url) as client:
        again = evaluate_rollout(client, "k4")
    assert (again.kept, again.scored) == (len(posted), 2000 - len(posted))
    assert posted <= scores(url)


def test_several_processes_post_the_same_scores(url, store) -> None:
    """Two workers give what one gives, in the same order, the durations apart."""
    store(0, 40)
    names = (*METRICS, "parity")
    options = [part for name in names for part in ("--evaluator", name)]
    output, words = started(url, "--workers", "2", *options).communicate()
    assert words == ""
    assert output.startswith("k4: 80 answers, 200 scores posted, 0 could not be judged, 0 already")
    in_processes = {replace(score, latency_s=None) for score in scores(url)}
    with Client(url) as client:
        lacking = _signatures()
        tasks = [Task(g, None, lacking) for g in client.generations("k4", content=True)]
        scored = workers.scored(Choice(names=METRICS), tasks, workers=1)
        alone = {replace(s, latency_s=None) for done in scored for s in done.scores if s}
    assert alone <= in_processes
    assert len(in_processes - alone) == 40  # parity, of pairs


def _signatures():
    made = Choice(names=METRICS).make()
    try:
        return frozenset(signature(e) for e in made)
    finally:
        for evaluator in made:
            evaluator.close()


def test_a_worker_that_dies_is_said(generation_of) -> None:
    """A killed worker process ends the evaluation with what to do."""
    tasks = [Task(generation_of(n, "x"), None, frozenset()) for n in range(3)]

    def deadly() -> Iterator[Task]:
        yield from tasks * workers.CHUNK
        for process in workers.multiprocessing.active_children():
            process.kill()
            process.join()
        yield from tasks * workers.CHUNK * 4

    with pytest.raises(EvaluatorError, match="a worker process ended"):
        list(workers.scored(Choice(names=("format-drift",)), deadly(), workers=2))


def test_follow_scores_what_arrives_until_interrupted(url, store) -> None:
    """Each pass with something new is a line; Ctrl-C ends it well."""
    store(0, 2)
    following = started(url, "--follow", "--evaluator", "reference")
    wait_for(url, 4)
    store(2, 5)
    wait_for(url, 10)
    following.send_signal(signal.SIGINT)
    output, words = following.communicate()
    assert following.returncode == 0
    lines = output.splitlines()
    assert lines[0].startswith("k4: 4 answers, 4 scores posted")
    assert sum(int(line.split(", ")[1].split()[0]) for line in lines) == 10
    assert words.splitlines() == [
        "k4: following; Ctrl-C ends it",
        "k4: stopped; what was scored is posted",
    ]


def test_the_same_text_is_judged_once(generation_of) -> None:
    """A text that both arms wrote is judged once; the second score names its own generation."""
    asked = []
    counting = FunctionEvaluator(lambda g: asked.append(g.span_id) or 0.5, name="n", version="1")
    scorer = Scorer([counting])
    lacking = frozenset({signature(counting)})
    made = [generation_of(1, "same"), generation_of(2, "same"), generation_of(3, "other")]
    ((first,), (second,), (third,)) = [scorer.score(Task(g, None, lacking)) for g in made]
    assert asked == [made[0].span_id, made[2].span_id]
    assert (second.span_id, second.value, second.latency_s) == (made[1].span_id, 0.5, None)
    assert None not in (first.latency_s, third.latency_s)
    longer = replace(made[0], finish_reasons=("length",))
    scorer.score(Task(longer, None, lacking))
    assert len(asked) == 3  # a cut answer of the same text may be judged otherwise


def test_an_unknown_evaluator_is_told(url, store) -> None:
    """The command ends with exit code 2 and the names that there are."""
    store(0, 1)
    ended = started(url, "--evaluator", "missing")
    _, words = ended.communicate()
    assert ended.returncode == 2
    assert words.startswith(
        "error: no evaluator 'missing'; there are format-drift, groundedness-model, "
    )

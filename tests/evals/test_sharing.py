"""Workers that share a rollout by leases, each `draftgate evaluate --follow` in its own process."""

import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from evaluate_commands import scores, started, wait_for
from sqlite_database import count_scores
from waiting import until

from collector.client import Client, ClientError
from collector.contract import LeasedEvaluator, LeaseRequest, Score
from evals.evaluation.follow import Terms, follow_rollout
from evals.evaluation.scoring import Choice, Scorer, Task

ROOT = Path(__file__).resolve().parents[2]
ANSWERS = 400


def following(url: str, *options: str) -> "subprocess.Popen[str]":
    """Start a worker with the evaluators of one answer and of pairs."""
    evaluators = ("--evaluator", "reference", "--evaluator", "parity")
    return started(url, "--follow", *evaluators, *options)


def ended(worker: subprocess.Popen[str]) -> int:
    """End a worker by SIGTERM; return how many scores it says that it posted."""
    worker.send_signal(signal.SIGTERM)
    output, words = worker.communicate()
    assert worker.returncode == 0, words
    return sum(int(line.split(", ")[1].split()[0]) for line in output.splitlines())


def test_two_workers_share_without_overlap(url: str, store: Callable[[int, int], None]) -> None:
    """Each answer and each pair is scored by one of them: their counts add up."""
    store(0, ANSWERS // 2)
    workers = [following(url), following(url)]
    wait_for(url, ANSWERS + ANSWERS // 2)
    assert sum(map(ended, workers)) == ANSWERS + ANSWERS // 2
    assert Counter(score.metric for score in scores(url)) == {
        "task_completion": ANSWERS,
        "parity": ANSWERS // 2,
    }


@pytest.mark.slow
def test_what_a_killed_worker_left_another_finishes(
    url: str, store: Callable[[int, int], None], tmp_path: Path
) -> None:
    """Once its lease has run out; what it had posted is kept."""
    store(0, ANSWERS // 2)
    wanted = LeaseRequest(rollout="k4", worker="dead", evaluators=evaluators(), pairs=True, ttl_s=3)
    with Client(url) as client:
        lease = client.lease(wanted)  # of one that is killed before it posts anything
    assert lease is not None
    killed = following(url, "--lease", "2")
    until(lambda: count_scores(tmp_path / "draftgate.db"))
    killed.kill()
    killed.communicate()
    other = following(url, "--lease", "2")
    wait_for(url, ANSWERS + ANSWERS // 2)
    assert 0 < ended(other) <= ANSWERS + ANSWERS // 2
    of_dead = {(g.trace_id, g.span_id) for g in lease.generations}
    assert of_dead <= {(s.trace_id, s.span_id) for s in scores(url)}


def evaluators() -> tuple[LeasedEvaluator, ...]:
    made = Choice(names=("reference", "parity")).make()
    found = [LeasedEvaluator(metric=e.metric, evaluator=e.name, version=e.version) for e in made]
    for one in made:
        one.close()
    return tuple(found)


class SeenEnoughError(Exception):
    """The test has seen enough."""


def test_a_lease_is_renewed_while_it_is_worked_on(
    url: str, store: Callable[[int, int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge that takes longer than the lease keeps it; nobody else is given its generations."""
    store(0, 1)
    begun, seen = threading.Event(), []

    def slow(_scorer: Scorer, _task: Task) -> list[Score | None]:
        begun.set()
        time.sleep(1.5)  # two tasks: three times the lease
        return [None]

    monkeypatch.setattr(Scorer, "score", slow)
    reported: list[object] = []

    def work() -> None:
        def finish(id_: str) -> bool:
            reported.append(client_finish(id_))
            raise SeenEnoughError

        with Client(url) as client:
            client_finish = client.finish_lease
            client.finish_lease = finish  # type: ignore[method-assign]
            with pytest.raises(SeenEnoughError):
                follow_rollout(
                    client,
                    "k4",
                    lambda _: None,
                    choice=Choice(names=("reference",)),
                    terms=Terms(ttl_s=1),
                )

    worker = threading.Thread(target=work)
    worker.start()
    assert begun.wait(60)
    wanted = LeaseRequest(rollout="k4", worker="other", evaluators=evaluators()[:1])
    with Client(url) as client:
        while worker.is_alive():
            seen.append(client.lease(wanted))
            time.sleep(0.1)
    worker.join()
    assert reported == [True]
    assert set(seen) == {None}


def test_a_collector_that_restarts_is_asked_again(
    url: str, store: Callable[[int, int], None]
) -> None:
    """A refusal for now, or no answer, ends no worker; a lasting refusal does."""
    store(0, 1)
    answers = [
        ClientError("busy", status=503),
        ClientError("nothing answers"),
        ClientError("x", status=403),
    ]
    with Client(url) as client:

        def lease(*_: object, **__: object) -> None:
            raise answers.pop(0)

        client.lease = lease  # type: ignore[method-assign, assignment]
        with pytest.raises(ClientError, match="x"):
            follow_rollout(client, "k4", lambda _: None, choice=Choice(names=("parity",)))
    assert answers == []


def test_a_worker_waits_for_its_rollout(url: str, store: Callable[[int, int], None]) -> None:
    """It says for what, and begins when the first span arrives."""
    worker = following(url)
    assert worker.stderr is not None
    assert worker.stderr.readline() == (
        "waiting up to 600 s: rollout k4: the collector holds no such rollout; it holds none at "
        "all\n"
    )
    store(0, 4)
    wait_for(url, 4)
    assert ended(worker) >= 4


def test_a_worker_does_not_wait_for_ever(url: str) -> None:
    """A mistyped name ends with exit code 2."""
    worker = following(url, "--wait", "0.1")
    _, words = worker.communicate()
    assert worker.returncode == 2
    assert words.splitlines()[-1].startswith("error: rollout k4: the collector holds no such")

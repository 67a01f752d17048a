"""Where scoring happens: in this process, or in several."""

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from collector.contract import Score
from evals.errors import EvaluatorError
from evals.evaluation.scoring import Choice, Scorer, Task

CHUNK = 16
_scorer: Scorer | None = None


class Scored(NamedTuple):
    """What became of one task: a score, or None where it does not apply, for each it lacked."""

    task: Task
    scores: list[Score | None]


Scoring = Callable[[Iterable[Task]], Iterator[Scored]]
"""Yields each task's scores, in the order of the tasks."""


def scored(choice: Choice, tasks: Iterable[Task], *, workers: int) -> Iterator[Scored]:
    """Yield each task's scores, in the order of the tasks.

    With one worker in this process, else in so many others. Raises `EvaluatorError` where one of
    those ended: what was yielded before stays.
    """
    with scoring(choice, workers=workers) as score:
        yield from score(tasks)


@contextmanager
def scoring(choice: Choice, *, workers: int) -> Iterator[Scoring]:
    """Make the evaluators once, for one round of tasks after the other; as `scored`."""
    if workers == 1:
        scorer = Scorer(choice.make())
        try:
            yield partial(_here, scorer)
        finally:
            scorer.close()
        return
    pool = ProcessPoolExecutor(
        workers,
        # A fork would share the parent's connections and locks.
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(choice,),
    )
    try:
        yield partial(_elsewhere, pool, workers)
    except BrokenProcessPool as exc:
        raise EvaluatorError(
            "a worker process ended (was it killed, or out of memory?); run the command again, "
            "with fewer workers: what was posted is kept"
        ) from exc
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _here(scorer: Scorer, tasks: Iterable[Task]) -> Iterator[Scored]:
    for task in tasks:
        yield Scored(task, scorer.score(task))


def _elsewhere(pool: ProcessPoolExecutor, workers: int, tasks: Iterable[Task]) -> Iterator[Scored]:
    waiting: deque[tuple[list[Task], Future[list[list[Score | None]]]]] = deque()
    for chunk in _chunks(tasks):
        waiting.append((chunk, pool.submit(_score, chunk)))
        if len(waiting) > 2 * workers:
            yield from _done(*waiting.popleft())
    while waiting:
        yield from _done(*waiting.popleft())


def _done(chunk: list[Task], future: "Future[list[list[Score | None]]]") -> Iterator[Scored]:
    for task, scores in zip(chunk, future.result(), strict=True):
        yield Scored(task, scores)


def _chunks(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    chunk: list[Task] = []
    for task in tasks:
        chunk.append(task)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _begin(choice: Choice) -> None:
    """Make a worker's evaluators; they live as long as it does."""
    global _scorer  # noqa: PLW0603  # a worker process has one, and only functions reach it
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent tells it when to end
    _scorer = Scorer(choice.make())


def _score(chunk: list[Task]) -> list[list[Score | None]]:
    if _scorer is None:
        raise EvaluatorError("a worker process was asked before it began")
    return [_scorer.score(task) for task in chunk]

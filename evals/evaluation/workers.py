"""Run the scoring in this process or in several worker processes."""

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
    """A task and its results: one for each lacking score, None if the metric does not apply."""

    task: Task
    scores: list[Score | None]


Scoring = Callable[[Iterable[Task]], Iterator[Scored]]
"""Yields each task's scores, in the order of the tasks."""


def scored(choice: Choice, tasks: Iterable[Task], *, workers: int) -> Iterator[Scored]:
    """Yield each task's scores, in the order of the tasks.

    With one worker the scoring runs in this process, otherwise in that many worker processes.
    Raises `EvaluatorError` if a worker process ends; results yielded before are valid.
    """
    with scoring(choice, workers=workers) as score:
        yield from score(tasks)


@contextmanager
def scoring(choice: Choice, *, workers: int) -> Iterator[Scoring]:
    """Make the evaluators once, for several series of tasks; otherwise like `scored`."""
    if workers == 1:
        scorer = Scorer(choice.make())
        try:
            yield partial(_in_this_process, scorer)
        finally:
            scorer.close()
        return
    pool = ProcessPoolExecutor(
        workers,
        # A fork would share the parent's connections and locks.
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_initialize,
        initargs=(choice,),
    )
    try:
        yield partial(_in_workers, pool, workers)
    except BrokenProcessPool as exc:
        raise EvaluatorError(
            "a worker process ended (was it killed, or out of memory?); run the command again, "
            "with fewer workers: what was posted is kept"
        ) from exc
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_this_process(scorer: Scorer, tasks: Iterable[Task]) -> Iterator[Scored]:
    for task in tasks:
        yield Scored(task, scorer.score(task))


def _in_workers(pool: ProcessPoolExecutor, workers: int, tasks: Iterable[Task]) -> Iterator[Scored]:
    waiting: deque[tuple[list[Task], Future[list[list[Score | None]]]]] = deque()
    for chunk in _chunks(tasks):
        waiting.append((chunk, pool.submit(_score, chunk)))
        if len(waiting) > 2 * workers:
            yield from _results(*waiting.popleft())
    while waiting:
        yield from _results(*waiting.popleft())


def _results(chunk: list[Task], future: "Future[list[list[Score | None]]]") -> Iterator[Scored]:
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


def _initialize(choice: Choice) -> None:
    """Make a worker process's evaluators, which live as long as the process."""
    global _scorer  # noqa: PLW0603  # one per worker process; tasks can only call functions
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the worker
    _scorer = Scorer(choice.make())


def _score(chunk: list[Task]) -> list[list[Score | None]]:
    if _scorer is None:
        raise EvaluatorError("a worker process got a task before it was initialized")
    return [_scorer.score(task) for task in chunk]

"""The stream of examples, and its lines as a workload file."""

import json
import random
from collections.abc import Callable, Iterator, Mapping

from training.desk import chat, code, rag, tool_call
from training.desk.example import COHORTS, Cohort, Example, Split

MAX_TOKENS = 64

_DRAW: Mapping[Cohort, Callable[[random.Random], Example]] = {
    "rag": rag.draw,
    "tool_call": tool_call.draw,
    "code": code.draw,
    "chat": chat.draw,
}


def examples(split: Split, seed: int, per_cohort: int) -> Iterator[Example]:
    """Yield `per_cohort` examples of each cohort, the cohorts interleaved.

    Each cohort has its own stream of random numbers, so a larger `per_cohort` continues a smaller
    one. Held-out examples differ in their slots; training examples may repeat.
    """
    streams = [_stream(cohort, split, seed) for cohort in COHORTS]
    for _ in range(per_cohort):
        for stream in streams:
            yield next(stream)


def _stream(cohort: Cohort, split: Split, seed: int) -> Iterator[Example]:
    rng = random.Random(f"{seed}/{split}/{cohort}")  # noqa: S311 - text, not secrets
    seen: set[tuple[str, ...]] = set()
    while True:
        example = _DRAW[cohort](rng)
        key = (example.topic, *example.slots)
        if example.split != split or key in seen:
            continue
        if split == "heldout":
            seen.add(key)
        yield example


def workload_lines(split: Split, seed: int, per_cohort: int) -> Iterator[str]:
    """Yield the workload file's lines; a key that does not apply is absent."""
    for index, example in enumerate(examples(split, seed, per_cohort)):
        number = index // len(COHORTS) + 1
        yield json.dumps(_record(example, f"{example.cohort}-{number:04d}")) + "\n"


def _record(example: Example, identifier: str) -> dict[str, object]:
    record: dict[str, object] = {
        "id": identifier,
        "cohort": example.cohort,
        "messages": [{"role": "user", "content": example.prompt}],
        "max_tokens": MAX_TOKENS,
    }
    if example.context:
        record["context"] = list(example.context)
    record["reference"] = example.reference
    if example.schema is not None:
        record["schema"] = example.schema
    record["dims"] = {"topic": example.topic}
    return record

"""False alarms and recall of the checks of an answer's format.

    python benchmarks/format_drift.py --data FOLDER [--limit N]

FOLDER holds groundedness/ragtruth_qa and halueval_general (whole answers of six models and of
ChatGPT) and task/tau_airline_gpt4o_trajectories (an agent's turns), as gzipped JSON lines. A fault
is planted into each answer of at least 20 words, at a seeded random position.
"""

import argparse
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.graders.generation import generation, text
from evals.evaluators import FormatDrift

_SEED = 20261121
_KANJI = "これは別の言語で書かれた文章です。"


class Real(NamedTuple):
    """A real answer to a real prompt."""

    source: str
    prompt: str
    answer: str


def answers(data: Path) -> Iterator[Real]:
    """Yield the real answers."""
    for row in _rows(data / "groundedness/ragtruth_qa.jsonl.gz"):
        passages = row.get("context")
        joined = passages if isinstance(passages, str) else "\n".join(passages or [])
        yield Real("ragtruth_qa", f"{row.get('question', '')}\n{joined}", row["answer"])
    for row in _rows(data / "groundedness/halueval_general.jsonl.gz"):
        yield Real("halueval_general", row["prompt"], row["answer"])
    for row in _rows(data / "task/tau_airline_gpt4o_trajectories.jsonl.gz"):
        before = ""
        for message in row["traj"]:
            if message["role"] == "assistant" and message.get("content"):
                yield Real("tau_airline", before, message["content"])
            before += f"\n{message.get('content') or ''}"


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def _cut(answer: str, chosen: random.Random) -> str:
    return answer[: chosen.randrange(len(answer) // 4, len(answer) - 10)]


def _loop(answer: str, chosen: random.Random) -> str:
    words = answer.split()
    length = chosen.randrange(1, 13)
    at = chosen.randrange(length, len(words))
    return " ".join(words[:at] + words[at - length : at] * (5 + 24 // length))


def _inside(piece: str) -> Callable[[str, random.Random], str]:
    def plant(answer: str, chosen: random.Random) -> str:
        at = chosen.randrange(len(answer))
        return answer[:at] + piece + answer[at:]

    return plant


FAULTS: dict[str, Callable[[str, random.Random], str]] = {
    "empty": lambda _answer, _chosen: "",
    "cut anywhere, finish reason lost": _cut,
    "loop": _loop,
    "template token": _inside("<|im_end|>"),
    "end-of-text token": lambda answer, _chosen: answer + "</s>",
    "next turn opened": lambda answer, _chosen: answer + "\nUser: And then?",
    "stop sequence": _inside("###STOP###"),
    "half a character": _inside("\ufffd"),
    "other script": _inside(_KANJI * 2),
}


def main() -> None:
    """Judge the unchanged answers, then the answers with each fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--limit", type=int)
    given = parser.parse_args()
    if given.data is None:
        print(json.dumps({"skipped": "give --data, the folder of the public data sets"}))
        return
    evaluator, counts, found = FormatDrift(), Counter[str](), Counter[str]()
    alarms: list[Any] = []
    planted = 0
    for number, real in enumerate(answers(given.data)):
        if given.limit is not None and number >= given.limit:
            break
        judged = _judge(evaluator, real, real.answer)
        counts[real.source] += 1
        if judged is not None:
            counts[f"{real.source}: {judged}"] += 1
            alarms.append((real.source, judged, real.answer[-60:]))
            continue
        if len(real.answer.split()) < 20 or len(real.answer) < 60:
            continue
        planted += 1
        for name, plant in FAULTS.items():
            chosen = random.Random(f"{_SEED} {number} {name}")  # noqa: S311
            found[name] += _judge(evaluator, real, plant(real.answer, chosen)) is not None
    result = {
        "answers": dict(sorted(counts.items())),
        "planted": planted,
        "found": {name: round(n / planted, 4) for name, n in found.items()},
        "alarms": alarms[:40],
    }
    print(json.dumps(result, indent=1, ensure_ascii=False))
    print(json.dumps(result))


def _judge(evaluator: FormatDrift, real: Real, answer: str) -> str | None:
    """Return the fault found, or None."""
    before = [{"role": "user", "parts": text(real.prompt)}]
    given = generation("", text(answer), before)
    score = evaluator.score(replace(given, stop_sequences=("###STOP###",)))
    assert score is not None
    return None if score.value == 1.0 else score.label


if __name__ == "__main__":
    main()

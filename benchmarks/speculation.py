"""Speedup, acceptance and output identity of speculation on the demo's pair, by cohort and method.

Every prompt is answered by all methods in rotating order, so that drift of the machine affects all
methods equally. Speedups are medians over prompts of the baseline's end-to-end time divided by the
method's. Prints a table, and one JSON document last.

    python benchmarks/speculation.py --prompts-per-cohort 10 --identity-layers 8
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from importlib.metadata import version

from demo.story import DRAFT, IDENTITY_LAYERS, TARGET, WORKLOAD
from engine_adapter import workload
from engine_adapter.engines import Answer, Engine, EngineOpener, Item, Request
from engine_adapter.routes import TransformersRoute

BASELINE = "baseline"


@dataclass(slots=True)
class Tally:
    """The results of one method in one cohort."""

    ratios: list[float] = field(default_factory=list)
    """The baseline's end-to-end time divided by this method's, per prompt."""
    seconds: float = 0.0
    output_tokens: int = 0
    steps: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0
    identical: int = 0

    def report(self) -> dict[str, float | int | None]:
        """Return the figures; a ratio without a denominator is null."""
        return {
            "prompts": len(self.ratios),
            "speedup_median": round(statistics.median(self.ratios), 3),
            "output_tokens_per_s": round(self.output_tokens / self.seconds, 1),
            "acceptance_rate": _ratio(self.accepted_tokens, self.draft_tokens),
            "acceptance_length": (
                round(1 + self.accepted_tokens / self.steps, 3) if self.steps else None
            ),
            "identical_texts": self.identical,
        }


def main() -> None:
    """Run the benchmark."""
    arguments = _arguments()
    engines = _engines(arguments.identity_layers)
    tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
    prompts = workload.read(WORKLOAD)[: 4 * arguments.prompts_per_cohort]
    names = list(engines)
    for name in names:  # warm-up, not counted
        _answer(engines[name], prompts[0])
    for number, prompt in enumerate(prompts):
        turn = number % len(names)
        answers = {name: _answer(engines[name], prompt) for name in names[turn:] + names[:turn]}
        baseline_s, baseline = answers[BASELINE]
        for name, (seconds, completion) in answers.items():
            for cohort in (prompt.cohort, "all"):
                _add(tallies[name, cohort], baseline_s / seconds, seconds, completion)
                tallies[name, cohort].identical += completion.text == baseline.text
        print(f"\r{number + 1}/{len(prompts)} prompts", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    _print(names, tallies, arguments.identity_layers)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts-per-cohort", type=int, default=5)
    parser.add_argument("--identity-layers", type=int, default=IDENTITY_LAYERS)
    return parser.parse_args()


def _engines(identity_layers: int) -> dict[str, Engine]:
    opener = EngineOpener()
    plain = TransformersRoute(model=str(TARGET), identity_layers=identity_layers)
    draft = {"draft_model": str(DRAFT)}
    updates: dict[str, dict[str, object]] = {BASELINE: {}}
    updates |= {f"draft k={k}": draft | {"num_speculative_tokens": k} for k in (2, 4, 6)}
    updates["lookup k=4"] = {"prompt_lookup_num_tokens": 4}
    updates["draft k=4 lossy"] = updates["draft k=4"] | {"relaxed_top_k": 10}
    return {
        name: asyncio.run(opener.open(plain.model_copy(update=update)))
        for name, update in updates.items()
    }


def _answer(engine: Engine, prompt: workload.Prompt) -> tuple[float, Answer]:
    request = Request(messages=prompt.chat, max_tokens=prompt.max_tokens or 64)
    started_s = time.perf_counter()
    *_, completion = asyncio.run(_items(engine, request))
    assert isinstance(completion, Answer)
    return time.perf_counter() - started_s, completion


async def _items(engine: Engine, request: Request) -> list[Item]:
    return [item async for item in engine.generate(request)]


def _add(tally: Tally, ratio: float, seconds: float, completion: Answer) -> None:
    tally.ratios.append(ratio)
    tally.seconds += seconds
    tally.output_tokens += completion.output_tokens or 0
    if completion.speculation is not None:
        tally.steps += completion.speculation.steps or 0
        tally.draft_tokens += completion.speculation.draft_tokens or 0
        tally.accepted_tokens += completion.speculation.accepted_tokens or 0


def _print(names: list[str], tallies: dict[tuple[str, str], Tally], identity_layers: int) -> None:
    cohorts = [*sorted({cohort for _, cohort in tallies} - {"all"}), "all"]
    print("| method | " + " | ".join(cohorts) + " | tok/s | same text |")
    print("|" + "---|" * (len(cohorts) + 3))
    for name in names:
        cells = []
        for cohort in cohorts:
            figures = tallies[name, cohort].report()
            rate = figures["acceptance_rate"]
            cells.append(
                f"{figures['speedup_median']}×" + (f", {rate}" if rate is not None else "")
            )
        whole = tallies[name, "all"].report()
        cells += [str(whole["output_tokens_per_s"]), f"{whole['identical_texts']}"]
        print(f"| {name} | " + " | ".join(cells) + " |")
    document = {
        "benchmark": "speculation",
        "identity_layers": identity_layers,
        "machine": {"cpus": os.cpu_count(), "processor": platform.machine()},
        "versions": {name: version(name) for name in ("torch", "transformers")},
        "results": [
            {"method": name, "cohort": cohort} | tallies[name, cohort].report()
            for name in names
            for cohort in cohorts
        ],
    }
    print(json.dumps(document))


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


if __name__ == "__main__":
    main()

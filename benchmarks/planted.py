"""End-to-end verdicts on equal arms and on three regressions planted in a real engine.

The demo's model pair answers the demo's prompts in this process (transformers, CPU); the spans are
stored, evaluators score them, and the gate decides. Prints the outcome and the cells that did not
pass. In A/A runs both arms speculate in the same way; no run may fail.

    python -m benchmarks.planted [--prompts 160] [--equal 20] [--equal-prompts 40]
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from collector.client import Client
from collector.contract import Arm, Generation, Outcome, Role, Verdict, encode
from demo.story import DRAFT, TARGET, WORKLOAD
from engine_adapter import workload
from engine_adapter.engines import Chunk, Engine, EngineInfo, EngineOpener, Request
from engine_adapter.engines.base import Item, Probe
from engine_adapter.routes import Route, TransformersRoute
from engine_adapter.run import journal, runner
from engine_adapter.run.load_shape import Load
from engine_adapter.run.rollout_file import Sampling
from engine_adapter.run.schedule import turns
from evals import policy, source
from evals.evaluation.evaluate import evaluate_rollout
from tests.support.otlp_bodies import export_request

POLICY = """
version: 1
name: planted
prove:
  - {metric: task_completion, stat: diff, min: -0.05, scope: pooled}
  - {metric: ttft, stat: p95_ratio, max: 1.25, scope: pooled}
  - {metric: failures, stat: diff, max: 0.03, scope: pooled}
guard:
  - {metric: task_completion, stat: diff, min: -0.10, scope: cohort}
  - {metric: groundedness, stat: diff, min: -0.10, scope: cohort, cohorts: [rag]}
"""
SLOW_S, SLOW_EVERY = 0.030, 20
RELAXED_TOP_K = 4
KEPT = 0.6
"""The share of a prompt's text that a truncating route keeps."""


class Wrapped:
    """A route that delegates to an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def info(self) -> EngineInfo:
        """The wrapped engine's info."""
        return self._engine.info

    def request_body(self, request: Request) -> Mapping[str, Any]:  # Any: JSON values
        """Return the wrapped engine's request."""
        return self._engine.request_body(request)

    async def probe(self) -> Probe:
        """Probe the wrapped engine."""
        return await self._engine.probe()

    async def close(self) -> None:
        """Close the wrapped engine."""
        await self._engine.close()


class Truncating(Wrapped):
    """A route that truncates each prompt, like one with too short a context."""

    def generate(self, request: Request) -> AsyncGenerator[Item, None]:
        """Answer only the beginning of the last message."""
        last = request.messages[-1]
        cut = last.model_copy(update={"content": last.text[: int(len(last.text) * KEPT)]})
        return self._engine.generate(replace(request, messages=(*request.messages[:-1], cut)))


class Sleeping(Wrapped):
    """A route that sleeps before the first token of every twentieth answer."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._asked = 0

    async def generate(self, request: Request) -> AsyncGenerator[Item, None]:
        """Answer, every twentieth time with a delay."""
        self._asked += 1
        late_s = SLOW_S if self._asked % SLOW_EVERY == 0 else 0.0
        slept = False
        async with aclosing(self._engine.generate(request)) as items:
            async for item in items:
                if isinstance(item, Chunk):
                    if not slept:
                        await asyncio.sleep(late_s)
                    slept = True
                    yield replace(item, at_s=item.at_s + late_s)
                else:
                    yield item


class Planted(NamedTuple):
    """A candidate with a planted regression."""

    name: str
    route: TransformersRoute
    wrap: Any = None
    """Any: a class of wrapping engines, or None."""


def speculating(**fields: Any) -> TransformersRoute:
    """Return the demo's speculating route."""
    plain = {"engine": "transformers", "model": str(TARGET), "draft_model": str(DRAFT)}
    return TransformersRoute(**(plain | {"num_speculative_tokens": 4} | fields))


def regressions() -> tuple[Planted, ...]:
    """Return the three candidates."""
    return (
        Planted("truncates its context", speculating(), Truncating),
        Planted("accepts too much", speculating(relaxed_top_k=RELAXED_TOP_K)),
        Planted("sleeps 30 ms on 5 % of first tokens", speculating(), Sleeping),
    )


def judged(planted: Planted, prompts: int, *, seed: int = 1) -> Verdict:
    """Replay the candidate against the unchanged speculating route, score, and decide."""
    routes = {Arm.BASELINE: speculating(), Arm.CANDIDATE: planted.route}
    answers = asyncio.run(answered(routes, prompts, seed=seed, wrap=planted.wrap))
    spans = [encode(one) for one in answers]
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/planted.db"
        with Client.local(url, capture_content=True) as client:
            client.post_traces(export_request(spans).SerializeToString())
            evaluate_rollout(client, "planted")
            return source.judge(client, "planted", policy.parse(POLICY, "planted.yaml"))


async def answered(
    routes: Mapping[Arm, Route],
    prompts: int,
    *,
    seed: int,
    wrap: Any = None,  # Any: a class that wraps the candidate's engine, or None
    max_tokens: int = 64,
) -> list[Generation]:
    """Return both arms' generations."""
    opener, generations = EngineOpener(), list[Generation]()
    async with AsyncExitStack() as opened:
        engines: dict[str, Engine] = {}
        for arm, route in routes.items():
            engines[arm] = await opener.open(route)
            opened.push_async_callback(engines[arm].close)
        if wrap is not None:
            engines[Arm.CANDIDATE] = wrap(engines[Arm.CANDIDATE])
        experiment = runner.Experiment(
            rollout="planted",
            engines=engines,
            sampling=Sampling(temperature=0, max_tokens=max_tokens, seed=seed),
            journal=journal.unwritten(),
        )
        schedule = turns(workload.read(WORKLOAD)[:prompts], Load(warmup=4), seed=seed, trace=())
        await runner.run(experiment, schedule, concurrency=1, record=generations.append)
    return generations


def not_passed(verdict: Verdict) -> dict[str, str]:
    """Return the outcomes of cells that did not pass."""
    return {
        f"{f.metric} {f.stat} {f.cohort or 'pooled'}": f.outcome.value
        for f in verdict.findings
        if f.outcome is not Outcome.PASS and f.role is not Role.REPORT
    }


def main() -> int:
    """Print one JSON document last; exit 1 if a regression passes or equal arms fail."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--prompts", type=int, default=160)
    parser.add_argument("--equal", type=int, default=20)
    parser.add_argument("--equal-prompts", type=int, default=40)
    args = parser.parse_args()
    started, rows = time.process_time(), []
    for planted in regressions() if args.prompts else ():
        verdict = judged(planted, args.prompts)
        row = {"planted": planted.name, "outcome": verdict.outcome.value,
               "not_passed": not_passed(verdict)}  # fmt: skip
        print(json.dumps(row), flush=True)
        rows.append(row)
    equal = []
    for run in range(args.equal):
        both = Planted("none", speculating())
        verdict = judged(both, args.equal_prompts, seed=run)
        equal.append(verdict.outcome.value)
        print(json.dumps({"equal": run, "outcome": equal[-1], "failed": [
            name for name, outcome in not_passed(verdict).items() if outcome == "fail"
        ]}), flush=True)  # fmt: skip
    document = {
        "benchmark": "planted",
        "prompts": args.prompts,
        "regressions": rows,
        "equal": {o.value: equal.count(o.value) for o in Outcome},
        "cpu_seconds": round(time.process_time() - started, 1),
    }
    print(json.dumps(document))
    return int("fail" in equal or any(row["outcome"] == "pass" for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())

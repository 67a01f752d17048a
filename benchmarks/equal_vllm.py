"""A/A runs of vLLM: both arms are the same server's route, run after run; no run may fail.

vLLM serves the demo's target model on the CPU, from the environment created by `make engines`; with
`--speculating` it uses the demo's draft model. Each run is judged from its spans like a release:
task completion, failures, the tail of TTFT, and equality of greedy answers.

    python -m benchmarks.equal_vllm [--runs 20] [--prompts 40] [--max-tokens 32] [--speculating]
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import vllm_server

from benchmarks.planted import POLICY, answered, not_passed
from collector.client import Client
from collector.contract import Arm, Generation, Outcome, Verdict, encode
from demo.story import DRAFT, TARGET
from engine_adapter.routes import HttpRoute
from evals import policy
from evals.evaluation.evaluate import evaluate_rollout
from evals.evidence.pairs_table import from_table
from evals.gate import decide
from evals.lossless.answers import with_divergences
from evals.source import load_pairs
from tests.support.otlp_bodies import export_request

LOSSLESS = "lossless: {greedy: {max_tie_gap: auto, hazard_ratio_max: 1.5}}\n"
SPECULATION = {
    "method": "draft_model",
    "model": str(DRAFT),
    "num_speculative_tokens": vllm_server.DRAFT_TOKENS,
}


def judged(generations: list[Generation], rollout: str) -> Verdict:
    """Store the answers, score them, compare their texts, and decide."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/equal.db"
        with Client.local(url, capture_content=True) as client:
            spans = [encode(one) for one in generations]
            client.post_traces(export_request(spans).SerializeToString())
            evaluate_rollout(client, rollout)
            table = with_divergences(client, rollout, load_pairs(client, rollout), None)
    rules = policy.parse(POLICY.replace("prove:", f"{LOSSLESS}prove:"), "equal.yaml")
    return decide(from_table(table), rules, rollout=rollout)


def main() -> int:
    """Print one JSON document last; exit 1 if a run fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--prompts", type=int, default=40)
    parser.add_argument("--max-tokens", type=int, default=32)
    parser.add_argument("--speculating", action="store_true")
    args = parser.parse_args()
    outcomes, cells, same, started = list[str](), dict[str, int](), list[str](), time.monotonic()
    speculation = SPECULATION if args.speculating else None
    with vllm_server.serving(TARGET, speculation=speculation) as root:
        route = HttpRoute(engine="vllm", url=f"{root}/v1", model="served")
        for run in range(args.runs):
            both = {Arm.BASELINE: route, Arm.CANDIDATE: route}
            generations = asyncio.run(
                answered(both, args.prompts, seed=run, max_tokens=args.max_tokens)
            )
            verdict = judged(generations, "planted")
            failed = [name for name, out in not_passed(verdict).items() if out == "fail"]
            outcomes.append(verdict.outcome.value)
            for finding in verdict.findings:
                key = f"{finding.metric} {finding.stat} {finding.outcome.value}"
                cells[key] = cells.get(key, 0) + 1
            same += [f.message for f in verdict.findings if f.metric == "greedy_divergence"]
            row = {"run": run, "outcome": outcomes[-1], "failed": failed, "greedy": same[-1]}
            print(json.dumps(row, ensure_ascii=False), flush=True)
    document = {
        "benchmark": "equal_vllm",
        "prompts": args.prompts,
        "speculating": args.speculating,
        "outcomes": {o.value: outcomes.count(o.value) for o in Outcome},
        "cells": dict(sorted(cells.items())),
        "seconds": round(time.monotonic() - started, 1),
    }
    print(json.dumps(document))
    return int("fail" in outcomes)


if __name__ == "__main__":
    raise SystemExit(main())

"""CPU cost of `draftgate watch` per pair, and its error rates over 100 looks.

The cost is measured against a collector in its own process: pairs of five cohorts with two scores
arrive in rounds, and each round is processed in one poll under the default policy. Reports the CPU
time of the watch, and of the collector while it answers the watch. Error rates are those of the
watch's state machine over simulated rollouts.

    python -m benchmarks.watch [--rounds 8] [--pairs 2000] [--rollouts 300] [--seed 20261121]
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.simulation.live_traffic import peeking
from collector.client import Client
from collector.contract import Arm, Generation, Score, encode
from demo.collector_process import running
from evals import policy
from evals.watch.watcher import Watcher
from tests.support.otlp_bodies import export_request

COHORTS = ("chat", "code", "json", "rag", "tool_call")
METRICS = ("task_completion", "groundedness")
_WANTED_PAIRS_A_S = 1000


class Round(NamedTuple):
    """The CPU time of counting one round."""

    pairs: int
    watch_cpu_s: float
    collector_cpu_s: float
    document_bytes: int


def main() -> int:
    """Print one JSON document last; exit 1 below 1,000 pairs a second, or beyond .05 (+ 2 SE)."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--rollouts", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20261121)
    args = parser.parse_args()
    rates = list(peeking(args.rollouts, args.seed)) if args.rollouts else []
    for rate in rates:
        print(f"| {rate.check} | {rate.what} | {rate.n:,} | {rate.rate:.3f} |", flush=True)
    rounds = list(cost(args.rounds, args.pairs, args.seed)) if args.rounds else []
    seconds = sum(r.watch_cpu_s for r in rounds)
    a_second = sum(r.pairs for r in rounds) / seconds if seconds else None
    slack = 2 * (0.05 * 0.95 / max(args.rollouts, 1)) ** 0.5
    missed = [r for r in rates if r.at_most is not None and r.rate > r.at_most + slack]
    document = {
        "benchmark": "watch",
        "seed": args.seed,
        "pairs_a_cpu_second": None if a_second is None else round(a_second),
        "collector_cpu_ms_a_pair": round(
            sum(r.collector_cpu_s for r in rounds) / max(sum(r.pairs for r in rounds), 1) * 1e3, 3
        ),
        "load_average": [round(x, 1) for x in psutil.getloadavg()],
        "rounds": [r._asdict() for r in rounds],
        "rates": [asdict(r) for r in rates],
    }
    print(json.dumps(document))
    return int(bool(missed) or (a_second is not None and a_second < _WANTED_PAIRS_A_S))


def cost(rounds: int, pairs: int, seed: int) -> Iterator[Round]:
    """Store pairs and let the watch count them, round by round."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with running(Path(folder) / "draftgate.db", log) as url, Client(url) as client:
            served = _listener(url)
            watcher = Watcher(client, "live", policy.shipped("default"))
            for number in range(rounds):
                _arrive(client, rng, number * pairs, pairs)
                own, others = time.process_time(), sum(served.cpu_times()[:2])
                watcher.catch_up()
                watch_s = round(time.process_time() - own, 3)
                collector_s = round(sum(served.cpu_times()[:2]) - others, 3)
                size = len(json.dumps(client._connection.get("/api/v1/rollouts/live/watches")))  # noqa: SLF001
                yield Round(pairs, watch_s, collector_s, size)


def _listener(url: str) -> psutil.Process:
    port = int(url.rpartition(":")[2])
    for child in psutil.Process().children(recursive=True):
        if any(c.laddr.port == port for c in child.net_connections() if c.status == "LISTEN"):
            return child
    raise SystemExit(f"nothing listens on {url}")


def _arrive(client: Client, rng: np.random.Generator, first: int, pairs: int) -> None:
    """Store pairs with their scores, 500 at a time."""
    for start in range(first, first + pairs, 500):
        sides = [
            _generation(rng, number, arm)
            for number in range(start, min(start + 500, first + pairs))
            for arm in tuple(Arm)[:: 1 if number % 2 else -1]
        ]
        body = export_request([encode(one) for one in sides]).SerializeToString()
        client.post_traces(body)
        client.post_scores(
            Score(
                trace_id=one.trace_id,
                span_id=one.span_id,
                metric=metric,
                evaluator="benchmark",
                version="1",
                value=float(rng.random() < 0.9),
            )
            for one in sides
            for metric in METRICS
        )


def _generation(rng: np.random.Generator, number: int, arm: Arm) -> Generation:
    start, ttft_s = 10**18 + number * 10**6, float(rng.lognormal(-2, 0.3))
    tokens = int(rng.integers(20, 400))
    return Generation(
        trace_id=f"{number + 1:032x}",
        span_id=f"{2 * number + (arm is Arm.CANDIDATE) + 1:016x}",
        start_unix_ns=start,
        end_unix_ns=start + int((ttft_s + tokens * 0.01) * 1e9),
        rollout="live",
        arm=arm,
        cohort=COHORTS[number % len(COHORTS)],
        prompt_id=f"{number:09}",
        repeat=0,
        ttft_s=ttft_s,
        tpot_s=0.01,
        output_tokens=tokens,
    )


if __name__ == "__main__":
    raise SystemExit(main())

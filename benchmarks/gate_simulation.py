"""Error rates of the gate, against every bound of its design, simulated with fixed seeds.

Each row simulates many rollouts. If the truth is exactly at the margin, at most 5 % may pass; a
rate of .05 over 2,000 rollouts has a standard error of .005, so .06 is allowed. Other rows show how
often common methods pass on the same data.

    python benchmarks/gate_simulation.py [--rollouts 2000] [--releases 300] [--seed 20261121]

With `--sizes` only the power of the whole gate is simulated, with that many pairs per cohort:

    python benchmarks/gate_simulation.py --sizes 2000 2250 2500 --releases 400
"""

import argparse
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.simulation import methods
from benchmarks.simulation.release import power, whole_gate


def rows(rollouts: int, releases: int, seed: int) -> Iterable[methods.Rate]:
    """Yield the rates of every check."""
    return chain(
        methods.tail_latency(rollouts, seed),
        methods.task_completion(rollouts, seed),
        methods.groundedness(rollouts, seed),
        methods.peeking(rollouts, seed),
        whole_gate(releases, seed),
        methods.other_methods(rollouts, seed),
    )


def line(rate: methods.Rate) -> str:
    """Return a row of the Markdown table."""
    bound = "" if rate.at_most is None else f"≤ {rate.at_most:.2f}"
    bound = bound if rate.at_least is None else f"≥ {rate.at_least:.2f}"
    met = {None: "", True: "yes", False: "**no**"}[rate.met]
    what = rate.what.replace("_", " ")
    return f"| {rate.check} | {what} | {rate.n:,} | {bound} | {rate.rate:.3f} | {met} |"


def printed(benchmark: str, first: str, seed: int, rates: Iterable[methods.Rate]) -> int:
    """Print each rate when it is ready, then one JSON document; return 1 if a bound is missed."""
    started, found = time.process_time(), []
    print(f"| {first} | What | n | Required | Measured | Met |\n|---|---|---|---|---|---|")
    for rate in rates:
        found.append(rate)
        print(line(rate), flush=True)
    document = {
        "benchmark": benchmark,
        "seed": seed,
        "cpu_seconds": round(time.process_time() - started, 1),
        "missed": [asdict(rate) for rate in found if rate.met is False],
        "rows": [asdict(rate) for rate in found],
    }
    print(json.dumps(document))
    return int(any(rate.met is False for rate in found))


def main() -> int:
    """Print the Markdown table, then one JSON document; exit 1 if a bound is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=2000)
    parser.add_argument("--releases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--sizes", type=int, nargs="+", default=[])
    args = parser.parse_args()
    chosen = power(args.sizes, args.releases, args.seed) if args.sizes else None
    rates = chosen or rows(args.rollouts, args.releases, args.seed)
    return printed("gate_simulation", "Check", args.seed, rates)


if __name__ == "__main__":
    raise SystemExit(main())

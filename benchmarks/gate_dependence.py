"""Error rates of the gate for requests that depend on each other in time, by fixed seeds.

Each row simulates many rollouts of one cell from one law. At the margin at most 7 % may pass; of
equal arms at most 5 % may fail, at the level corrected for twenty cells. Rows with `stretch 1` have
outages that the policy does not declare, and no bound.

    python -m benchmarks.gate_dependence [--rollouts 500] [--seed 20261122] [--sizes 2000 10000]

With `--cost` each cell judges independent requests twice, with the gate's limits and with plain
limits on the same draws: no cell may lose more than .03 of its power.

    python -m benchmarks.gate_dependence --cost --rollouts 1000

With `--needed` each inconclusive rollout is drawn again with the further pairs that its finding
asks for: at least .75 must pass.

    python -m benchmarks.gate_dependence --needed --rollouts 100
"""

import argparse

from benchmarks.gate_simulation import printed
from benchmarks.simulation.dependence import SIZES, dependent
from benchmarks.simulation.independent import SIZES as INDEPENDENT_SIZES
from benchmarks.simulation.independent import independent
from benchmarks.simulation.needed import needed


def main() -> int:
    """Print the Markdown table, then one JSON document; exit 1 if a bound is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=500)
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--sizes", type=int, nargs="+", default=[])
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--cost", action="store_true", help="only the power lost on independent requests"
    )
    which.add_argument(
        "--needed", action="store_true", help="only whether the pairs asked for suffice"
    )
    args = parser.parse_args()
    sizes = tuple(args.sizes)
    if args.cost:
        rates = independent(args.rollouts, args.seed, sizes or INDEPENDENT_SIZES)
    elif args.needed:
        rates = needed(args.rollouts, args.seed)
    else:
        rates = dependent(args.rollouts, args.seed, sizes or SIZES)
    return printed("gate_dependence", "Law", args.seed, rates)


if __name__ == "__main__":
    raise SystemExit(main())

"""How often the gate errs where requests depend on each other in time: named laws, fixed seeds.

Each row simulates many rollouts of one cell. At the margin at most 7 % may pass; equal arms may
fail in at most 5 %, at the level that a family of twenty cells leaves. Rows with `stretch 1` have
outages that the policy did not declare: they are shown, and no bound holds for them.

    python -m benchmarks.gate_dependence [--rollouts 500] [--seed 20261122] [--sizes 2000 10000]

With `--cost` each cell judges independent requests twice, by the gate and by plain limits on the
same draws: none may lose more than .03 of its power.

    python -m benchmarks.gate_dependence --cost --rollouts 1000

With `--needed` rollouts that stay inconclusive are drawn, and then as many pairs more as their
findings name: at least .75 must pass.

    python -m benchmarks.gate_dependence --needed --rollouts 100
"""

import argparse

from benchmarks.gate_simulation import printed
from benchmarks.simulation.dependence import SIZES, dependent
from benchmarks.simulation.independent import SIZES as INDEPENDENT_SIZES
from benchmarks.simulation.independent import independent
from benchmarks.simulation.needed import needed


def main() -> int:
    """Print the Markdown table, then one JSON document; exit 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=500)
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--sizes", type=int, nargs="+", default=[])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--cost", action="store_true", help="of independent requests, alone")
    which.add_argument("--needed", action="store_true", help="of pairs that findings name, alone")
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

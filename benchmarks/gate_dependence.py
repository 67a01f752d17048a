"""How often the gate errs where requests depend on each other in time: named laws, fixed seeds.

Each row simulates many rollouts of one cell. At the margin at most 7 % may pass; equal arms may
fail in at most 5 %, at the level that a family of twenty cells leaves. Rows with `stretch 1` have
outages that the policy did not declare: they are shown, and no bound holds for them.

    python -m benchmarks.gate_dependence [--rollouts 500] [--seed 20261122] [--sizes 2000 10000]

With `--needed` rollouts that stay inconclusive are drawn, and then as many pairs more as their
findings name: at least .75 must pass.

    python -m benchmarks.gate_dependence --needed --rollouts 100
"""

import argparse

from benchmarks.gate_simulation import printed
from benchmarks.simulation.dependence import SIZES, dependent
from benchmarks.simulation.needed import needed


def main() -> int:
    """Print the Markdown table, then one JSON document; exit 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=500)
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--needed", action="store_true", help="of pairs that findings name, alone")
    args = parser.parse_args()
    law = dependent(args.rollouts, args.seed, tuple(args.sizes))
    rates = needed(args.rollouts, args.seed) if args.needed else law
    return printed("gate_dependence", "Law", args.seed, rates)


if __name__ == "__main__":
    raise SystemExit(main())

"""Error rates of the gate on goodput, by fixed seeds.

At the margin at most .06 may pass, whether requests are independent, slow together with their
neighbours (from 1,000 pairs on), split between the arms, or served by launches of several speeds;
and at most .06 may fail.

    python benchmarks/gate_goodput.py [--rollouts 1000] [--seed 20261123]
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.gate_simulation import printed
from benchmarks.simulation.goodput import goodput


def main() -> int:
    """Print the Markdown table, then one JSON document; exit 1 if a bound is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20261123)
    args = parser.parse_args()
    return printed("gate_goodput", "Cell", args.seed, goodput(args.rollouts, args.seed))


if __name__ == "__main__":
    raise SystemExit(main())

"""Error rates of a family of four candidates that share one baseline, by fixed seeds.

With every candidate at the margin, in at most .06 of families any may pass, and in at most .06 any
may fail (the level .05, and the simulation's own error). Beside it: the same candidates judged each
for itself.

    python benchmarks/gate_families.py [--rollouts 2000] [--seed 20261123]
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.gate_simulation import printed
from benchmarks.simulation.families import families


def main() -> int:
    """Print the Markdown table, then one JSON document; exit 1 if a bound is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261123)
    args = parser.parse_args()
    return printed("gate_families", "Check", args.seed, families(args.rollouts, args.seed))


if __name__ == "__main__":
    raise SystemExit(main())

"""How often the gate errs where a server's launch decides how fast it is, by fixed seeds.

Two launch modes 27 % apart, two launches of seven fast, equal arms. At the margin at most .06 may
pass, and of equal arms at most .06 fail, with three launches or more; with one launch the verdict
speaks of that launch alone, and how often it would be wrong of others stands beside.

    python benchmarks/gate_launches.py [--rollouts 2000] [--seed 20261121]
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.gate_simulation import printed
from benchmarks.simulation.launches import launched


def main() -> int:
    """Print the Markdown table, then one JSON document; exit 1 where a bound is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261121)
    args = parser.parse_args()
    return printed("gate_launches", "Cell", args.seed, launched(args.rollouts, args.seed))


if __name__ == "__main__":
    raise SystemExit(main())

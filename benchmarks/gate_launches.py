"""Error rates of the gate if a server's speed varies from launch to launch, by fixed seeds.

Launches are fast or 27 % slower, two of seven fast, in both arms alike. With three launches or
more, at the margin at most .06 may pass, and of equal arms at most .06 may fail. With one launch
the verdict holds for that launch alone; the table shows how often it is wrong about others.

    python benchmarks/gate_launches.py [--rollouts 2000] [--seed 20261121]
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.gate_simulation import printed
from benchmarks.simulation.launches import launched


def main() -> int:
    """Print the Markdown table, then one JSON document; exit 1 if a bound is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261121)
    args = parser.parse_args()
    return printed("gate_launches", "Cell", args.seed, launched(args.rollouts, args.seed))


if __name__ == "__main__":
    raise SystemExit(main())

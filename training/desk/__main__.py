"""Write a workload file: `python -m training.desk --split heldout --per-cohort 50 --out FILE`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from training.desk import SPLITS, workload_lines


def main(argv: Sequence[str] | None = None) -> None:
    """Write the file; `argv` replaces the process's arguments."""
    parser = argparse.ArgumentParser(prog="python -m training.desk", description=__doc__)
    parser.add_argument("--split", choices=SPLITS, default="heldout")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--per-cohort", type=int, default=50)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    args.out.write_text("".join(workload_lines(args.split, args.seed, args.per_cohort)))


if __name__ == "__main__":
    main()

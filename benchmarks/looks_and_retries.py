"""How often a candidate at the margin passes because of repeated looks or retries.

Simulates task completion: pairs lose or gain one answer, and the true loss is exactly the margin,
so that a pass is an error. The gate's method (Tango's limit) judges once, at ten looks at growing
data, or in ten new rollouts. The remedies are a single look, one look at the pool of all ten, and
the e-process of `draftgate watch`, which may look after every pair.

    python benchmarks/looks_and_retries.py [--rollouts 2000] [--seed 20261122]
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from evals.stats.bets import log_e_path
from evals.stats.interval import Insufficient
from evals.stats.tango import paired_difference

MARGIN, GAINED, LOST = -0.02, 0.04, 0.06
SIZES = tuple(range(200, 2001, 200))
LEVEL = 0.05
ROWS = (
    "one look at 2,000 pairs",
    "ten looks, at 200 to 2,000 pairs: any passes",
    "ten rollouts of 2,000 pairs: any passes",
    "ten rollouts judged together, once",
    "the watch, after every pair of one rollout: ever passes",
)


def passes(differences: NDArray[np.float64]) -> bool:
    """Return whether the gate's limit on the loss is within the margin."""
    gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
    found = paired_difference(
        gained, lost, len(differences), margin=MARGIN, bound="min", confidence=1 - LEVEL
    )
    return not isinstance(found, Insufficient) and found.lower is not None and found.lower >= MARGIN


def rollout(rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the candidate's score minus the baseline's for 2,000 pairs."""
    return rng.choice([1.0, -1.0, 0.0], SIZES[-1], p=[GAINED, LOST, 1 - GAINED - LOST])


def trial(rng: np.random.Generator) -> tuple[bool, ...]:
    """Return which of `ROWS` pass."""
    ten = [rollout(rng) for _ in range(10)]
    path = log_e_path(ten[0], MARGIN)
    return (
        passes(ten[0]),
        any(passes(ten[0][:size]) for size in SIZES),
        any(passes(one) for one in ten),
        passes(np.concatenate(ten)),
        bool(path.max() >= np.log(1 / LEVEL)),
    )


def main() -> None:
    """Print the Markdown table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=20261122)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    rates = np.mean([trial(rng) for _ in range(options.rollouts)], axis=0)
    print("| How a candidate at the margin is judged | Passes |\n|---|---|")
    for what, rate in zip(ROWS, rates, strict=True):
        print(f"| {what} | {rate:.3f} |")


if __name__ == "__main__":
    main()

"""False alarms and delay of the watch's alarm on acceptance, over simulated rollouts.

Each request drafts 20 to 200 tokens and accepts a share of them that varies between requests (beta
distributed around 0.6, standard deviation 0.15) and, in dependent series, with an AR(1) process on
the logit scale. A falling rollout loses 20, 15 or 10 percentage points after 2,000 requests.

    python -m benchmarks.acceptance_drift [--rollouts 1000] [--requests 10000] [--seed 20261123]
"""

import argparse
import json
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from evals.watch.acceptance import FALSE_ALARMS, alarmed_at

CORRELATIONS = (0.0, 0.5, 0.9, 0.98)
FALLS = (0.2, 0.15, 0.1)
FALLS_AFTER = 2000
_MEAN, _SD, _SWAY = 0.6, 0.15, 0.3
Floats = NDArray[np.float64]


class Alarms(NamedTuple):
    """Alarms over simulated cohorts."""

    correlation: float
    fall: float
    rollouts: int
    early: float
    """Share with an alarm before the fall; without a fall, with any alarm."""
    found: float | None
    """Share with an alarm after the fall."""
    median_delay: float | None
    """Median requests from the fall to the alarm; None if most have none."""


def rates(n: int, correlation: float, fall: float, random: np.random.Generator) -> Floats:
    """Return the acceptance rates of n requests."""
    noise = random.normal(size=n) * math.sqrt(1 - correlation**2)
    sway = _SWAY * lfilter([1.0], [1.0, -correlation], noise) if correlation else np.zeros(n)
    mean = 1 / (1 + np.exp(-(math.log(_MEAN / (1 - _MEAN)) + sway)))
    mean = mean - np.where(np.arange(n) >= FALLS_AFTER, fall, 0.0)
    size = _MEAN * (1 - _MEAN) / _SD**2 - 1
    own = random.beta(mean * size, (1 - mean) * size)
    drafted = random.integers(20, 200, n)
    return np.asarray(random.binomial(drafted, own) / drafted)


def simulated(
    correlation: float, fall: float, rollouts: int, n: int, random: np.random.Generator
) -> Alarms:
    """Return the alarms of one kind of series."""
    at = np.array(
        [alarmed_at(rates(n, correlation, fall, random)) or math.inf for _ in range(rollouts)]
    )
    if not fall:
        return Alarms(correlation, fall, rollouts, float((at <= n).mean()), None, None)
    early = at <= FALLS_AFTER
    median = float(np.median(at[~early] - FALLS_AFTER))
    found = float(np.isfinite(at[~early]).mean())
    return Alarms(
        correlation, fall, rollouts, float(early.mean()), found,
        median if math.isfinite(median) else None,
    )  # fmt: skip


def main() -> int:
    """Print one JSON document; exit 1 if the false alarms exceed their bound (+ 2 SE)."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=20261123)
    args = parser.parse_args()
    random = np.random.default_rng(args.seed)
    found = []
    for correlation in CORRELATIONS:
        for fall in (0.0, *FALLS):
            rollouts = args.rollouts if not fall else max(1, args.rollouts // 10)
            found.append(simulated(correlation, fall, rollouts, args.requests, random))
            print(found[-1], flush=True)
    slack = 2 * math.sqrt(FALSE_ALARMS * (1 - FALSE_ALARMS) / args.rollouts)
    rows = [one._asdict() for one in found]
    print(json.dumps({"benchmark": "acceptance_drift", "seed": args.seed, "alarms": rows}))
    return int(any(not one.fall and one.early > FALSE_ALARMS + slack for one in found))


if __name__ == "__main__":
    raise SystemExit(main())

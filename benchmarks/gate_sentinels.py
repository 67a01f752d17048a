"""Error rates of the checks on sentinels, by fixed seeds.

Two prompts and their neighbours are asked by turns, as a run does, and answers change by chance
(rounding), alike in both arms, or for good from the middle of the run on. Of equal arms at most .02
may be found to depend on earlier requests, and at most .01 may fail the lossless cell.

    python benchmarks/gate_sentinels.py [--rollouts 500] [--seed 20261124]
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from collector.contract import Arm, Outcome, SentinelAsk
from engine_adapter.run.sentinels import Sentinel, asks_before
from engine_adapter.workload import Prompt
from evals import policy as policies
from evals.evidence.sentinels import Preceding, SentinelSeries, series_of
from evals.gate.sentinel_cells import sentinel_answers, sentinel_findings

LOSSLESS = policies.shipped("lossless")
EVERY = 25
REQUESTS = (200, 400, 1000, 2000)


class Law(NamedTuple):
    """How answers change."""

    words: str
    flips: float
    """Share of each arm's answers that rounding changes."""
    poisoned: bool = False
    """Whether the candidate's answers change for good in the middle."""


LAWS = (
    Law("no answer changes", 0.0),
    Law("1 in 20 of both arms changes by chance", 0.05),
    Law("3 in 10 of both arms change by chance", 0.3),
    Law("candidate poisoned", 0.0, poisoned=True),
    Law("candidate poisoned, 1 in 20 of both change by chance", 0.05, poisoned=True),
)


def main() -> int:
    """Print the Markdown table, then one JSON document; exit 1 if a bound is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=500)
    parser.add_argument("--seed", type=int, default=20261124)
    args = parser.parse_args()
    rates = {
        law.words: [_rates(law, n, args.rollouts, args.seed) for n in REQUESTS] for law in LAWS
    }
    print("| Answers |", " | ".join(f"{n:,} requests" for n in REQUESTS), "|")
    print("|---" * (len(REQUESTS) + 1) + "|")
    for words, found in rates.items():
        print("|", " | ".join([words, *(f"{a:.3f}, {b:.3f}" for a, b in found)]), "|")
    print(json.dumps({"benchmark": "gate_sentinels", "seed": args.seed, "rates": rates}))
    equal = [pair for law in LAWS if not law.poisoned for pair in rates[law.words]]
    return int(max(a for a, _ in equal) > 0.02 or max(b for _, b in equal) > 0.01)


def _rates(law: Law, requests: int, rollouts: int, seed: int) -> tuple[float, float]:
    """Return the shares of rollouts found to depend on earlier requests, and that fail the cell."""
    drawn = np.random.default_rng(seed)
    depends = failed = 0
    for _ in range(rollouts):
        every = _answers(law, requests, drawn)
        depends += any(one.depends for one in sentinel_answers(every, LOSSLESS))
        failed += any(f.outcome is Outcome.FAIL for f in sentinel_findings(every, LOSSLESS))
    return depends / rollouts, failed / rollouts


def _answers(law: Law, requests: int, drawn: np.random.Generator) -> tuple[SentinelSeries, ...]:
    asks = list(_asks(law, requests, drawn))
    return series_of(asks, lambda _: Preceding(0, None))


def _asks(law: Law, requests: int, drawn: np.random.Generator) -> Iterator[SentinelAsk]:
    prompts = [Prompt(id=name, cohort="c", prompt=name) for name in ("s", "s1", "t", "t1")]
    sentinels = [Sentinel(prompts[0], prompts[1]), Sentinel(prompts[2], prompts[3])]
    for place in range(requests):
        for ask in asks_before(place, sentinels, EVERY):
            for number, prompt in enumerate(ask.prompts):
                for arm in Arm:
                    bad = law.poisoned and arm is Arm.CANDIDATE and place > requests / 2
                    changed = bad != (drawn.random() < law.flips)
                    yield SentinelAsk(
                        sentinel=prompt.id,
                        arm=arm,
                        number=place,
                        start_unix_ns=2 * place + number,
                        trace_id="",
                        after=ask.prompts[0].id if number else None,
                        answer="changed" if changed else "usual",
                    )


if __name__ == "__main__":
    raise SystemExit(main())

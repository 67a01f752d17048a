"""How many sampled tokens the lossless audit needs to detect a broken speculative sampler.

A synthetic model (vocabulary of 64, drafts of 4) is sampled by a correct sampler and by five broken
ones; each emitted token is rescored until the audit raises an alarm. The figures of the audit's
design are shown for comparison; they are for a different model. A second table has a sampler that
verifies drafts by the draws of the request's seed: tokens until the audit of the distribution, and
that of the seeds (answers of 40 tokens), alarm.

    python -m benchmarks.lossless [--runs 20] [--tokens 12000] [--seed 20261121]
"""

import argparse
import json
import math
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.simulation import coupled_sampler
from benchmarks.simulation.speculative_sampler import Bug, emitted
from evals.lossless.sampling_audit import ALARM, log_e_after_each
from evals.lossless.seeded_draws import counted
from evals.stats.bets import log_e_path

TOLERANCE = 0.005
_ANSWER_TOKENS = 40
DESIGN = {
    Bug.RESAMPLE_P: 458,
    Bug.ARGMAX_DRAFTS: 74,
    Bug.GENEROUS: 458,
    Bug.COOL: 1154,
    Bug.TOP_P: 3658,
}


def detected(bug: Bug, runs: int, tokens: int, seed: int) -> list[int | None]:
    """Return the number of tokens at each run's alarm; None without an alarm."""
    found: list[int | None] = []
    for run in range(runs):
        rng = np.random.default_rng([seed, list(Bug).index(bug), run])
        alarmed = np.flatnonzero(
            log_e_after_each(emitted(bug, tokens, rng), TOLERANCE) >= math.log(ALARM)
        )
        found.append(int(alarmed[0]) + 1 if len(alarmed) else None)
    return found


def by_seed(bug: coupled_sampler.Bug, runs: int, tokens: int, seed: int) -> dict[str, object]:
    """Return a row: the median tokens to the alarm of both audits, None for no alarm in most."""
    found: dict[str, list[float]] = {"law": [], "seeds": []}
    for run in range(runs):
        rng = np.random.default_rng([seed, 100 + list(coupled_sampler.Bug).index(bug), run])
        made = coupled_sampler.emitted(bug, tokens, rng)
        starts = range(0, tokens, _ANSWER_TOKENS)
        answers = [(at, *counted(made.distances[at : at + _ANSWER_TOKENS])) for at in starts]
        places = np.concatenate([at + kept for at, kept, _ in answers])
        missed = np.concatenate([values for _, _, values in answers])
        paths = {
            "law": (log_e_after_each(made.rescored, TOLERANCE), np.arange(tokens)),
            "seeds": (log_e_path(missed, TOLERANCE), places),
        }
        for name, (path, place) in paths.items():
            alarmed = place[path >= math.log(ALARM)]
            found[name].append(float(alarmed[0] + 1) if len(alarmed) else math.inf)
    middles = {name: median(values) for name, values in found.items()}
    row: dict[str, object] = {"bug": bug.value, "runs": runs}
    for name, values in found.items():
        row[f"{name}_alarmed"] = sum(math.isfinite(value) for value in values)
        row[name] = None if math.isinf(middles[name]) else middles[name]
    return row


def main() -> int:
    """Print a row per bug, then one JSON document; exit 1 for a false alarm or a missed bug."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=20261121)
    args = parser.parse_args()
    started, rows = time.process_time(), []
    print("| Sampler | Alarmed | Median tokens | Design |\n|---|---|---|---|")
    for bug in Bug:
        found = detected(bug, args.runs, args.tokens, args.seed)
        seen = [n for n in found if n is not None]
        middle = median(n if n is not None else math.inf for n in found)
        rows.append({"bug": bug.value, "alarmed": len(seen), "runs": args.runs,
                     "median": None if math.isinf(middle) else middle,
                     "design": DESIGN.get(bug)})  # fmt: skip
        shown = "–" if math.isinf(middle) else f"{middle:,.0f}"
        print(f"| {bug.value} | {len(seen)} of {args.runs} | {shown} | {DESIGN.get(bug, '–')} |",
              flush=True)  # fmt: skip
    print("\n| Sampler that verifies by the seed's draws | Distribution | Seeds |\n|---|---|---|")
    coupled = []
    for fault in coupled_sampler.Bug:
        row = by_seed(fault, args.runs, args.tokens, args.seed)
        coupled.append(row)
        cells = [f"{row[f'{name}_alarmed']} of {args.runs}, {row[name] or '–'}"
                 for name in ("law", "seeds")]  # fmt: skip
        print(f"| {fault.value} | {cells[0]} | {cells[1]} |", flush=True)
    broken = [r for r in rows if r["bug"] != Bug.NONE.value and r["median"] is None]
    document = {
        "benchmark": "lossless",
        "seed": args.seed,
        "tolerance": TOLERANCE,
        "cpu_seconds": round(time.process_time() - started, 1),
        "rows": rows,
        "coupled": coupled,
    }
    print(json.dumps(document))
    false = rows[0]["alarmed"] or coupled[0]["law_alarmed"] or coupled[0]["seeds_alarmed"]
    return int(bool(broken) or bool(false))


if __name__ == "__main__":
    raise SystemExit(main())

"""How many sampled tokens the lossless audit needs to detect a broken speculative sampler.

A synthetic model (vocabulary of 64, drafts of 4) is sampled by a correct sampler and by five broken
ones; each emitted token is rescored until the audit raises an alarm: by the tokens alone, as `gate
--rescore` does; with the draft model's distributions, as with `--rescore-draft`; and with each
place's drafted token known, too. A second table has a sampler that
verifies drafts by the draws of the request's seed: tokens until the audit of the distribution, and
that of the seeds (answers of 40 tokens), alarm. With `--smollm2` both tables are of a real model's
distributions at the places of its own answers; its draft is the model without two of 30 layers.

    python -m benchmarks.lossless [--runs 20] [--tokens 12000] [--seed 20261121]
        [--smollm2 build/engine_audit/models/smollm2 [--temperature 1]]
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.simulation import coupled_sampler
from benchmarks.simulation.real_laws import laws
from benchmarks.simulation.speculative_sampler import Bug, Laws, emitted
from evals.lossless.sampling_audit import ALARM, Floats, Ints, log_e_after_each
from evals.lossless.seeded_draws import counted
from evals.stats.bets import log_e_path

TOLERANCE = 0.005
_ANSWER_TOKENS = 40


def detected(bug: Bug, given: argparse.Namespace, laws: Laws | None) -> dict[str, object]:
    """Return a row: the median tokens to the alarm, by how much is known."""
    found: dict[str, list[float]] = {"tokens": [], "model": [], "drafts": []}
    for run in range(given.runs):
        rng = np.random.default_rng([given.seed, list(Bug).index(bug), run])
        seen = emitted(bug, given.tokens, rng, _from_anywhere(laws, given.tokens, rng))
        unknown = np.full(given.tokens, np.nan)
        for name, known in (
            ("tokens", seen._replace(contrast=unknown, acceptance=unknown)),
            ("model", seen._replace(acceptance=unknown)),
            ("drafts", seen),
        ):
            path = log_e_after_each(known, TOLERANCE)
            found[name].append(_first_alarm(path, np.arange(given.tokens)))
    return _row(bug.value, given.runs, found)


def _from_anywhere(laws: Laws | None, tokens: int, rng: np.random.Generator) -> Laws | None:
    return None if laws is None else laws.starting_at(int(rng.integers(len(laws.p))), tokens)


def _first_alarm(path: Floats, places: Ints) -> float:
    """Return the number of tokens at the first alarm; infinity without one."""
    alarmed = places[path >= math.log(ALARM)]
    return float(alarmed[0] + 1) if len(alarmed) else math.inf


def _row(bug: str, runs: int, found: Mapping[str, Sequence[float]]) -> dict[str, object]:
    row: dict[str, object] = {"bug": bug, "runs": runs}
    for name, values in found.items():
        middle = median(values)
        row[f"{name}_alarmed"] = sum(math.isfinite(value) for value in values)
        row[name] = None if math.isinf(middle) else middle
    return row


def by_seed(
    bug: coupled_sampler.Bug, given: argparse.Namespace, laws: Laws | None
) -> dict[str, object]:
    """Return a row: the median tokens to the alarm of both audits."""
    found: dict[str, list[float]] = {"law": [], "seeds": []}
    for run in range(given.runs):
        rng = np.random.default_rng([given.seed, 100 + list(coupled_sampler.Bug).index(bug), run])
        places = _from_anywhere(laws, given.tokens, rng)
        made = coupled_sampler.emitted(bug, given.tokens, rng, places)
        starts = range(0, given.tokens, _ANSWER_TOKENS)
        answers = [(at, *counted(made.distances[at : at + _ANSWER_TOKENS])) for at in starts]
        kept = np.concatenate([at + places for at, places, _ in answers])
        missed = np.concatenate([values for _, _, values in answers])
        law = log_e_after_each(made.rescored, TOLERANCE)
        found["law"].append(_first_alarm(law, np.arange(given.tokens)))
        found["seeds"].append(_first_alarm(log_e_path(missed, TOLERANCE), kept))
    return _row(bug.value, given.runs, found)


def main() -> int:
    """Print a row per bug, then one JSON document; exit 1 for a false alarm or a missed bug."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--smollm2", type=Path, help="folder with the audit's SmolLM2 models")
    parser.add_argument("--temperature", type=float, default=1.0, help="of its answers")
    given = parser.parse_args()
    started, real = time.process_time(), None
    if (models := given.smollm2) is not None:
        real = laws(models / "target", models / "draft", given.temperature, models)
    print("| Sampler | Tokens alone | Draft model | Drafts known |\n|---|---|---|---|")
    rows = [_printed(detected(bug, given, real), "tokens", "model", "drafts") for bug in Bug]
    print("\n| Sampler that verifies by the seed's draws | Distribution | Seeds |\n|---|---|---|")
    coupled = [_printed(by_seed(bug, given, real), "law", "seeds") for bug in coupled_sampler.Bug]
    document = {
        "benchmark": "lossless",
        "model": "synthetic" if real is None else f"SmolLM2, T {given.temperature:g}",
        "seed": given.seed,
        "tolerance": TOLERANCE,
        "cpu_seconds": round(time.process_time() - started, 1),
        "rows": rows,
        "coupled": coupled,
    }
    print(json.dumps(document))
    false = [one[name] for one in (rows[0], coupled[0]) for name in one if "_alarmed" in name]
    missed = any(one["drafts"] is None for one in rows[1:])
    return int(any(false) or (real is None and missed))


def _printed(row: dict[str, object], *names: str) -> dict[str, object]:
    cells = [f"{row[f'{name}_alarmed']} of {row['runs']}, {row[name] or '–'}" for name in names]
    print(f"| {row['bug']} | {' | '.join(cells)} |", flush=True)
    return row


if __name__ == "__main__":
    raise SystemExit(main())

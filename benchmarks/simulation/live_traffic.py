"""Error rates of the watch over 100 looks, simulated with its own state machine."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from benchmarks.simulation import laws
from benchmarks.simulation.methods import Rate
from benchmarks.simulation.release import side_of
from collector.columns import Table
from collector.contract import Outcome, Watch
from evals import policy as policies
from evals.evidence.columns import Evidence
from evals.policy import Policy
from evals.watch.advance import advance
from evals.watch.early_pairs import EarlyPairs
from evals.watch.plan import begin, live
from evals.watch.window import Place, Window

PAIRS, PEEKS = 5000, 100
COHORTS = ("chat", "rag")
POLICY = """
version: 1
name: simulated
design: mirror
live:
  looks: [300, 600, 1200, 2400, 5000]
  spend: [0.001, 0.003, 0.006, 0.010, 0.030]
  rollback: {metric: slo_exceedance, threshold: THRESHOLD_S, margin: 0.005}
prove:
  - {metric: task_completion, stat: diff, min: -0.02, scope: pooled}
  - {metric: groundedness, stat: mean_diff, min: -0.02, scope: pooled}
  - {metric: ttft, stat: p95_ratio, max: 1.10, scope: pooled}
guard:
  - {metric: task_completion, stat: diff, min: -0.02, scope: cohort}
"""
MARGINS = {"task_completion": -0.02, "groundedness": -0.04}  # scores hold half the differences
SLOWER = 1.10


def peeking(rollouts: int, seed: int) -> Iterator[Rate]:
    """Look 100 times at 5,000 pairs with every truth at its margin, then at equal arms.

    Equal arms are simulated a fifth as often.
    """
    text = POLICY.replace("THRESHOLD_S", f"{_threshold_s(seed):.6f}")
    rules = policies.parse(text, "simulated.yaml")
    for at_margin in (True, False):
        rng, ever = np.random.default_rng([seed, 31, at_margin]), dict[str, int]()
        runs = rollouts if at_margin else max(rollouts // 5, 1)
        for _ in range(runs):
            for name, happened in _ever_decided(rng, rules, at_margin=at_margin).items():
                ever[name] = ever.get(name, 0) + happened
        check = "watch, 100 peeks, truth at " + ("every margin" if at_margin else "no change")
        for name, count in ever.items():
            wanted = 0.05 if at_margin or "fail" in name else None
            yield Rate(check, name, PAIRS, count / runs, runs, wanted, None)


def _ever_decided(
    rng: np.random.Generator, rules: Policy, *, at_margin: bool
) -> Mapping[str, bool]:
    """Return which decisions were made at any look of one rollout."""
    watch, early = begin("simulated", rules), EarlyPairs(live(rules).looks[-1])
    evidence, seen = _evidence(rng, at_margin=at_margin), dict[str, bool]()
    table = _table(evidence)
    step = PAIRS // PEEKS
    for start in range(0, PAIRS, step):
        window = _window(evidence, table, start, start + step)
        watch = advance(watch, window, early, rules, start)
        for name, now in _decisions(watch).items():
            seen[name] = seen.get(name, False) or now
    return seen


def _decisions(watch: Watch) -> dict[str, bool]:
    pooled = [cell for cell in watch.cells if cell.cohort is None]
    found = {
        f"ever {outcome.value} {cell.metric}": cell.outcome is outcome
        for cell in pooled
        for outcome in (Outcome.PASS, Outcome.FAIL)
    }
    release = {f"ever {o.value} release": watch.outcome is o for o in (Outcome.PASS, Outcome.FAIL)}
    return found | release


def _evidence(rng: np.random.Generator, *, at_margin: bool) -> Evidence:
    share = 1.0 if at_margin else 0.0
    done_c, done_b = laws.task_pairs(rng, PAIRS, MARGINS["task_completion"] * share)
    grounded = 0.5 + laws.grounded_differences(rng, PAIRS, MARGINS["groundedness"] * share) / 2
    times = laws.latencies(rng, PAIRS, SLOWER if at_margin else 1.0)
    return Evidence(
        prompts=np.arange(PAIRS),
        cohort_of=rng.integers(0, len(COHORTS), PAIRS),
        cohorts=COHORTS,
        baseline=side_of(times.baseline, done_b, np.full(PAIRS, 0.5), 0),
        candidate=side_of(times.candidate, done_c, grounded, 1),
        metrics=("groundedness", "task_completion"),
        data_hash="",
    )


def _threshold_s(seed: int) -> float:
    """Return the threshold that the slower candidate exceeds in .005 more of requests."""
    times = laws.latencies(np.random.default_rng([seed, 32]), 1_000_000, SLOWER)
    candidate, baseline = np.sort(times.candidate), np.sort(times.baseline)
    grid = np.linspace(np.quantile(baseline, 0.95), np.quantile(baseline, 0.9999), 2000)
    beyond = (np.searchsorted(baseline, grid) - np.searchsorted(candidate, grid)) / len(baseline)
    return float(grid[np.flatnonzero(beyond <= 0.005)[0]])


def _window(evidence: Evidence, table: Table, start: int, end: int) -> Window:
    """Return a window of pairs, with arrival numbers for each side and score."""
    rows = np.zeros(PAIRS, dtype=np.bool_)
    rows[start:end] = True
    baseline = 2 * np.arange(start, end) + 1
    numbers = (baseline, baseline + 1)
    return Window(
        evidence=evidence.take(rows),
        table=table.take(np.arange(start, end)),
        start=Place(2 * start, 2 * start),
        end=Place(2 * end, 2 * end),
        arrived=numbers,
        scored=dict.fromkeys(evidence.metrics, numbers),
        first_repeat=np.ones(end - start, dtype=np.bool_),
        duplicates=np.zeros(end - start, dtype=np.int64),
    )


def _table(evidence: Evidence) -> Table:
    """Return the columns of pairs that the watch reads."""
    none = pa.nulls(PAIRS)
    columns: dict[str, pa.Array] = {
        "prompt_id": pa.array([f"{i:06}" for i in range(PAIRS)]),
        "repeat": pa.array(np.zeros(PAIRS, dtype=np.int64)),
        "cohort": pa.array([COHORTS[i] for i in evidence.cohort_of]),
    }
    for arm, side in (("baseline", evidence.baseline), ("candidate", evidence.candidate)):
        columns |= {f"{arm}_{name}": none.cast(kind) for name, kind in _UNKNOWN.items()}
        columns |= {
            f"{arm}_trace_id": pa.array(["0" * 32] * PAIRS),
            f"{arm}_start_unix_ns": pa.array(side.start_unix_ns),
            f"{arm}_ttft_s": pa.array(side.seconds["ttft"]),
            f"{arm}_duplicates": pa.array(np.zeros(PAIRS, dtype=np.int64)),
        }
    return Table.read(pa.table(columns))


_COUNT, _NUMBER, _FLAG = pa.int64(), pa.float64(), pa.bool_()
_UNKNOWN: Mapping[str, pa.DataType] = {
    "error_type": pa.string(),
    "tpot_s": _NUMBER,
    "e2e_s": _NUMBER,
    "output_tokens": _COUNT,
    "counts_usable": _FLAG,
    "speculated": _FLAG,
    "spec_steps": _COUNT,
    "spec_draft_tokens": _COUNT,
    "spec_accepted_tokens": _COUNT,
    "spec_draft_tokens_per_pos": pa.list_(_COUNT),
    "spec_accepted_tokens_per_pos": pa.list_(_COUNT),
    "quality": pa.list_(pa.string()),
}

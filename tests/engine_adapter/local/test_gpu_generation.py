"""The benchmark runs small on a CPU, says what it left out, and predicts by the speed model."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_cells import Cell, Measured, predicted_speedups
from benchmarks.gpu_generation import Bench, _arguments, break_even
from engine_adapter.engines.local.records import Memory

ROOT = Path(__file__).parents[3]
SMALL = (
    "--batches=1,2", "--contexts=8", "--ks=1,2", "--acceptances=0.8", "--steps=4",
    "--their-tokens=6", "--pairs=1", "--copy-mib=4", "--device=cpu", "--shape=tiny",
    "--dtype=float32",
)  # fmt: skip


def document() -> Any:  # Any: JSON
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "gpu_generation.py"), *SMALL],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    *_, last = done.stdout.splitlines()
    return json.loads(last)


@pytest.mark.slow
def test_it_measures_every_place_in_one_call() -> None:
    """A baseline and each k, batch by batch; transformers and telemetry beside them."""
    found = document()
    assert found["synthetic"] is True
    places = [(row["batch"], row["k"]) for row in found["rows"]]
    assert places == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 4)]
    for row in found["rows"]:
        assert row["tokens_per_s"] > 0
        speculates = row["k"] > 0
        assert (row["measured_acceptance"] is not None) == speculates
        assert (row.get("predicted_speedup") is not None) == speculates
        assert (row.get("share_of_limit") is not None) != speculates
        assert row["memory"]["draft_cache_bytes"] > 0 or not speculates
    assert set(found["transformers"]) == {"generate_tokens_per_s", "assisted_tokens_per_s"}
    assert found["telemetry"]["telemetry_pairs"] == 1
    assert found["left_out"] == []


def test_what_the_time_does_not_allow_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell that was not measured has no row, and a line of its own."""
    monkeypatch.setattr(sys, "argv", ["gpu_generation.py", *SMALL, "--budget-s=0"])
    bench = Bench(_arguments())
    bench.place(1, 8, 0.8, [1, 2])
    assert bench.rows == []
    assert bench.left_out == ["Cell(batch=1, context=8, k=0): no time was left"]


def measured(k: int, *, step_s: float, accepted: tuple[int, ...] = ()) -> Measured:
    draft_s = 0.002 * k
    return Measured(
        cell=Cell(1, 8, k),
        tokens_per_s=1.0,
        step_s=step_s,
        draft_s=draft_s,
        verify_s=step_s - draft_s,
        overhead_s=0.0,
        steps=100,
        accepted_per_pos=accepted,
        memory=Memory(0, 0, 0, 0),
    )


def test_the_prediction_is_tokens_a_step_over_its_cost() -> None:
    """10 ms a step, 2 ms a draft token; 80, 60, 50 of 100 steps got so far."""
    by_k = [
        measured(1, step_s=0.012, accepted=(80,)),
        measured(3, step_s=0.016, accepted=(80, 60, 50)),
    ]
    found = predicted_speedups(measured(0, step_s=0.010), by_k)
    assert found == pytest.approx({1: 1.8 / 1.2, 3: 2.9 / 1.6})
    alone = predicted_speedups(measured(0, step_s=0.010), by_k[1:])
    assert alone == pytest.approx({3: 2.9 / 1.6})


def test_the_break_even_batch_is_the_first_that_does_not_pay() -> None:
    """Seen and predicted; none where each pays."""
    rows = [
        {"k": 4, "acceptance": 0.8, "context": 8, "batch": b, "speedup": s, "predicted_speedup": p}
        for b, s, p in ((16, 0.9, 1.1), (1, 2.0, 2.1), (64, 0.7, 0.8))
    ]
    assert break_even(rows, 8) == {"observed_batch": 16, "predicted_batch": 64}
    assert break_even(rows[1:2], 8) == {"observed_batch": None, "predicted_batch": None}

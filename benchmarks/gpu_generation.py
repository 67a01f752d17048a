"""Baseline and speculative generation on a synthetic pair, against the limit of the memory bus.

Measures the local engine's tokens per second by k, synthetic acceptance, batch and context; the
share of the rate that the measured copy bandwidth allows; the speed model's prediction next to the
measurement; transformers' generate and assisted generation; and telemetry on against off. On a CPU
all sizes are small. Prints a table, and one JSON document last. Cells that do not fit into the time
or memory are skipped and listed.

    python benchmarks/gpu_generation.py [--shape llama-7b] [--budget-s 540]
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging as transformers_logging

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.calibrated_pair import SHAPES, CalibratedPair
from benchmarks.gpu_cells import (
    Cell,
    Measured,
    bandwidth_bytes_per_s,
    limit_tokens_per_s,
    measure,
    needed_bytes,
    predicted_speedups,
    theirs_tokens_per_s,
)
from benchmarks.gpu_telemetry import telemetry_cost
from engine_adapter.engines.gpu_samples import GpuReader

MAIN_K, MAIN_ACCEPTANCE = 4, 0.8
SHOWN = (
    "batch", "context", "k", "acceptance", "tokens_per_s", "share_of_limit", "speedup",
    "predicted_speedup", "draft_ms", "verify_ms", "overhead_ms",
)  # fmt: skip


class Bench:
    """One run: measures cells within the time and memory budget, and collects rows."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.device = torch.device(args.device)
        self.started_s = time.monotonic()
        self.left_out: list[str] = []
        self.rows: list[dict[str, Any]] = []  # Any: JSON
        dtype = getattr(torch, args.dtype)
        context = max(args.contexts) + 1024
        self.pair = CalibratedPair(
            SHAPES[args.shape], context=context, device=args.device, dtype=dtype
        )
        self.bandwidth = bandwidth_bytes_per_s(self.device, args.copy_mib)

    def cell(self, cell: Cell) -> Measured | None:
        """Measure a cell; `None` if time or memory does not allow it."""
        if time.monotonic() - self.started_s > self.args.budget_s:
            self.left_out.append(f"{cell}: no time was left")
            return None
        if self.device.type == "cuda":
            free = torch.cuda.mem_get_info(self.device)[0]
            free += torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
            if needed_bytes(self.pair, cell, self.args.steps) > 0.8 * free:
                self.left_out.append(f"{cell}: its caches do not fit")
                return None
        return measure(self.pair, cell, self.args.steps)

    def place(self, batch: int, context: int, acceptance: float, ks: list[int]) -> None:
        """Measure the baseline and all k at one batch, context and acceptance."""
        baseline = self.cell(Cell(batch, context, 0))
        if baseline is None:
            return
        limit = limit_tokens_per_s(self.pair, baseline.cell, self.bandwidth)
        share = baseline.tokens_per_s / limit
        self.row(baseline, acceptance=None, share_of_limit=share)
        found = [one for k in ks if (one := self.cell(Cell(batch, context, k))) is not None]
        predicted = predicted_speedups(baseline, found)
        for one in found:
            observed = one.tokens_per_s / baseline.tokens_per_s
            expected = predicted.get(one.cell.k)
            self.row(one, acceptance=acceptance, speedup=observed, predicted_speedup=expected)

    def row(self, one: Measured, **more: float | None) -> None:
        """Store a row and print it."""
        accepted = sum(one.accepted_per_pos)
        full = one.accepted_per_pos[-1] if one.accepted_per_pos else 0
        reached = accepted + one.steps - full
        row = {
            **one.cell._asdict(),
            **more,
            "measured_acceptance": accepted / reached if one.cell.k else None,
            "tokens_per_s": one.tokens_per_s,
            "draft_ms": 1e3 * one.draft_s,
            "verify_ms": 1e3 * one.verify_s,
            "overhead_ms": 1e3 * one.overhead_s,
            "memory": one.memory._asdict(),
        }
        self.rows.append(row)
        print("| " + " | ".join(_shown(row.get(key)) for key in SHOWN) + " |", flush=True)

    def all(self) -> None:
        """Measure every k and acceptance at the first size, and the main ones at the others."""
        args = self.args
        print(f"| {' | '.join(SHOWN)} |\n{'|---' * len(SHOWN)}|")
        here = (args.batches[0], args.contexts[0])
        # the main acceptance and the other sizes first: the budget may not suffice for the rest
        self.pair.dial(MAIN_ACCEPTANCE)
        self.place(*here, MAIN_ACCEPTANCE, args.ks)
        for context in args.contexts:
            for batch in args.batches:
                if (batch, context) != here:
                    self.place(batch, context, MAIN_ACCEPTANCE, [MAIN_K])
        for acceptance in args.acceptances:
            if acceptance != MAIN_ACCEPTANCE:
                self.pair.dial(acceptance)
                self.place(*here, acceptance, args.ks)


def main() -> None:
    """Run it."""
    args = _arguments()
    torch.set_num_threads(args.threads)
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    gpus = GpuReader()
    gpus.open()
    bench = Bench(args)
    bench.all()
    samples = [[r.metric.name, r.metric.unit, r.value] for r in gpus.read()]
    gpus.close()
    bench.pair.dial(MAIN_ACCEPTANCE)
    here = Cell(1, args.contexts[0], 0)
    theirs = {
        "generate_tokens_per_s": theirs_tokens_per_s(bench.pair, here, args.their_tokens),
        "assisted_tokens_per_s": theirs_tokens_per_s(
            bench.pair, here._replace(k=MAIN_K), args.their_tokens
        ),
    }
    telemetry = telemetry_cost(bench.pair, here._replace(k=MAIN_K), args.their_tokens, args.pairs)
    print("\n".join(f"{name}: {value:.4g}" for name, value in (theirs | telemetry).items()))
    for words in bench.left_out:
        print(f"left out: {words}")
    document = {
        "benchmark": "gpu_generation",
        "synthetic": True,
        "shape": args.shape,
        "dtype": args.dtype,
        "device": _device_name(bench.device),
        "torch": torch.__version__,
        "load_average": os.getloadavg()[0],
        "seconds": round(time.monotonic() - bench.started_s, 1),
        "copy_bandwidth_gb_per_s": bench.bandwidth / 1e9,
        "rows": bench.rows,
        "break_even": break_even(bench.rows, args.contexts[0]),
        "transformers": theirs,
        "telemetry": telemetry,
        "gpu_samples": samples,
        "left_out": bench.left_out,
    }
    print(json.dumps(document))


def break_even(rows: list[dict[str, Any]], context: int) -> dict[str, int | None]:  # Any: JSON
    """Return the smallest measured batch without a speedup, measured and predicted."""
    main = [r for r in rows if (r["k"], r["acceptance"]) == (MAIN_K, MAIN_ACCEPTANCE)]
    here = sorted((r for r in main if r["context"] == context), key=lambda r: r["batch"])

    def first(key: str) -> int | None:
        return next((r["batch"] for r in here if r[key] is not None and r[key] < 1), None)

    return {"observed_batch": first("speedup"), "predicted_batch": first("predicted_speedup")}


def _arguments() -> argparse.Namespace:
    gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda" if gpu else "cpu")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="llama-7b" if gpu else "tiny")
    parser.add_argument("--dtype", default="bfloat16" if gpu else "float32")
    parser.add_argument("--batches", type=_numbers, default=[1, 4, 16, 64] if gpu else [1, 4])
    parser.add_argument("--contexts", type=_numbers, default=[512, 4096] if gpu else [32])
    parser.add_argument("--ks", type=_numbers, default=[*range(1, 9)] if gpu else [2, 4])
    parser.add_argument("--acceptances", type=_shares,
                        default=[0.6, 0.7, 0.8, 0.9] if gpu else [0.8])  # fmt: skip
    parser.add_argument("--steps", type=int, default=48 if gpu else 12)
    parser.add_argument("--their-tokens", type=int, default=96 if gpu else 24)
    parser.add_argument("--pairs", type=int, default=15 if gpu else 5)
    parser.add_argument("--copy-mib", type=int, default=1024 if gpu else 64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget-s", type=float, default=480.0)
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _shares(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()


if __name__ == "__main__":
    main()

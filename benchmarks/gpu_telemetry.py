"""Overhead of Draftgate's telemetry per generation: the same answers with and without spans."""

import statistics
import time
from itertools import count

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from benchmarks.calibrated_pair import SAMPLING, CalibratedPair
from benchmarks.gpu_cells import Cell, jobs
from collector.contract import Arm, CountSource, Generation, Speculation
from engine_adapter.engines import acceptance_counts
from engine_adapter.engines.local import DraftVerify, Fixed, ModelDrafter, generate
from engine_adapter.engines.local.records import Generated
from engine_adapter.run.telemetry import SpanSender


def telemetry_cost(pair: CalibratedPair, cell: Cell, tokens: int, repeats: int) -> dict[str, float]:
    """Return the median ratios, on to off, of wall time and CPU time over alternating pairs.

    "On" counts acceptance, creates the record and its span, and queues it for the export thread, as
    `draftgate run` does; the exporter writes to memory.
    """
    drafter = ModelDrafter(pair.draft)
    loop = DraftVerify(pair.target, drafter, Fixed(cell.k), capacity=cell.context + tokens, batch=1)
    sender = SpanSender("http://localhost:4318", exporter=InMemorySpanExporter())
    numbers = count(1)

    def taken(*, on: bool) -> tuple[float, float]:
        asked = jobs(pair, cell, tokens)
        started_s, started_ns = time.perf_counter(), time.time_ns()
        cpu_s = time.process_time()
        (made,) = generate(loop, asked, SAMPLING)
        if on:
            sender.send(_record(made, next(numbers), started_ns))
        return time.perf_counter() - started_s, time.process_time() - cpu_s

    for on in (False, True):  # warm up CUDA graphs and the tracer provider
        taken(on=on)
    ratios = []
    for turn in range(repeats):
        order = (False, True) if turn % 2 else (True, False)
        found = {on: taken(on=on) for on in order}
        ratios.append([a / b for a, b in zip(found[True], found[False], strict=True)])
    sender.close()
    wall, cpu = (statistics.median(one) for one in zip(*ratios, strict=True))
    return {
        "telemetry_time_ratio": wall,
        "telemetry_cpu_ratio": cpu,
        "telemetry_pairs": len(ratios),
    }


def _record(made: Generated, number: int, started_ns: int) -> Generation:
    counts = acceptance_counts.count([step.verify_step for step in made.steps])
    return Generation(
        trace_id=f"{number:032x}",
        span_id=f"{number:016x}",
        start_unix_ns=started_ns,
        end_unix_ns=time.time_ns(),
        rollout="benchmark",
        arm=Arm.CANDIDATE,
        provider="local",
        output_tokens=len(made.token_ids),
        ttft_s=made.ttft_s,
        tpot_s=made.tpot_s,
        speculation=counts.apply(Speculation(method="draft_model"), CountSource.REQUEST.value),
    )

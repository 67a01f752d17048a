"""The draft–verify loop as an engine with static batching: waiting requests are answered together.

A batch ends with its longest answer; no request joins a running batch.
"""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

import torch

from collector.contract import CountSource, DeviceUse, Speculation, StepTimes
from engine_adapter.engines import acceptance_counts
from engine_adapter.engines.answer import Answer
from engine_adapter.engines.base import Chunk, Engine, Item, Probe, Request
from engine_adapter.engines.local.assembly import Assembly
from engine_adapter.engines.local.decode import Job
from engine_adapter.engines.local.device_use import DeviceMeter
from engine_adapter.engines.local.draft_length import Fixed
from engine_adapter.engines.local.endings import Ending
from engine_adapter.engines.local.records import TextStep
from engine_adapter.engines.local.sampling import SamplerChain
from engine_adapter.engines.local.step_clock import StepMarks, running_totals
from engine_adapter.engines.model_folder import ModelShelf, encode_chat
from engine_adapter.engines.sampling import of_request
from engine_adapter.errors import GenerationError
from engine_adapter.routes import LocalRoute


@dataclass(slots=True, kw_only=True, eq=False)
class _RunningRequest:
    """A request with its state and results."""

    job: Job
    sampling: SamplerChain
    sampler: str | None
    """The sampling in the contract's notation."""
    arrived_s: float
    begun_s: float = 0.0
    """Reading of `time.perf_counter` when its batch began."""
    steps: list[tuple[float, TextStep]] = field(default_factory=list)
    step_times: StepTimes | None = None
    """Total times of these steps; `None` until the batch is done."""
    device: DeviceUse | None = None
    """`None` until the batch is done."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    done: Future[None] = field(default_factory=Future)


class LocalEngine(Engine):
    """One route over a loaded target; batches up to `batch` requests with equal sampling."""

    def __init__(self, route: LocalRoute, shelf: ModelShelf) -> None:
        """Load the route's models; raises `EngineSetupError`."""
        self._route = route
        self._assembly = Assembly(route, shelf)
        self._target = self._assembly.target
        self._waiting: list[_RunningRequest] = []
        self._lock = threading.Lock()
        self._meter = DeviceMeter.of(self._target.model.device)
        self.info = self._assembly.models.info(route, torch.__version__, "local transformers")

    async def probe(self) -> Probe:
        """Return the properties of the loaded models."""
        found = self._assembly.models.probe(self._route, self._configured(), torch.__version__)
        return replace(found, free_memory_bytes=self._free_bytes(), advice=self._advice())

    async def generate(self, request: Request) -> AsyncGenerator[Item, None]:
        """Yield one chunk per verify step, then the `Answer`."""
        pending = self._pending(request)
        with self._lock:
            self._waiting.append(pending)
        # one task of the thread per request; the first to run may answer several
        self._target.thread.submit(self._answer_waiting)
        try:
            await asyncio.wrap_future(pending.done)
        finally:
            pending.cancelled.set()
        for at_s, step in pending.steps:
            yield Chunk(at_s=at_s, tokens=len(step.token_ids))
        yield self._whole(pending)

    async def close(self) -> None:
        """Close NVML; the `ModelShelf` owns the models."""
        self._meter.close()

    def _pending(self, request: Request) -> _RunningRequest:
        prompt = tuple(encode_chat(self._target, request)[0].tolist())
        ending = Ending(
            max_tokens=request.limit,
            end_tokens=frozenset(self._assembly.models.end_tokens),
            stop_strings=self._route.stop,
            decode=self._decode,
        )
        sampling = SamplerChain()
        if request.temperature > 0:
            top_p = 1.0 if request.top_p is None else request.top_p
            sampling = SamplerChain(request.temperature, top_p, request.top_k or 0)
        job = Job(prompt=prompt, ending=ending, seed=request.seed or 0)
        return _RunningRequest(
            job=job,
            sampling=sampling,
            sampler=of_request(request),
            arrived_s=time.perf_counter(),
        )

    def _answer_waiting(self) -> None:
        """Answer the first waiting request, batched with others of the same sampling."""
        with self._lock:
            self._waiting = [one for one in self._waiting if not one.cancelled.is_set()]
            alike = [one for one in self._waiting if one.sampling == self._waiting[0].sampling]
            batch = alike[: self._route.batch]
            self._waiting = [one for one in self._waiting if one not in batch]
        batch = [one for one in batch if one.done.set_running_or_notify_cancel()]
        if not batch:
            return
        try:
            self._answer(batch)
        except torch.OutOfMemoryError as exc:
            _fail(batch, GenerationError("out_of_memory", str(exc)))
        except (RuntimeError, ValueError, AssertionError, LookupError) as exc:
            _fail(batch, GenerationError(type(exc).__name__, str(exc)))
        else:
            for one in batch:
                one.done.set_result(None)

    def _answer(self, batch: list[_RunningRequest]) -> None:
        """Answer a batch in the target's thread and time its steps."""
        torch.set_num_threads(self._route.threads)
        jobs = [one.job for one in batch]
        loop = self._assembly.loop(max(len(j.prompt) + j.ending.max_tokens for j in jobs))
        marks: list[StepMarks] = []
        for one in batch:
            one.begun_s = time.perf_counter()
        with torch.inference_mode():
            for step in loop.steps(jobs, batch[0].sampling):
                marks.append(step.marks)
                for text_step in step.texts:
                    batch[text_step.text].steps.append((step.at_s, text_step))
                for one in batch:
                    if one.cancelled.is_set() and one.job.ending.reason is None:
                        one.job.ending.reason = "given_up"
                if all(job.ending.reason is not None for job in jobs):
                    break
        totals, device = running_totals(marks), self._meter.use(loop.memory)
        for one in batch:  # a text takes part in every step until its last
            one.step_times, one.device = totals[len(one.steps) - 1], device

    def _whole(self, pending: _RunningRequest) -> Answer:
        ending = pending.job.ending
        speculation = self._configured()
        if speculation is not None:
            counts = acceptance_counts.count([step.verify_step for _, step in pending.steps])
            counted = counts.apply(speculation, CountSource.REQUEST.value)
            speculation = replace(counted, step_times=pending.step_times)
        first_s, last_s = pending.steps[0][0], pending.steps[-1][0]
        return Answer(
            model=self.info.model,
            text=_before(self._decode(ending.token_ids), self._route.stop),
            finish_reason=ending.reason or "length",
            input_tokens=len(pending.job.prompt),
            output_tokens=len(ending.token_ids),
            token_ids=tuple(ending.token_ids),
            sampler=pending.sampler,
            seeded_draws=None if pending.sampling.greedy else self._seeded_draws(),
            speculation=speculation,
            queue_s=pending.begun_s - pending.arrived_s,
            prefill_s=first_s - pending.begun_s,
            decode_s=last_s - first_s,
            device=pending.device,
        )

    def _configured(self) -> Speculation | None:
        if self._route.method is None:
            return None
        return Speculation(
            method=self._route.method,
            draft_model=self._assembly.models.draft_name,
            num_speculative_tokens=self._assembly.draft_length().k_max,
            lossless=True,
        )

    def _seeded_draws(self) -> str | None:
        """Return dtype and k; `None` if k varies."""
        length = self._assembly.draft_length()
        return f"{self._route.dtype} k={length.k_max}" if isinstance(length, Fixed) else None

    def _decode(self, token_ids: object) -> str:
        text: str = self._target.tokenizer.decode(token_ids, skip_special_tokens=True)
        return text

    def _advice(self) -> tuple[str, ...]:
        if (why := self._assembly.not_captured) is None:
            return ()
        words = (
            f"the head {self._route.head} reads values on the host, or cannot run without them "
            f"({why}): on a GPU its steps run without CUDA graphs, which takes longer; use tensor "
            "operations alone, on the target's device"
        )
        return (words,)

    def _free_bytes(self) -> int | None:
        """Return the GPU's free memory; `None` on a CPU, whose memory the preflight check reads."""
        device = torch.device(self._route.device)
        return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None


def _fail(batch: list[_RunningRequest], error: GenerationError) -> None:
    for one in batch:
        one.done.set_exception(error)


def _before(text: str, stops: tuple[str, ...]) -> str:
    """Return the text before its first stop string."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(places)] if places else text

"""transformers in-process, on CPU or CUDA: baseline, draft model, or prompt lookup.

Traps: the number of draft tokens is read from the *assistant's* generation configuration, and a
`generate` argument is ignored; the `heuristic` schedule carries state from one request to the
next, so the schedule is `constant` here; batch size is 1.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

import torch
import transformers
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList

from collector.contract import CountSource, Speculation
from engine_adapter.engines import acceptance_counts, sampling
from engine_adapter.engines.answer import Answer
from engine_adapter.engines.base import Chunk, Engine, Item, Probe, Request
from engine_adapter.engines.model_folder import ModelShelf, encode_chat
from engine_adapter.engines.model_pair import ModelPair
from engine_adapter.engines.relaxed_acceptance import relaxed_acceptance
from engine_adapter.engines.verify_steps import Emission, recording
from engine_adapter.errors import GenerationError
from engine_adapter.routes import TransformersRoute


class _Generated(NamedTuple):
    """The output of one request."""

    begun_s: float
    """Reading of `time.perf_counter` when the model became free for it."""
    input_tokens: int
    emissions: list[Emission]


class _StopIfCancelled(StoppingCriteria):
    """Ends a cancelled generation: a thread cannot be cancelled from outside."""

    def __init__(self, cancelled: threading.Event) -> None:
        self._cancelled = cancelled

    def __call__(
        self, input_ids: torch.Tensor, _scores: Any, **_: Any
    ) -> torch.Tensor:  # Any: base
        shape = (input_ids.shape[0],)
        return torch.full(shape, self._cancelled.is_set(), device=input_ids.device)


class TransformersEngine(Engine):
    """One route over a loaded target; answers one request at a time, in order of arrival.

    Chunks are stamped as they are emitted and handed over when the answer is complete.
    """

    def __init__(self, route: TransformersRoute, shelf: ModelShelf) -> None:
        """Load the route's models; raises `EngineSetupError`."""
        self._route = route
        self._models = ModelPair.load(route, shelf)
        self._target, self._draft = self._models
        self.info = self._models.info(route, transformers.__version__, "transformers")

    async def probe(self) -> Probe:
        """Return the properties of the loaded models."""
        configured = self._configured_speculation()
        return self._models.probe(self._route, configured, transformers.__version__)

    async def generate(self, request: Request) -> AsyncGenerator[Item, None]:
        """Yield one chunk per forward pass of the target, then the `Answer`."""
        arrived_s = time.perf_counter()
        cancelled = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            generated = await loop.run_in_executor(
                self._target.thread, self._answer, request, cancelled
            )
        finally:
            cancelled.set()
        for emission in generated.emissions:
            yield Chunk(at_s=emission.at_s, tokens=len(emission.token_ids))
        yield self._whole(request, generated, queue_s=generated.begun_s - arrived_s)

    async def close(self) -> None:
        """Do nothing: the `ModelShelf` owns the models."""

    def _answer(self, request: Request, cancelled: threading.Event) -> _Generated:
        """Answer one request in the target's thread; stop early if it is cancelled."""
        begun_s = time.perf_counter()
        input_ids = encode_chat(self._target, request)
        emissions = self._run(input_ids, request, cancelled)
        return _Generated(begun_s, int(input_ids.shape[1]), emissions)

    def _run(
        self, input_ids: torch.Tensor, request: Request, cancelled: threading.Event
    ) -> list[Emission]:
        model = self._target.model
        torch.set_num_threads(self._route.threads)
        with contextlib.ExitStack() as hooks:
            recorder = hooks.enter_context(recording(model))
            if self._route.relaxed_top_k is not None:
                hooks.enter_context(relaxed_acceptance(model, self._route.relaxed_top_k))
            try:
                model.generate(
                    input_ids,
                    attention_mask=torch.ones_like(input_ids),
                    generation_config=self._generation_config(request),
                    streamer=recorder,
                    stopping_criteria=StoppingCriteriaList([_StopIfCancelled(cancelled)]),
                    **self._speculation_arguments(),
                )
            except torch.OutOfMemoryError as exc:
                raise GenerationError("out_of_memory", str(exc)) from exc
            except (RuntimeError, ValueError) as exc:
                raise GenerationError(type(exc).__name__, str(exc)) from exc
        return recorder.emissions

    def _generation_config(self, request: Request) -> GenerationConfig:
        own = self._target.model.generation_config
        sampled: dict[str, Any] = {}
        if request.temperature > 0:
            sampled = {"temperature": request.temperature, "top_k": request.top_k or 0}
            sampled["top_p"] = request.top_p if request.top_p is not None else 1.0
            if request.seed is not None:
                torch.manual_seed(request.seed)
        return GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=request.limit,
            do_sample=request.temperature > 0,
            eos_token_id=own.eos_token_id,
            pad_token_id=own.pad_token_id,
            bos_token_id=own.bos_token_id,
            prompt_lookup_num_tokens=self._route.prompt_lookup_num_tokens,
            **sampled,
        )

    def _speculation_arguments(self) -> dict[str, Any]:
        if self._draft is None:
            return {}
        config = self._draft.model.generation_config
        if self._route.num_speculative_tokens is not None:
            config.num_assistant_tokens = self._route.num_speculative_tokens
        config.num_assistant_tokens_schedule = "constant"
        config.assistant_confidence_threshold = 0.0
        return {"assistant_model": self._draft.model}

    def _configured_speculation(self) -> Speculation | None:
        route = self._route
        if self._draft is not None:
            return Speculation(
                method="draft_model",
                draft_model=self._models.draft_name,
                num_speculative_tokens=self._draft.model.generation_config.num_assistant_tokens,
                lossless=route.relaxed_top_k is None,
            )
        if route.prompt_lookup_num_tokens is not None:
            return Speculation(
                method="prompt_lookup",
                num_speculative_tokens=route.prompt_lookup_num_tokens,
                lossless=route.relaxed_top_k is None,
            )
        return None

    def _whole(self, request: Request, generated: _Generated, queue_s: float) -> Answer:
        emissions = generated.emissions
        token_ids = [token for emission in emissions for token in emission.token_ids]
        configured = self._configured_speculation()
        steps = [emission.verify_step for emission in emissions]
        counted = [step for step in steps if step is not None]
        if configured is not None and len(counted) == len(steps):
            counts = acceptance_counts.count(counted)
            configured = counts.apply(configured, CountSource.REQUEST.value)
        ended = bool(token_ids) and token_ids[-1] in self._models.end_tokens
        return Answer(
            model=self.info.model,
            text=self._target.tokenizer.decode(token_ids, skip_special_tokens=True),
            finish_reason="stop" if ended else "length",
            input_tokens=generated.input_tokens,
            output_tokens=len(token_ids),
            token_ids=tuple(token_ids),
            sampler=sampling.of_request(request),
            speculation=configured,
            queue_s=queue_s,
        )

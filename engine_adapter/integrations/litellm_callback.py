"""A LiteLLM callback that makes a generation span of each call, with the engine's own counts.

LiteLLM drops unknown fields from streams, so the counts are read below it, by HTTP clients that
the callback creates:

    callback = AcceptanceCallback("vllm")
    litellm.callbacks = [callback]
    litellm.client_session = callback.client()
    litellm.aclient_session = callback.async_client()
"""

from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

import httpx
from litellm.integrations.custom_logger import CustomLogger
from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from collector.contract import Generation
from engine_adapter.engines import reader_of
from engine_adapter.engines.answer import Answer, SpeculationSetup
from engine_adapter.engines.json_fields import count, text, within
from engine_adapter.integrations.transport import AcceptanceTransport, AsyncAcceptanceTransport
from engine_adapter.recording import fields_of_engine
from engine_adapter.recording.span import span_of

_KEPT = 4096
"""Limit on kept answers of calls that LiteLLM has not reported yet."""
_OURS = "draftgate."


class AcceptanceCallback(CustomLogger):  # type: ignore[misc]  # LiteLLM may not be installed
    """Reports LiteLLM's calls; metadata whose names begin with `draftgate.` become attributes."""

    def __init__(
        self,
        engine: str,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        setup: SpeculationSetup | None = None,
    ) -> None:
        """Use `engine`'s reader; send spans with `tracer_provider`, by default the global one."""
        super().__init__()
        self._engine = engine
        self._provider = reader_of(engine).provider
        self._setup = setup
        self._tracer = trace.get_tracer("draftgate", tracer_provider=tracer_provider)
        self._answers: OrderedDict[str, Answer] = OrderedDict()

    def client(self) -> httpx.Client:
        """Return the client to set as `litellm.client_session`."""
        transport = AcceptanceTransport(
            self._engine, httpx.HTTPTransport(), setup=self._setup, record=self._keep
        )
        return httpx.Client(transport=cast("httpx.BaseTransport", transport))

    def async_client(self) -> httpx.AsyncClient:
        """Return the client to set as `litellm.aclient_session`."""
        transport = AsyncAcceptanceTransport(
            self._engine, httpx.AsyncHTTPTransport(), setup=self._setup, record=self._keep
        )
        return httpx.AsyncClient(transport=cast("httpx.AsyncBaseTransport", transport))

    # Any: LiteLLM's own types, and its names for them.
    def log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Report a successful call."""
        self._report(kwargs, response_obj, start_time, end_time, None)

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Report a successful call of the asynchronous API."""
        self._report(kwargs, response_obj, start_time, end_time, None)

    def log_failure_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Report a failed call."""
        error_type = type(kwargs.get("exception")).__name__
        self._report(kwargs, response_obj, start_time, end_time, error_type)

    async def async_log_failure_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Report a failed call of the asynchronous API."""
        self.log_failure_event(kwargs, response_obj, start_time, end_time)

    def _keep(self, answer: Answer) -> None:
        if answer.response_id is not None:
            self._answers[answer.response_id] = answer
            while len(self._answers) > _KEPT:
                self._answers.popitem(last=False)

    def _report(
        self,
        kwargs: Mapping[str, Any],
        response: Any,
        start: datetime,
        end: datetime,
        error_type: str | None,
    ) -> None:
        document = response.model_dump() if hasattr(response, "model_dump") else {}
        answer = self._answers.pop(text(document, "id") or "", None)
        said = answer or reader_of(self._engine)(self._setup).answer()
        first = kwargs.get("completion_start_time") if kwargs.get("stream") else None
        generation = Generation(
            trace_id="",
            span_id="",
            start_unix_ns=_unix_ns(start),
            end_unix_ns=_unix_ns(end),
            provider=self._provider,
            request_model=text(kwargs, "model"),
            response_model=said.model or text(document, "model"),
            response_id=text(document, "id"),
            finish_reasons=(said.finish_reason,) if said.finish_reason else None,
            error_type=error_type,
            input_tokens=count(document, "usage", "prompt_tokens"),
            output_tokens=count(document, "usage", "completion_tokens"),
            ttft_s=(first - start).total_seconds() if isinstance(first, datetime) else None,
            **fields_of_engine(said),
        )
        self._send(generation, _labels(kwargs))

    def _send(self, generation: Generation, labels: Mapping[str, str]) -> None:
        encoded = span_of(generation)
        span = self._tracer.start_span(
            encoded.name,
            kind=SpanKind.CLIENT,
            start_time=encoded.start_unix_ns,
            attributes={**encoded.attributes, **labels},
        )
        if generation.error_type is not None:
            span.set_status(Status(StatusCode.ERROR, generation.error_type))
        span.end(encoded.end_unix_ns)


def _labels(kwargs: Mapping[str, Any]) -> dict[str, str]:
    """Return the call's metadata of the contract: rollout, arm, cohort, prompt, …."""
    metadata = within(kwargs, "litellm_params", "metadata")
    given = metadata.items() if isinstance(metadata, Mapping) else ()
    return {
        name: value for name, value in given if name.startswith(_OURS) and isinstance(value, str)
    }


def _unix_ns(moment: datetime) -> int:
    return round(moment.timestamp() * 1e9)

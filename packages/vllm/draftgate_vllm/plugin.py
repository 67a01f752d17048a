"""vLLM's plugin: counts on the span that `OutputProcessor.do_tracing` sends for a request.

The method builds the span's attributes itself and hands them to `instrument_manual`. The plugin
wraps both: the first to see the request's counts, the second to add them.
"""

import functools
import logging
import multiprocessing
import os
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from draftgate_vllm.attributes import attributes_of

_log = logging.getLogger("vllm.plugins.draftgate")
"""Below vLLM's own logger, so that its handlers and level hold."""
_SWITCH = "DRAFTGATE_PROPOSED_CONVENTIONS"
_counted: ContextVar[dict[str, Any] | None] = ContextVar("counted", default=None)
_WRAPPED = "_draftgate_wrapped"


def register() -> None:
    """Wrap vLLM's span of a request; warn and change nothing if this vLLM has no counts there.

    vLLM calls it once in each of its processes.
    """
    try:
        from vllm.v1.engine import output_processor  # noqa: PLC0415  # vLLM is half imported here

        missing = _missing(output_processor)
    except Exception as exc:  # a plugin must not keep vLLM from starting
        missing = str(exc)
    if missing is None:
        _wrap(output_processor)
    elif multiprocessing.parent_process() is None:  # else one warning from each process
        _log.warning(
            "draftgate-vllm adds nothing: this vLLM has no request's counts at its spans (%s)",
            missing,
        )


def _missing(module: ModuleType) -> str | None:
    """Return the first thing that the plugin needs and vLLM lacks."""
    processor = getattr(module, "OutputProcessor", None)
    metrics = getattr(module, "RequestSpecDecodeMetrics", None)
    fields = getattr(metrics, "__dataclass_fields__", {})
    needed = {
        "OutputProcessor.do_tracing": hasattr(processor, "do_tracing"),
        "instrument_manual": hasattr(module, "instrument_manual"),
        "RequestSpecDecodeMetrics": {"histogram", "num_draft_tokens", "num_spec_tokens"}
        <= set(fields),
    }
    return next((name for name, found in needed.items() if not found), None)


def _wrap(module: Any) -> None:  # Any: vllm.v1.engine.output_processor
    if hasattr(module.OutputProcessor.do_tracing, _WRAPPED):
        return
    proposed = os.environ.get(_SWITCH, "").lower() in ("1", "true")
    trace, send = module.OutputProcessor.do_tracing, module.instrument_manual

    @functools.wraps(trace)
    def do_tracing(self: Any, output: Any, state: Any, *rest: Any, **named: Any) -> Any:
        before = _counted.set(_attributes(state, proposed=proposed))
        try:
            return trace(self, output, state, *rest, **named)
        finally:
            _counted.reset(before)

    @functools.wraps(send)
    def instrument_manual(*args: Any, **named: Any) -> Any:
        counted = _counted.get()
        if counted and isinstance(named.get("attributes"), dict):
            named["attributes"] = named["attributes"] | counted
        return send(*args, **named)

    setattr(do_tracing, _WRAPPED, trace)
    module.OutputProcessor.do_tracing = do_tracing
    module.instrument_manual = instrument_manual


def _attributes(state: Any, *, proposed: bool) -> dict[str, Any] | None:
    """Return the attributes of a finished request's counts.

    None if vLLM counts no request's acceptance, or if this is one of several choices: each has a
    span, and the response as a whole has no counts.
    """
    try:
        counts = state.spec_decode_metrics
        if counts is None or state.parent_req is not None:
            return None
        return attributes_of(counts, proposed=proposed)
    except Exception:
        _warn_once()
        return None


@functools.cache
def _warn_once() -> None:
    _log.warning("draftgate-vllm cannot read a request's counts; its span has none", exc_info=True)

"""SGLang: counts by `return_spec_tokens_details`, or in `meta_info` on its own routes.

Traps: its number of proposed tokens is computed (steps × configured width), not counted. It is
used only if the server's flags make every step propose that many tokens (a chain: top-k 1, no
adaptive steps, no n-gram drafts), and its source is then `derived`. Missing values are sent as 0.0
or [], so zero steps are no data. `spec_accept_length` counts the prefill's token, so it is not
used. Names changed: `spec_accept_token_num` (to 0.5.10), `spec_accepted_drafts` (0.5.18),
`spec_num_correct_drafts` (0.5.23).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from collector.contract import CountSource, Speculation
from engine_adapter.engines.acceptance_counts import accepted_per_position
from engine_adapter.engines.answer import Answer, AnswerReader, OutputPart, SpeculationSetup
from engine_adapter.engines.base import Probe
from engine_adapter.engines.http_engine import HttpEngine
from engine_adapter.engines.json_fields import JsonObject, count, counts, number, text, within
from engine_adapter.engines.scrape import SpeculationCounters
from engine_adapter.engines.self_description import SelfDescription, folder_name

T = TypeVar("T")

_ACCEPTED = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
_PROPOSED = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
_HISTOGRAM = ("spec_correct_drafts_histogram", "spec_accept_histogram")


class SglangReader(AnswerReader):
    """Reads SGLang's answers, on its OpenAI routes and on `/generate`."""

    provider: ClassVar[str] = "sglang"

    def __init__(self, setup: SpeculationSetup | None = None) -> None:
        super().__init__(setup)
        self._meta: dict[str, Any] = {}
        self._native_text: str | None = None

    @classmethod
    def request_fields(cls, *, stream: bool) -> dict[str, Any]:
        """Ask for usage and speculation counts."""
        return super().request_fields(stream=stream) | {"return_spec_tokens_details": True}

    def observe(self, document: JsonObject, piece: OutputPart | None) -> OutputPart | None:
        """Keep the answer's metadata from any of the places where versions put it."""
        for path in (
            ("meta_info",),
            ("choices", 0, "meta_info"),
            ("sglext", "spec_tokens_details"),
        ):
            if isinstance(said := within(document, *path), dict):
                self._meta |= said
        if (native := text(document, "text")) is not None:
            piece = self._native(native)
        return piece

    @property
    def output_tokens(self) -> int | None:
        """Output tokens, from the usage, or from `meta_info` on the native route."""
        usage = super().output_tokens
        return usage if usage is not None else count(self._meta, "completion_tokens")

    def answer(self) -> Answer:
        """Return the answer with its times and counts."""
        said = super().answer()
        cached = said.cached_input_tokens
        return replace(
            said,
            text=said.text if self._native_text is None else self._native_text,
            response_id=said.response_id or text(self._meta, "id"),
            input_tokens=_first(said.input_tokens, count(self._meta, "prompt_tokens")),
            cached_input_tokens=_first(cached, count(self._meta, "cached_tokens")),
            server_ttft_s=number(self._meta, "first_token_latency") or None,
            queue_s=number(self._meta, "queue_time"),
            speculation=self._counts() or said.speculation,
        )

    def _native(self, so_far: str) -> OutputPart | None:
        """Take the text of `/generate`; each event repeats all text so far."""
        before = self._native_text or ""
        self._native_text = so_far
        self.finish(text(self._meta, "finish_reason", "type"))
        new = so_far.removeprefix(before)
        return OutputPart(text=new, tokens=None) if new else None

    def _counts(self) -> Speculation | None:
        steps = count(self._meta, "spec_verify_ct")
        accepted = _first(*(count(self._meta, name) for name in _ACCEPTED))
        if not steps or accepted is None or self.several_choices:
            return None
        histogram = _first(*(counts(self._meta, name) or None for name in _HISTOGRAM))
        drafted = self._drafted(steps)
        return self.counted(
            CountSource.REQUEST if drafted is None else CountSource.DERIVED,
            steps=steps,
            draft_tokens=drafted,
            accepted_tokens=accepted,
            acceptance_histogram=histogram,
            accepted_tokens_per_pos=accepted_per_position(histogram) if histogram else None,
        )

    def _drafted(self, steps: int) -> int | None:
        """Return the proposed tokens, if every step proposes the same number of them."""
        said = _first(*(count(self._meta, name) for name in _PROPOSED))
        width = self.setup.fixed_width
        return said if width is not None and said == steps * width else None


def _first(*said: T | None) -> T | None:
    """Return the first value that is not `None`."""
    return next((value for value in said if value is not None), None)


COUNTERS = SpeculationCounters(
    generated="sglang:generation_tokens_total",
    requests="sglang:num_requests_total",
    in_flight=("sglang:num_running_reqs", "sglang:num_queue_reqs"),
    steps="sglang:spec_verify_calls_total",
)
"""`sglang:spec_num_draft_tokens` is a gauge of the configured width, not a counter."""


class SglangEngine(HttpEngine):
    """A route of SGLang's server."""

    reader = SglangReader
    counters = COUNTERS
    own_routes = ("/server_info", "/get_server_info")
    """The current and the old name of one route."""

    @classmethod
    def interpret(cls, said: SelfDescription) -> Probe:
        """Read the flags; several of them change the meaning of acceptance."""
        flags = _flags(said)
        speculates = "speculative_algorithm" in flags and bool(flags["speculative_algorithm"])
        on = speculates if "speculative_algorithm" in flags else None
        width = _fixed_width(flags)
        configured = Speculation(
            method=_METHODS.get(str(flags.get("speculative_algorithm")).upper()) if on else None,
            draft_model=folder_name(text(flags, "speculative_draft_model_path")) if on else None,
            num_speculative_tokens=width,
            lossless=False if _relaxed(flags) else None,
        )
        return Probe(
            version=text(flags, "version"),
            setup=SpeculationSetup(on=on, configured=configured, fixed_width=width),
            prefix_cache=_radix_cache(flags),
            per_request_metrics=on
            and said.again is not None
            and said.again.speculation is not None,
            metrics_url=said.metrics_url,
            context_length=count(flags, "context_length"),
            dtype=text(flags, "dtype"),
            quantization=text(flags, "quantization"),
            advice=tuple(_advice(said, flags, on=on, width=width)),
        )


_METHODS = {
    "EAGLE": "eagle",
    "EAGLE3": "eagle3",
    "NEXTN": "mtp",
    "STANDALONE": "draft_model",
    "NGRAM": "ngram",
    "DFLASH": "dflash",
    "DSPARK": "dspark",
}
_CHAINS = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")
"""Algorithms that, with top-k 1, propose a chain of the configured length in each step."""


def _flags(said: SelfDescription) -> JsonObject:
    """Return the server's flags, overridden by those changed at run time."""
    for route in SglangEngine.own_routes:
        if isinstance(found := said.of(route), dict):
            now = within(found, "internal_states", 0)
            return {**found, **(now if isinstance(now, dict) else {})}
    return {}


def _fixed_width(flags: JsonObject) -> int | None:
    """Return the number of tokens that each step proposes; `None` if steps may differ."""
    chain = str(flags.get("speculative_algorithm")).upper() in _CHAINS
    nodes = count(flags, "speculative_num_draft_tokens")
    single = count(flags, "speculative_eagle_topk") == 1
    if not chain or not single or nodes is None or flags.get("speculative_adaptive"):
        return None
    return nodes - 1 if nodes > 1 else None


def _relaxed(flags: JsonObject) -> bool:
    """Return whether an acceptance threshold is below 1, which makes acceptance lossy."""
    names = ("speculative_accept_threshold_single", "speculative_accept_threshold_acc")
    thresholds = [number(flags, name) for name in names]
    return any(threshold is not None and threshold < 1 for threshold in thresholds)


def _radix_cache(flags: JsonObject) -> bool | None:
    disabled = flags.get("disable_radix_cache")
    return not disabled if isinstance(disabled, bool) else None


def _advice(
    said: SelfDescription, flags: JsonObject, *, on: bool | None, width: int | None
) -> Iterator[str]:
    if not flags:
        yield "SGLang's /server_info did not answer, so that its flags are unknown"
    if on and (said.again is None or said.again.speculation is None):
        yield (
            "this SGLang does not report a request's acceptance; 0.5.23 and later do where "
            "return_spec_tokens_details is asked for, as it is here"
        )
    if on and width is None:
        yield (
            "steps of this SGLang may differ in width (a tree, n-gram or adaptive drafts): the "
            "tokens that it calls proposed are computed, and are left out"
        )
    if _relaxed(flags):
        yield "an acceptance threshold is below 1: answers are not the target's (lossy)"
    if on:
        yield (
            "SGLANG_SIMULATE_ACC_LEN would make acceptance up, and no route shows it; see that it "
            "is not set"
        )
    if said.metrics is None:
        yield "no Prometheus metrics were found; start SGLang with --enable-metrics"

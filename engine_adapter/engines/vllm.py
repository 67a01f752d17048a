"""vLLM: counts and times in the body's `metrics`, tokens per chunk from `return_token_ids`.

Needs vLLM 0.29 or later with `--per-request-spec-decode-metrics summary` (or `detailed`) on the
speculating route and `--enable-per-request-metrics` on both. In a stream, the metrics are on the
usage chunk.

Traps: the counts are the verifier's, so they include draft tokens that were accepted and then cut
by max_tokens or a stop string (at most `1 + steps + accepted − output tokens`); the body's time to
first token counts from scheduling, not from arrival, so it is `prefill_s` here; several choices
have no counts; a request that drafted nothing has a rate of 0.0 and no data.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from collector.contract import CountSource, Speculation
from engine_adapter.engines import acceptance_counts
from engine_adapter.engines.acceptance_counts import VerifyStep, accepted_per_position
from engine_adapter.engines.answer import Answer, AnswerReader, OutputPart, SpeculationSetup
from engine_adapter.engines.base import Probe
from engine_adapter.engines.http_engine import HttpEngine
from engine_adapter.engines.json_fields import JsonObject, count, counts, seconds, text, within
from engine_adapter.engines.scrape import SpeculationCounters
from engine_adapter.engines.self_description import MODELS, SelfDescription, folder_name


class VllmReader(AnswerReader):
    """Reads vLLM's answers."""

    provider: ClassVar[str] = "vllm"

    def __init__(self, setup: SpeculationSetup | None = None) -> None:
        super().__init__(setup)
        self._metrics: object = None

    @classmethod
    def request_fields(cls, *, stream: bool) -> dict[str, Any]:
        """Ask for usage, and for token ids to know the number of tokens per chunk."""
        return super().request_fields(stream=stream) | (
            {"return_token_ids": True} if stream else {}
        )

    def observe(self, document: JsonObject, piece: OutputPart | None) -> OutputPart | None:
        """Keep the per-request metrics, which only the last document has."""
        self._metrics = within(document, "metrics") or self._metrics
        return piece

    def answer(self) -> Answer:
        """Return the answer with its times and counts."""
        said = super().answer()
        return replace(
            said,
            queue_s=seconds(self._metrics, "queue_time_ms"),
            prefill_s=seconds(self._metrics, "time_to_first_token_ms"),
            decode_s=seconds(self._metrics, "generation_time_ms"),
            speculation=self._counts() or said.speculation,
        )

    def _counts(self) -> Speculation | None:
        said = within(self._metrics, "speculative_decoding")
        drafted = count(said, "num_draft_tokens")
        if not drafted:
            return None
        histogram = counts(said, "acceptance_histogram")
        known: dict[str, Any] = {
            "steps": count(said, "num_spec_steps"),
            "draft_tokens": drafted,
            "accepted_tokens": count(said, "num_accepted_draft_tokens"),
            "draft_tokens_per_pos": _drafted_per_position(said),
            "accepted_tokens_per_pos": accepted_per_position(histogram) if histogram else None,
            "acceptance_histogram": histogram,
            "num_speculative_tokens": count(said, "num_spec_tokens")
            or self.setup.configured.num_speculative_tokens,
        }
        return self.counted(CountSource.REQUEST, **known)


def _drafted_per_position(said: object) -> tuple[int, ...] | None:
    """Return the draft tokens per position, from the per-step lists of `detailed`."""
    drafted, accepted = counts(said, "per_step_drafted"), counts(said, "per_step_accepted")
    if drafted is None or accepted is None or len(drafted) != len(accepted):
        return None
    steps = [VerifyStep(*step) for step in zip(drafted, accepted, strict=True)]
    return acceptance_counts.count(steps).draft_tokens_per_pos


COUNTERS = SpeculationCounters(
    generated="vllm:generation_tokens_total",
    requests="vllm:request_success_total",
    in_flight=("vllm:num_requests_running", "vllm:num_requests_waiting"),
    steps="vllm:spec_decode_num_drafts_total",
    drafted="vllm:spec_decode_num_draft_tokens_total",
    accepted="vllm:spec_decode_num_accepted_tokens_total",
    accepted_per_position=("vllm:spec_decode_num_accepted_tokens_per_pos_total", "position"),
)


class VllmEngine(HttpEngine):
    """A route of `vllm serve`."""

    reader = VllmReader
    counters = COUNTERS
    own_routes = ("/version", "/server_info?config_format=json")
    """The second exists only with VLLM_SERVER_DEV_MODE=1; it has the acceptance flags."""

    @classmethod
    def interpret(cls, said: SelfDescription) -> Probe:
        """Read the version, speculation, and whether requests have metrics."""
        flags = within(said.of(cls.own_routes[1]), "vllm_config", "speculative_config")
        speculates = _speculates(said)
        rule = text(flags, "rejection_sample_method")
        configured = Speculation(
            method=text(flags, "method"),
            draft_model=folder_name(text(flags, "model")),
            num_speculative_tokens=count(flags, "num_speculative_tokens") or _reported_width(said),
            lossless=_LOSSLESS.get(rule) if rule is not None else None,
        )
        return Probe(
            version=text(said.of("/version"), "version"),
            setup=SpeculationSetup(on=speculates, configured=configured),
            synthetic_acceptance=rule == "synthetic" if rule is not None else None,
            prefix_cache=said.reuses_prefixes or _prefix_caching(said),
            per_request_metrics=_is_timed(said),
            metrics_url=said.metrics_url,
            context_length=count(said.of(MODELS), "data", 0, "max_model_len"),
            kv_cache_dtype=_cache_dtype(said),
            advice=tuple(_advice(said, speculates=speculates, rule=rule)),
        )


_LOSSLESS = {"standard": True, "block": True, "fly": False, "synthetic": False}
"""By `rejection_sample_method`; other methods are unknown."""


def _speculates(said: SelfDescription) -> bool | None:
    """Return whether the speculation counters exist; vLLM has them only if it speculates."""
    spoken = said.again.speculation if said.again is not None else None
    if spoken is not None and spoken.draft_tokens:
        return True
    metrics = said.metrics
    if metrics is None or metrics.total("vllm:num_requests_running") is None:
        return None
    return metrics.total("vllm:spec_decode_num_drafts_total") is not None


def _reported_width(said: SelfDescription) -> int | None:
    spoken = said.again.speculation if said.again is not None else None
    return spoken.num_speculative_tokens if spoken is not None else None


def _is_timed(said: SelfDescription) -> bool | None:
    return None if said.again is None else said.again.prefill_s is not None


def _prefix_caching(said: SelfDescription) -> bool | None:
    flag = said.metrics and said.metrics.label("vllm:cache_config_info", "enable_prefix_caching")
    return {"True": True, "False": False}.get(flag or "")


def _cache_dtype(said: SelfDescription) -> str | None:
    metrics = said.metrics
    return None if metrics is None else metrics.label("vllm:cache_config_info", "cache_dtype")


def _advice(said: SelfDescription, *, speculates: bool | None, rule: str | None) -> Iterator[str]:
    spoken = said.again.speculation if said.again is not None else None
    if speculates and spoken is None:
        yield (
            "vLLM speculates here and does not say how each request fared; start it with "
            "--per-request-spec-decode-metrics summary (vLLM 0.29 or later), or run with "
            "concurrency 1, where its /metrics tell"
        )
    if not _is_timed(said):
        yield "for vLLM's own queue and prefill times, start it with --enable-per-request-metrics"
    if rule == "synthetic":
        yield "rejection_sample_method is synthetic: acceptance is made up, answers are worthless"
    if rule == "fly":
        yield "rejection_sample_method is fly: it keeps tokens that the target would not (lossy)"
    if speculates and rule is None:
        yield (
            "whether acceptance is lossless cannot be seen; VLLM_SERVER_DEV_MODE=1 lets the "
            "server show its rejection_sample_method"
        )
    if said.metrics is None:
        yield "no Prometheus metrics were found; vLLM serves them unless --disable-log-stats is on"

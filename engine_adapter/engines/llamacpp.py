"""llama.cpp's server: draft counts and times in `timings`, on the last chunk or on every chunk.

Traps: `draft_n` and `draft_n_accepted` are omitted if nothing was drafted, so their absence means
zero only if the server reports that it speculates (`/slots[].speculative`), else unknown.
The last draft is cut to the tokens that `max_tokens` leaves, so the counts match the answer's
tokens, except if the end of the text was a step's last draft token.
`timings` has no number of verify steps. With `timings_per_token`, each chunk carries the counts so
far, and the steps follow from their increments, exactly or not at all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from collector.contract import CountSource, Speculation
from engine_adapter.engines import acceptance_counts, sampling
from engine_adapter.engines.acceptance_counts import VerifyStep
from engine_adapter.engines.answer import Answer, AnswerReader, OutputPart, SpeculationSetup
from engine_adapter.engines.base import Probe
from engine_adapter.engines.http_engine import HttpEngine
from engine_adapter.engines.json_fields import (
    JsonObject,
    count,
    number,
    objects,
    seconds,
    text,
    within,
)
from engine_adapter.engines.scrape import SpeculationCounters
from engine_adapter.engines.self_description import SelfDescription


class Totals(NamedTuple):
    """The cumulative counts in one chunk's `timings`."""

    generated: int
    drafted: int
    accepted: int


class LlamaCppReader(AnswerReader):
    """Reads llama.cpp's answers, on its OpenAI routes and on `/completion`."""

    provider: ClassVar[str] = "llama_cpp"

    def __init__(self, setup: SpeculationSetup | None = None) -> None:
        super().__init__(setup)
        self._timings: object = None
        self._seen: list[Totals] = [Totals(0, 0, 0)]

    @classmethod
    def request_fields(cls, *, stream: bool) -> dict[str, Any]:
        """Ask for usage and for the cumulative counts with each token."""
        return super().request_fields(stream=stream) | (
            {"timings_per_token": True} if stream else {}
        )

    def observe(self, document: JsonObject, piece: OutputPart | None) -> OutputPart | None:
        """Keep the timings; a piece's tokens are those generated since the previous one."""
        if (native := text(document, "content")) is not None:
            self.add(native)
            self.finish(within(document, "stop_type"))
            piece = OutputPart(text=native, tokens=None) if native else None
        timings = within(document, "timings")
        generated = count(timings, "predicted_n")
        if generated is None:
            return piece
        self._timings = timings
        before = self._seen[-1].generated
        drafted, accepted = count(timings, "draft_n") or 0, count(timings, "draft_n_accepted") or 0
        self._seen.append(Totals(generated, drafted, accepted))
        return replace(piece, tokens=generated - before) if piece is not None else None

    @property
    def output_tokens(self) -> int | None:
        """Output tokens, from the usage, or from the timings on the native route."""
        usage = super().output_tokens
        return usage if usage is not None else count(self._timings, "predicted_n")

    def answer(self) -> Answer:
        """Return the answer with its times and counts."""
        said = super().answer()
        cached = count(self._timings, "cache_n")
        return replace(
            said,
            cached_input_tokens=cached if cached is not None else said.cached_input_tokens,
            prefill_s=seconds(self._timings, "prompt_ms"),
            decode_s=seconds(self._timings, "predicted_ms"),
            speculation=self._counts() or said.speculation,
        )

    def _counts(self) -> Speculation | None:
        drafted = count(self._timings, "draft_n")
        if self._timings is None or (drafted is None and not self.setup.on):
            return None
        steps = verify_steps(self._seen)
        if steps is not None:
            return acceptance_counts.count(steps).apply(
                self.setup.configured, CountSource.REQUEST.value
            )
        return self.counted(
            CountSource.REQUEST,
            draft_tokens=drafted or 0,
            accepted_tokens=count(self._timings, "draft_n_accepted") or 0,
        )


def verify_steps(seen: Sequence[Totals]) -> list[VerifyStep] | None:
    """Return the verify steps behind the totals of an answer's chunks; `None` if ambiguous.

    A step's drafts are added with its first token, and it emits one token more than it accepted.
    It is ambiguous if the server held chunks back (part of a character, the beginning of a stop
    string), so that one increment could contain two steps.
    """
    steps: list[VerifyStep] = []
    step_ends_at = 0
    for before, now in pairwise(seen):
        drafted, accepted = now.drafted - before.drafted, now.accepted - before.accepted
        if drafted < 0 or not 0 <= accepted <= drafted:
            return None
        if drafted == 0:
            continue
        began_at = max(before.generated, step_ends_at) + 1
        if now.generated < began_at or (drafted > 1 and now.generated > began_at):
            return None
        steps.append(VerifyStep(drafted, accepted))
        step_ends_at = began_at + accepted
    return steps


COUNTERS = SpeculationCounters(
    generated="llamacpp:tokens_predicted_total",
    requests=None,
    in_flight=("llamacpp:requests_processing", "llamacpp:requests_deferred"),
    steps="llamacpp:spec_decode_num_drafts_total",
    drafted="llamacpp:spec_decode_num_draft_tokens_total",
    accepted="llamacpp:spec_decode_num_accepted_tokens_total",
    accepted_per_position=("llamacpp:spec_decode_num_accepted_tokens_per_pos_total", "position"),
)


class LlamaCppEngine(HttpEngine):
    """A route of `llama-server`."""

    reader = LlamaCppReader
    counters = COUNTERS
    own_routes = ("/props", "/slots")

    def sampler(self, body: JsonObject) -> str | None:
        """Return the sampler, whose steps and their order a request may set as well."""
        probe = self._probe
        order = _sampling_order(body.get("samplers")) or probe.sampling_order
        return sampling.written(body, probe.sampling_defaults, order) if order else None

    @classmethod
    def interpret(cls, said: SelfDescription) -> Probe:
        """Read the build from `/props`, and from `/slots` whether and how it speculates."""
        props, slots = said.of("/props"), objects(said.documents, "/slots")
        speculates = _speculates(slots)
        return Probe(
            version=_version(props),
            setup=SpeculationSetup(on=speculates, configured=Speculation(method=_method(slots))),
            prefix_cache=_reuses(said.again),
            per_request_metrics=said.again is not None and said.again.prefill_s is not None,
            metrics_url=said.metrics_url,
            context_length=count(props, "default_generation_settings", "n_ctx"),
            quantization=text(props, "model_ftype"),
            chat_template=text(props, "chat_template"),
            sampling_defaults=_sampling_defaults(props),
            sampling_order=_sampling_order(
                within(props, "default_generation_settings", "params", "samplers")
            ),
            advice=tuple(_advice(said, speculates=speculates)),
        )


_UNKNOWN_BUILD = "b0-unknown"
"""`build_info` of a binary that was built without its source's history."""


def _version(props: object) -> str | None:
    build = text(props, "build_info")
    return None if build == _UNKNOWN_BUILD else build


_METHODS = {"draft-simple": "draft_model"}
"""llama.cpp's names of draft methods that differ from ours."""


_PARAMETERS = {
    "penalties": ("repeat_penalty", "presence_penalty", "frequency_penalty"),
    "dry": ("dry_multiplier",),
    "typ_p": ("typical_p",),
    "xtc": ("xtc_probability",),
    "temperature": ("dynatemp_range", "temperature"),
}
"""Parameters of llama.cpp's samplers; the others have one, of the sampler's own name."""
_IN_PLACE_OF_ALL = ("mirostat", "adaptive_target")


def _sampling_defaults(props: JsonObject) -> dict[str, float]:
    said = within(props, "default_generation_settings", "params")
    found = {name: number(said, name) for name in sampling.NEUTRAL}
    return {
        name: float(f"{value:.6g}")  # 0.95 is reported as 0.949999988079071
        for name, value in found.items()
        if value is not None and sampling.has_effect(name, value)
    }


def _sampling_order(samplers: object) -> tuple[str, ...] | None:
    """Return the parameters of a list of samplers, in its order; `None` if there is no list."""
    if not isinstance(samplers, list):
        return None
    names = [name for name in samplers if isinstance(name, str)]
    return (*_IN_PLACE_OF_ALL, *(p for name in names for p in _PARAMETERS.get(name, (name,))))


def _speculates(slots: Sequence[JsonObject]) -> bool | None:
    said = [within(slot, "speculative") for slot in slots]
    return any(said) if said and all(isinstance(value, bool) for value in said) else None


def _method(slots: Sequence[JsonObject]) -> str | None:
    """Return the draft method, which a slot shows once it has answered a request."""
    for slot in slots:
        kinds = (text(slot, "params", "speculative.types") or "").split(",")
        named = [_METHODS.get(kind, kind) for kind in kinds if kind not in ("", "none")]
        if named:
            return ",".join(named)
    return None


def _reuses(again: Answer | None) -> bool | None:
    """Return whether the second of two equal prompts had cached tokens."""
    cached = again.cached_input_tokens if again is not None else None
    return None if cached is None else cached > 0


def _advice(said: SelfDescription, *, speculates: bool | None) -> Iterator[str]:
    if speculates is None:
        yield (
            "whether llama.cpp speculates cannot be seen, so that a request without drafts has no "
            "counts; start llama-server with --slots"
        )
    if speculates is False:
        yield (
            "llama.cpp does not speculate here; a draft model given with -md also needs "
            "--spec-type draft-simple"
        )
    if said.metrics is None:
        yield "no Prometheus metrics were found; start llama-server with --metrics"
    if _reuses(said.again):
        yield (
            "llama.cpp reuses the last prompt's prefix, so that repeats of a prompt are faster "
            "than the first; start llama-server with --no-cache-prompt to compare fairly"
        )

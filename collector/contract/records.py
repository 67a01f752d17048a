"""Records that cross a process boundary: spans, generations, scores, engine samples, pairs.

Every field that nobody measured is `None`, never 0. Times are Unix nanoseconds where they are
instants (`_unix_ns`) and seconds where they are durations (`_s`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

AttributeValue = (
    str
    | bool
    | int
    | float
    | bytes
    | None
    | tuple["AttributeValue", ...]
    | Mapping[str, "AttributeValue"]
)
"""A decoded OTLP `AnyValue`: arrays are tuples, key-value lists are mappings."""


SPAN_ONLY: Final = MappingProxyType({"span_only": True})
"""Of a field that is written to the span, which keeps it, and has no column and no JSON."""


class Arm(StrEnum):
    """The side of a rollout that answered."""

    BASELINE = "baseline"
    CANDIDATE = "candidate"


class CountSource(StrEnum):
    """Where speculation counts come from (`spec_decode.source`)."""

    REQUEST = "request"
    SCRAPE = "scrape"
    DERIVED = "derived"


class SampleKind(StrEnum):
    """How the samples of one metric are to be read."""

    GAUGE = "gauge"
    """The state at that time; sums that may fall are such, too."""
    COUNTER = "counter"
    """All since the engine's start: it grows, and begins anew where the engine does."""
    DELTA = "delta"
    """What was added since the sample before."""


class FeedbackKind(StrEnum):
    """What somebody who got an answer did about it."""

    THUMBS_UP = "thumbs_up"
    THUMBS_DOWN = "thumbs_down"
    ESCALATION = "escalation"
    """Passed on to a human."""
    EDIT = "edit"
    """Changed before it was used."""


class Switch(StrEnum):
    """Whether a rollout's candidate may answer."""

    ON = "on"
    OFF = "off"


class SpanStatus(StrEnum):
    """OTLP span status."""

    UNSET = "unset"
    OK = "ok"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """Something that happened during a span."""

    name: str
    time_unix_ns: int
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanLink:
    """A reference to another span."""

    trace_id: str
    span_id: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One OTLP span, decoded but not interpreted."""

    trace_id: str
    """32 lower-case hexadecimal digits."""
    span_id: str
    """16 lower-case hexadecimal digits."""
    parent_span_id: str | None = None
    name: str
    kind: str = "internal"
    """internal, server, client, producer or consumer."""
    start_unix_ns: int
    end_unix_ns: int
    status: SpanStatus = SpanStatus.UNSET
    status_message: str | None = None
    scope_name: str | None = None
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    resource: Mapping[str, AttributeValue] = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanLink, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """What a generation's steps took by their parts, summed; its prompt's reading is apart.

    Texts that are answered together share their steps, and each counts a shared step whole.
    """

    draft_s: float | None = None
    verify_s: float | None = None
    """The target's passes, and judging by them."""
    overhead_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """What an engine in this process held of its device, and a GPU's state as the answer ended."""

    weight_bytes: int | None = None
    draft_weight_bytes: int | None = None
    cache_bytes: int | None = None
    draft_cache_bytes: int | None = None
    gpu_utilization_pct: float | None = None
    """Of the driver's last sample period, a second at most."""
    gpu_power_w: float | None = None
    gpu_clock_mhz: float | None = None
    """Of the multiprocessors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """How a generation speculated: configuration, and counts over its verify steps.

    The acceptance rate is `accepted_tokens / draft_tokens`; the acceptance length (tokens emitted a
    verify step, bonus token included) is `1 + accepted_tokens / steps`. Neither is stored: both are
    made from summed counts, in one place (`evals.acceptance`).
    """

    method: str | None = None
    """draft_model, prompt_lookup, eagle, …"""
    draft_model: str | None = None
    num_speculative_tokens: int | None = None
    """k, the draft tokens asked for a step."""
    lossless: bool | None = None
    """False where a relaxed acceptance or a synthetic mode is on; absent where unknown."""
    source: str | None = None
    """One of `CountSource`."""
    steps: int | None = None
    draft_tokens: int | None = None
    accepted_tokens: int | None = None
    draft_tokens_per_pos: tuple[int, ...] | None = None
    """Entry j counts the steps that proposed at least j + 1 tokens."""
    accepted_tokens_per_pos: tuple[int, ...] | None = None
    """Entry j counts the steps that accepted at least j + 1 tokens."""
    acceptance_histogram: tuple[int, ...] | None = None
    """Entry j counts the steps that accepted exactly j tokens."""
    step_times: StepTimes | None = field(default=None, metadata=SPAN_ONLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The text of a generation and what it is judged against; each part is opt-in."""

    input_messages: str | None = None
    """JSON, as `gen_ai.input.messages`: a list of `{"role": …, "parts": [{"type": …}]}`."""
    output_messages: str | None = None
    """JSON, as `gen_ai.output.messages`."""
    context: tuple[str, ...] | None = None
    """Retrieved passages."""
    reference: str | None = None
    """What a correct answer is: plain text, or a JSON object with a `kind`."""
    output_schema: str | None = None
    """JSON Schema that the answer must satisfy, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One request answered by one arm."""

    trace_id: str
    span_id: str
    start_unix_ns: int
    end_unix_ns: int
    operation: str = "chat"
    provider: str | None = None
    request_model: str | None = None
    response_model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop_sequences: tuple[str, ...] | None = None
    response_id: str | None = None
    finish_reasons: tuple[str, ...] | None = None
    error_type: str | None = None
    """Set exactly where the request failed."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    ttft_s: float | None = None
    """Time to first token as the client saw it."""
    server_ttft_s: float | None = None
    """Time to first token as the engine said it."""
    tpot_s: float | None = None
    """(end − first token) / (output tokens − 1)."""
    queue_s: float | None = None
    prefill_s: float | None = None
    """From scheduling to the first token, as the engine said it."""
    decode_s: float | None = None
    """From the first token to the last, as the engine said it."""
    stream_chunks: int | None = None
    stream_max_gap_s: float | None = None
    stream_p99_gap_s: float | None = None
    rollout: str | None = None
    arm: Arm | None = None
    cohort: str | None = None
    prompt_id: str | None = None
    repeat: int | None = None
    route: str | None = None
    dims: Mapping[str, str] = field(default_factory=dict)
    retries: int | None = None
    fallback: bool | None = None
    mirrored: bool | None = None
    concurrency: int | None = None
    """Requests in flight at the start, this one included."""
    client_lag_s: float | None = None
    """How late the load generator sent the request; its start is then when it was due."""
    speculation: Speculation | None = None
    device: DeviceUse | None = field(default=None, metadata=SPAN_ONLY)
    content: Content | None = None
    service_name: str | None = None
    service_version: str | None = None
    fingerprint: str | None = None
    """Hash of target, draft, tokenizer, engine version and flags."""
    workload: str | None = None
    """How many pairs each cohort of the whole run is to have, as JSON: `{"chat": 400}`."""
    quality: tuple[str, ...] = ()
    """What the collector found wrong with the span; never on the wire."""

    @property
    def e2e_s(self) -> float:
        """End-to-end duration."""
        return (self.end_unix_ns - self.start_unix_ns) / 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredSpan:
    """A part of an answer that was judged by itself, by its place: it holds no text."""

    start: int
    """Characters (code points) before it in the answer's text."""
    end: int
    support: float | None = None
    """In [0, 1]: how far it is supported, or right; `None` where it was marked without a number."""

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end < 2**31:
            raise ValueError(f"a span runs from a start to an end, got {self.start} to {self.end}")
        if self.support is not None and not 0.0 <= self.support <= 1.0:
            raise ValueError(f"a span's support lies in [0, 1], got {self.support!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What one evaluator says of one generation.

    `value` is in [0, 1], or `None` together with `unscored_reason`: an answer that could not be
    judged is never a number.
    """

    trace_id: str
    span_id: str
    metric: str
    """groundedness, task_completion, schema_validity, …"""
    evaluator: str
    version: str
    value: float | None = None
    label: str | None = None
    explanation: str | None = None
    unscored_reason: str | None = None
    latency_s: float | None = None
    """What the judgement took."""
    cost_usd: float | None = None
    """What the judgement cost, where it is charged for and the price is known."""
    spans: tuple[ScoredSpan, ...] | None = None
    """Parts of the answer that were judged by themselves."""

    def __post_init__(self) -> None:
        if (self.value is None) == (self.unscored_reason is None):
            raise ValueError("a score has either a value or the reason why there is none")
        if self.value is not None and not 0.0 <= self.value <= 1.0:
            raise ValueError(f"a score's value lies in [0, 1], got {self.value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What one source says that somebody did about one generation."""

    trace_id: str
    span_id: str
    kind: FeedbackKind
    source: str
    """Where it was given, such as the application's name; once for each kind."""
    time_unix_ns: int
    comment: str | None = None
    """Text, which is kept and given as content is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchChange:
    """What a rollout's switch is to be set to."""

    state: Switch
    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError("a switch is set for a reason; say which")


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchState:
    """One setting of a rollout's switch; the newest of them holds."""

    id: int
    """Grows with every event of any rollout."""
    rollout: str
    state: Switch
    reason: str
    who: str
    """Name of the API key that set it; `local` where no key was needed."""
    time_unix_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RampChange:
    """What part of the traffic a rollout's candidate is to get from now on."""

    percent: float
    reason: str
    continues: int = 0
    """Id of the step that this follows; 0 for the first."""
    verdict: str | None = None
    """Id of the passing verdict that a larger share rests on; the first step needs none."""

    def __post_init__(self) -> None:
        if not 0 <= self.percent <= 100:
            raise ValueError(f"percent: wanted 0 to 100, got {self.percent:g}")
        if not self.reason.strip():
            raise ValueError("a step is taken for a reason; say which")


@dataclass(frozen=True, slots=True, kw_only=True)
class RampStep:
    """One step of a rollout's ramp; the newest of them holds."""

    id: int
    """Grows with every step of any rollout."""
    rollout: str
    percent: float
    reason: str
    verdict: str | None
    who: str
    """Name of the API key that took it; `local` where no key was needed."""
    time_unix_ns: int
    arrived_up_to: int = 0
    """The newest generation when it was taken: pairs that arrived later are younger than it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSample:
    """One value of one of an engine's gauges or counters, at one time."""

    time_unix_ns: int
    service_name: str | None
    instance: str | None
    """Which of the service's processes: `service.instance.id`, else `host.name`."""
    metric: str
    kind: SampleKind
    value: float
    unit: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Labels, such as the model's name."""


class PairKey(NamedTuple):
    """What makes two generations a pair, within a rollout."""

    prompt_id: str
    repeat: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The two generations of one prompt and repeat; a side that never arrived is `None`."""

    rollout: str
    prompt_id: str
    repeat: int
    cohort: str | None
    baseline: Generation | None
    candidate: Generation | None
    baseline_scores: tuple[Score, ...] = ()
    candidate_scores: tuple[Score, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """A pair whose candidate scored lower than its baseline."""

    prompt_id: str
    repeat: int
    cohort: str | None
    metric: str
    """That it scored lower in: the one that was asked for, else the one that it lost most in."""
    baseline: float
    candidate: float
    change: float
    """Candidate − baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutOverview:
    """What the collector holds of one rollout."""

    rollout: str
    first_start_unix_ns: int
    last_end_unix_ns: int
    baseline_generations: int
    candidate_generations: int
    pairs: int
    """Prompts and repeats that both arms answered or failed."""
    cohorts: tuple[str, ...]
    quality_flagged: int
    """Generations whose span violated the contract."""
    spec_draft_tokens: int | None = None
    """Of all usable counts; None where no generation has any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary:
    """One metric over many generations, in seconds or in tokens.

    The percentiles are those of a sketch, each at most 1 % from the exact lower sample quantile;
    the gate's own are exact.
    """

    metric: str
    """ttft_s, tpot_s, e2e_s, server_ttft_s, queue_s or output_tokens."""
    n: int
    sum: float
    mean: float
    stdev: float | None
    """With n − 1; None where n is 1."""
    min: float
    max: float
    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSummary:
    """Counts and sums of one arm in one cohort; ratios of counts are the reader's to make."""

    rollout: str
    arm: Arm
    cohort: str | None
    generations: int
    errors: int
    quality_flagged: int
    """Generations whose span violated the contract."""
    fallbacks: int
    """Generations that another route answered, as far as they say."""
    retries: int
    """Over all generations that say how many they had."""
    input_tokens: int | None
    output_tokens: int | None
    ttft_s_sum: float | None
    ttft_s_count: int
    e2e_s_sum: float | None
    e2e_s_count: int
    spec_steps: int | None
    spec_draft_tokens: int | None
    spec_accepted_tokens: int | None
    metrics: tuple[MetricSummary, ...] = ()
    """Of those that anything was measured of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBucket:
    """One arm in one cohort, in one minute, hour or day (UTC)."""

    start_unix_s: int
    length_s: int
    summary: ArmSummary

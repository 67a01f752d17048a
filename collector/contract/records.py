"""Records that cross a process boundary: spans, generations, scores, engine samples, pairs.

A field that was not measured is `None`, never 0. Instants are in Unix nanoseconds (`_unix_ns`),
durations in seconds (`_s`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from collector.contract import attributes as a
from collector.contract.wire_field import Form, NotNegative, on_wire

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
"""Metadata of fields that exist only on the span: they have no column and are not in JSON."""


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
    """The meaning of a metric's samples."""

    GAUGE = "gauge"
    """The value at that time; also sums that may decrease."""
    COUNTER = "counter"
    """The total since the engine's start: monotonic, and reset when the engine restarts."""
    DELTA = "delta"
    """The increase since the previous sample."""


class FeedbackKind(StrEnum):
    """A user's reaction to an answer."""

    THUMBS_UP = "thumbs_up"
    THUMBS_DOWN = "thumbs_down"
    ESCALATION = "escalation"
    """The request was escalated to a human."""
    EDIT = "edit"
    """The answer was changed before it was used."""


class Switch(StrEnum):
    """Whether a rollout's candidate may answer."""

    ON = "on"
    OFF = "off"


class UnpairedReason(StrEnum):
    """Why a generation does not pair."""

    NO_ROLLOUT = "no_rollout"
    NO_ARM = "no_arm"
    NO_PROMPT_ID = "no_prompt_id"
    NO_REPEAT = "no_repeat"
    NO_OTHER_ARM = "no_other_arm"
    """The other arm has no generation of the same prompt and repeat."""

    @property
    def fix(self) -> str:
        """How its sender can fix it."""
        return {
            UnpairedReason.NO_ROLLOUT: f"set {a.DRAFTGATE_ROLLOUT} on the span or the resource",
            UnpairedReason.NO_ARM: f"set {a.DRAFTGATE_ARM} to baseline or candidate, on the span "
            "or the resource",
            UnpairedReason.NO_PROMPT_ID: f"set {a.DRAFTGATE_PROMPT_ID}, the same on both arms",
            UnpairedReason.NO_REPEAT: f"set {a.DRAFTGATE_REPEAT} to a whole number, or leave it "
            "out for 0",
            UnpairedReason.NO_OTHER_ARM: "ask the other arm the same, under an equal "
            f"{a.DRAFTGATE_ROLLOUT}, {a.DRAFTGATE_PROMPT_ID} and {a.DRAFTGATE_REPEAT}",
        }[self]


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
    """The duration of a generation's verify steps, by part, without the prefill.

    Sequences in a batch share their steps; each counts a shared step in full.
    """

    draft_s: float | None = on_wire(a.SPEC_DECODE_TIME_IN_DRAFT, Form.NUMBER)
    verify_s: float | None = on_wire(a.SPEC_DECODE_TIME_IN_VERIFY, Form.NUMBER)
    """Forward passes of the target model, and acceptance decisions."""
    overhead_s: float | None = on_wire(a.SPEC_DECODE_TIME_IN_OVERHEAD, Form.NUMBER)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """Memory used by an in-process engine, and the GPU's state at the end of the answer."""

    weight_bytes: int | None = on_wire(a.DRAFTGATE_MEMORY_WEIGHTS, Form.INTEGER)
    draft_weight_bytes: int | None = on_wire(a.DRAFTGATE_MEMORY_DRAFT_WEIGHTS, Form.INTEGER)
    cache_bytes: int | None = on_wire(a.DRAFTGATE_MEMORY_CACHE, Form.INTEGER)
    draft_cache_bytes: int | None = on_wire(a.DRAFTGATE_MEMORY_DRAFT_CACHE, Form.INTEGER)
    gpu_utilization_pct: float | None = on_wire(a.DRAFTGATE_GPU_UTILIZATION, Form.NUMBER)
    """Over the driver's last sample period, at most one second."""
    gpu_power_w: float | None = on_wire(a.DRAFTGATE_GPU_POWER, Form.NUMBER)
    gpu_clock_mhz: float | None = on_wire(a.DRAFTGATE_GPU_CLOCK, Form.NUMBER)
    """Clock of the streaming multiprocessors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """A generation's speculation: configuration, and counts over its verify steps.

    The acceptance rate is `accepted_tokens / draft_tokens`; the acceptance length (tokens emitted
    per verify step, bonus token included) is `1 + accepted_tokens / steps`. Neither is stored: both
    are computed from summed counts, in one place (`evals.evidence.acceptance`).
    """

    method: str | None = on_wire(a.SPEC_DECODE_METHOD, Form.STRING, few_values=True)
    """draft_model, prompt_lookup, eagle, …"""
    draft_model: str | None = on_wire(a.SPEC_DECODE_DRAFT_MODEL, Form.STRING, few_values=True)
    num_speculative_tokens: int | None = on_wire(a.SPEC_DECODE_NUM_SPECULATIVE_TOKENS, Form.INTEGER)
    """k, the configured number of draft tokens per step."""
    lossless: bool | None = on_wire(a.SPEC_DECODE_LOSSLESS, Form.BOOLEAN)
    """False if a relaxed acceptance or a synthetic mode is on; absent if unknown."""
    source: str | None = on_wire(a.SPEC_DECODE_SOURCE, Form.STRING, few_values=True)
    """One of `CountSource`."""
    steps: int | None = on_wire(
        a.SPEC_DECODE_NUM_STEPS, Form.INTEGER, not_negative=NotNegative.COUNTS
    )
    draft_tokens: int | None = on_wire(
        a.SPEC_DECODE_NUM_DRAFT_TOKENS, Form.INTEGER, not_negative=NotNegative.COUNTS
    )
    accepted_tokens: int | None = on_wire(
        a.SPEC_DECODE_NUM_ACCEPTED_TOKENS, Form.INTEGER, not_negative=NotNegative.COUNTS
    )
    draft_tokens_per_pos: tuple[int, ...] | None = on_wire(
        a.SPEC_DECODE_NUM_DRAFT_TOKENS_PER_POS, Form.INTEGERS, not_negative=NotNegative.COUNTS
    )
    """Entry j counts the steps that proposed at least j + 1 tokens."""
    accepted_tokens_per_pos: tuple[int, ...] | None = on_wire(
        a.SPEC_DECODE_NUM_ACCEPTED_TOKENS_PER_POS, Form.INTEGERS, not_negative=NotNegative.COUNTS
    )
    """Entry j counts the steps that accepted at least j + 1 tokens."""
    acceptance_histogram: tuple[int, ...] | None = on_wire(
        a.SPEC_DECODE_ACCEPTANCE_HISTOGRAM, Form.INTEGERS, not_negative=NotNegative.COUNTS
    )
    """Entry j counts the steps that accepted exactly j tokens."""
    step_times: StepTimes | None = field(default=None, metadata=SPAN_ONLY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The text of a generation and its evaluator inputs; each part is opt-in."""

    input_messages: str | None = on_wire(a.GEN_AI_INPUT_MESSAGES, Form.MESSAGES)
    """JSON, as `gen_ai.input.messages`: a list of `{"role": …, "parts": [{"type": …}]}`."""
    output_messages: str | None = on_wire(a.GEN_AI_OUTPUT_MESSAGES, Form.MESSAGES)
    """JSON, as `gen_ai.output.messages`."""
    output_token_ids: str | None = on_wire(a.DRAFTGATE_OUTPUT_TOKEN_IDS, Form.STRING)
    """Ids of all output tokens, apart by commas; dropped if redaction changes any of the texts."""
    tool_definitions: str | None = on_wire(a.GEN_AI_TOOL_DEFINITIONS, Form.MESSAGES)
    """JSON, as `gen_ai.tool.definitions`: a list of `{"type": "function", "name": …}`."""
    tool_choice: str | None = on_wire(a.DRAFTGATE_REQUEST_TOOL_CHOICE, Form.STRING)
    """`auto`, `required`, `none`, or JSON that names a tool, as in the chat-completions API."""
    context: tuple[str, ...] | None = on_wire(a.DRAFTGATE_CONTEXT, Form.PASSAGES)
    """Retrieved passages."""
    reference: str | None = on_wire(a.DRAFTGATE_REFERENCE, Form.STRING)
    """The expected answer: plain text, or a JSON object with a `kind`."""
    output_schema: str | None = on_wire(a.DRAFTGATE_OUTPUT_SCHEMA, Form.STRING)
    """JSON Schema that the answer must satisfy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One request, answered by one arm."""

    trace_id: str
    span_id: str
    start_unix_ns: int
    end_unix_ns: int
    operation: str = on_wire(a.GEN_AI_OPERATION_NAME, Form.STRING, few_values=True, default="chat")
    provider: str | None = on_wire(a.GEN_AI_PROVIDER_NAME, Form.STRING, few_values=True)
    request_model: str | None = on_wire(a.GEN_AI_REQUEST_MODEL, Form.STRING, few_values=True)
    response_model: str | None = on_wire(a.GEN_AI_RESPONSE_MODEL, Form.STRING, few_values=True)
    streamed: bool | None = on_wire(a.GEN_AI_REQUEST_STREAM, Form.BOOLEAN)
    """Whether streaming was requested."""
    max_tokens: int | None = on_wire(a.GEN_AI_REQUEST_MAX_TOKENS, Form.INTEGER)
    temperature: float | None = on_wire(a.GEN_AI_REQUEST_TEMPERATURE, Form.NUMBER)
    top_p: float | None = on_wire(a.GEN_AI_REQUEST_TOP_P, Form.NUMBER)
    top_k: int | None = on_wire(a.GEN_AI_REQUEST_TOP_K, Form.INTEGER)
    seed: int | None = on_wire(a.GEN_AI_REQUEST_SEED, Form.INTEGER)
    sampler: str | None = on_wire(a.DRAFTGATE_SAMPLER, Form.STRING, few_values=True)
    """Steps of the sampler in the engine's order, such as `temperature=0.7 top_p=0.9`."""
    seeded_draws: str | None = on_wire(a.DRAFTGATE_SEEDED_DRAWS, Form.STRING, few_values=True)
    """What turns the seed into the tokens: the dtype of the logits, and the number of draft tokens
    of every step, such as `float32 k=4`; absent if steps differ in it."""
    stop_sequences: tuple[str, ...] | None = on_wire(a.GEN_AI_REQUEST_STOP_SEQUENCES, Form.STRINGS)
    response_id: str | None = on_wire(a.GEN_AI_RESPONSE_ID, Form.STRING)
    finish_reasons: tuple[str, ...] | None = on_wire(
        a.GEN_AI_RESPONSE_FINISH_REASONS, Form.STRINGS, few_values=True
    )
    error_type: str | None = on_wire(a.ERROR_TYPE, Form.STRING, few_values=True)
    """Set if and only if the request failed."""
    input_tokens: int | None = on_wire(
        a.GEN_AI_USAGE_INPUT_TOKENS, Form.INTEGER, not_negative=NotNegative.TOKENS
    )
    output_tokens: int | None = on_wire(
        a.GEN_AI_USAGE_OUTPUT_TOKENS, Form.INTEGER, not_negative=NotNegative.TOKENS
    )
    """All generated tokens, including reasoning tokens."""
    reasoning_tokens: int | None = on_wire(
        a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS, Form.INTEGER, not_negative=NotNegative.TOKENS
    )
    cached_input_tokens: int | None = on_wire(
        a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, Form.INTEGER, not_negative=NotNegative.TOKENS
    )
    ttft_s: float | None = on_wire(
        a.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK, Form.NUMBER, not_negative=NotNegative.TIME
    )
    """Time to first token, of the reasoning or the answer, measured by the client."""
    ttfo_s: float | None = on_wire(
        a.DRAFTGATE_RESPONSE_TIME_TO_FIRST_OUTPUT_TOKEN,
        Form.NUMBER,
        not_negative=NotNegative.TIME,
    )
    """Time to first token of the answer's text or tool calls, measured by the client."""
    server_ttft_s: float | None = on_wire(
        a.GEN_AI_SERVER_TIME_TO_FIRST_TOKEN,
        Form.NUMBER,
        not_negative=NotNegative.TIME,
        of_engine=True,
    )
    """Time to first token, reported by the engine."""
    tpot_s: float | None = on_wire(
        a.GEN_AI_SERVER_TIME_PER_OUTPUT_TOKEN, Form.NUMBER, not_negative=NotNegative.TIME
    )
    """(end − first token) / (output tokens − 1)."""
    queue_s: float | None = on_wire(
        a.GEN_AI_LATENCY_TIME_IN_QUEUE, Form.NUMBER, not_negative=NotNegative.TIME, of_engine=True
    )
    prefill_s: float | None = on_wire(
        a.GEN_AI_LATENCY_TIME_IN_MODEL_PREFILL,
        Form.NUMBER,
        not_negative=NotNegative.TIME,
        of_engine=True,
    )
    """From scheduling to the first token, reported by the engine."""
    decode_s: float | None = on_wire(
        a.GEN_AI_LATENCY_TIME_IN_MODEL_DECODE,
        Form.NUMBER,
        not_negative=NotNegative.TIME,
        of_engine=True,
    )
    """From the first token to the last, reported by the engine."""
    stream_chunks: int | None = on_wire(
        a.DRAFTGATE_STREAM_CHUNKS, Form.INTEGER, not_negative=NotNegative.TOKENS
    )
    stream_max_gap_s: float | None = on_wire(
        a.DRAFTGATE_STREAM_MAX_GAP, Form.NUMBER, not_negative=NotNegative.TIME
    )
    stream_p99_gap_s: float | None = on_wire(
        a.DRAFTGATE_STREAM_P99_GAP, Form.NUMBER, not_negative=NotNegative.TIME
    )
    rollout: str | None = on_wire(a.DRAFTGATE_ROLLOUT, Form.NAME, few_values=True)
    arm: Arm | None = on_wire(a.DRAFTGATE_ARM, Form.ARM, few_values=True)
    cohort: str | None = on_wire(a.DRAFTGATE_COHORT, Form.NAME, few_values=True)
    prompt_id: str | None = on_wire(a.DRAFTGATE_PROMPT_ID, Form.NAME)
    repeat: int | None = on_wire(a.DRAFTGATE_REPEAT, Form.INTEGER)
    route: str | None = on_wire(a.DRAFTGATE_ROUTE, Form.STRING, few_values=True)
    launch: str | None = on_wire(a.DRAFTGATE_LAUNCH, Form.NAME, few_values=True)
    """Identifies one start of the server; changes with every restart."""
    look: int | None = on_wire(a.DRAFTGATE_LOOK, Form.INTEGER)
    """The declared look that is the first to judge this pair, from 1."""
    looks: str | None = on_wire(a.DRAFTGATE_LOOKS, Form.STRING, few_values=True)
    """How many pairs of the cohort each declared look judges: `40 80 120`."""
    conversation_id: str | None = on_wire(a.GEN_AI_CONVERSATION_ID, Form.NAME)
    """The session of which this request is a turn."""
    turn: int | None = on_wire(a.DRAFTGATE_TURN, Form.INTEGER)
    """Its place in the session, from 1."""
    own_history: bool | None = on_wire(a.DRAFTGATE_OWN_HISTORY, Form.BOOLEAN)
    """Whether the session's earlier answers are the arm's own, so that the arms' prompts differ."""
    sentinel: str | None = on_wire(a.DRAFTGATE_SENTINEL, Form.NAME)
    """The sentinel that this request asks once more; it has no prompt id and belongs to no pair."""
    sentinel_after: str | None = on_wire(a.DRAFTGATE_SENTINEL_AFTER, Form.NAME)
    """The prompt of the same prefix that the arm was asked directly before."""
    sentinel_answer: str | None = on_wire(a.DRAFTGATE_SENTINEL_ANSWER, Form.STRING)
    """Digest of the answer's reasoning, text, tool calls and finish reason; absent if it failed."""
    dims: Mapping[str, str] = field(default_factory=dict)
    retries: int | None = on_wire(
        a.DRAFTGATE_RETRIES, Form.INTEGER, not_negative=NotNegative.TOKENS
    )
    fallback: bool | None = on_wire(a.DRAFTGATE_FALLBACK, Form.BOOLEAN)
    mirrored: bool | None = on_wire(a.DRAFTGATE_MIRRORED, Form.BOOLEAN)
    concurrency: int | None = on_wire(a.DRAFTGATE_CONCURRENCY, Form.INTEGER)
    """Requests in flight at the start, with this one: its arm's in a replay, or the router's."""
    client_lag_s: float | None = on_wire(
        a.DRAFTGATE_CLIENT_LAG, Form.NUMBER, not_negative=NotNegative.TIME
    )
    """The load generator's delay: in sending the request, whose start is then its scheduled time,
    or in reading several chunks at once, which then have the same time."""
    speculation: Speculation | None = None
    device: DeviceUse | None = field(default=None, metadata=SPAN_ONLY)
    content: Content | None = None
    service_name: str | None = on_wire(
        a.SERVICE_NAME, Form.STRING, few_values=True, of_resource=True
    )
    service_version: str | None = on_wire(
        a.SERVICE_VERSION, Form.STRING, few_values=True, of_resource=True
    )
    fingerprint: str | None = on_wire(
        a.DRAFTGATE_FINGERPRINT, Form.STRING, few_values=True, of_resource=True
    )
    """Hash of target, draft, tokenizer, engine version and flags."""
    workload: str | None = on_wire(
        a.DRAFTGATE_WORKLOAD, Form.STRING, few_values=True, of_resource=True
    )
    """Planned pairs per cohort of the whole run, as JSON: `{"chat": 400}`."""
    change: str | None = on_wire(a.DRAFTGATE_CHANGE, Form.STRING, few_values=True, of_resource=True)
    """The rollout's change: one of `Change`."""
    price: str | None = on_wire(a.DRAFTGATE_PRICE, Form.STRING, few_values=True, of_resource=True)
    """Price of the route that answered: the JSON of a `RoutePrice`."""
    engine_version: str | None = on_wire(
        a.DRAFTGATE_ENGINE_VERSION, Form.STRING, few_values=True, of_resource=True
    )
    quality: tuple[str, ...] = ()
    """Flags for errors in the span, set by the collector; never on the wire."""

    @property
    def e2e_s(self) -> float:
        """End-to-end duration."""
        return (self.end_unix_ns - self.start_unix_ns) / 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelAsk:
    """One request of a sentinel to one arm: a prompt that a run asks again and again."""

    sentinel: str
    arm: Arm
    number: int | None
    """Tells it apart from the sentinel's other requests to the arm; both arms' have the same."""
    start_unix_ns: int
    trace_id: str
    launch: str | None = None
    after: str | None = None
    """The prompt of the same prefix that the arm was asked directly before."""
    answer: str | None = None
    """Digest of the answer; None if the request failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredSpan:
    """A part of an answer that was judged separately, given by its position, without text."""

    start: int
    """Characters (code points) before it in the answer's text, or in the arguments of a tool call
    that breaks."""
    end: int
    support: float | None = None
    """In [0, 1]: how well it is supported, or correct; `None` if it was marked without a number."""

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end < 2**31:
            raise ValueError(f"a span runs from a start to an end, got {self.start} to {self.end}")
        if self.support is not None and not 0.0 <= self.support <= 1.0:
            raise ValueError(f"a span's support lies in [0, 1], got {self.support!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One evaluator's judgement of one generation.

    Either `value` is in [0, 1], or it is `None` and `unscored_reason` is set: an answer that could
    not be judged never gets a number.
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
    """Duration of the judgement."""
    cost_usd: float | None = None
    """Cost of the judgement, if known."""
    spans: tuple[ScoredSpan, ...] | None = None
    """Parts of the answer that were judged separately."""
    key_id: str | None = None
    """Id of the API key that posted it, set by the collector; None if no key was needed."""

    def __post_init__(self) -> None:
        if (self.value is None) == (self.unscored_reason is None):
            raise ValueError("a score has either a value or the reason why there is none")
        if self.value is not None and not 0.0 <= self.value <= 1.0:
            raise ValueError(f"a score's value lies in [0, 1], got {self.value!r}")


class ResponseScore(NamedTuple):
    """A score of a generation named by its response id; its span is not known."""

    response_id: str
    score: Score
    """Its trace and span ids are empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """One source's report of a user's reaction to one generation."""

    trace_id: str
    span_id: str
    kind: FeedbackKind
    source: str
    """Where it was given, such as the application's name; one feedback per source and kind."""
    time_unix_ns: int
    comment: str | None = None
    """Text, stored and returned under the same rules as content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchChange:
    """A new setting of a rollout's switch."""

    state: Switch
    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError("a switch is set for a reason; say which")


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchState:
    """One event of a rollout's switch; the newest is its state."""

    id: int
    """Increases with every event of any rollout."""
    rollout: str
    state: Switch
    reason: str
    who: str
    """Name of the API key that set it; `local` if no key was needed."""
    time_unix_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RampChange:
    """A new share of traffic for a rollout's candidate."""

    percent: float
    reason: str
    continues: int = 0
    """Id of the previous step; 0 for the first."""
    verdict: str | None = None
    """Id of the passing verdict that allows a larger share; the first step needs none."""

    def __post_init__(self) -> None:
        if not 0 <= self.percent <= 100:
            raise ValueError(f"percent: wanted 0 to 100, got {self.percent:g}")
        if not self.reason.strip():
            raise ValueError("a step is taken for a reason; say which")


@dataclass(frozen=True, slots=True, kw_only=True)
class RampStep:
    """One step of a rollout's ramp; the newest is its state."""

    id: int
    """Increases with every step of any rollout."""
    rollout: str
    percent: float
    reason: str
    verdict: str | None
    who: str
    """Name of the API key that took it; `local` if no key was needed."""
    time_unix_ns: int
    arrived_up_to: int = 0
    """Id of the newest generation when the step was taken; later pairs have higher ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSample:
    """One value of an engine's gauge or counter at one time."""

    time_unix_ns: int
    service_name: str | None
    instance: str | None
    """The process of the service: `service.instance.id`, else `host.name`."""
    metric: str
    kind: SampleKind
    value: float
    unit: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Labels, such as the model's name."""


class PairKey(NamedTuple):
    """The key shared by the two generations of a pair, within a rollout."""

    prompt_id: str
    repeat: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The two generations of one prompt and repeat; a side that has not arrived is `None`."""

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
    """The requested metric, else the metric with the pair's largest loss."""
    baseline: float
    candidate: float
    change: float
    """Candidate − baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpaired:
    """Generations of one sender that do not pair, for one reason."""

    reason: UnpairedReason
    rollout: str | None
    arm: Arm | None
    service_name: str | None
    provider: str | None
    dialect: str
    unreadable: tuple[str, ...]
    """Pairing attributes that were sent with an unreadable value."""
    generations: int
    last_start_unix_ns: int
    trace_id: str
    """Trace id of the generation that arrived last."""
    span_id: str

    @property
    def why(self) -> str:
        """The reason in words, with the unreadable attributes."""
        said = self.reason.value.replace("_", " ")
        bad = ", ".join(self.unreadable)
        return f"{said}; cannot be read: {bad}" if bad else said


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutOverview:
    """An overview of one rollout."""

    rollout: str
    first_start_unix_ns: int
    last_end_unix_ns: int
    baseline_generations: int
    candidate_generations: int
    pairs: int
    """Prompts and repeats for which both arms have a generation, successful or not."""
    cohorts: tuple[str, ...]
    quality_flagged: int
    """Generations whose span violated the contract."""
    spec_draft_tokens: int | None = None
    """Sum over generations with usable counts; None if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary:
    """One metric over many generations, in seconds or tokens.

    The percentiles are from a sketch, at most 1 % from the exact lower sample quantile; the gate's
    percentiles are exact.
    """

    metric: str
    """ttft_s, tpot_s, e2e_s, server_ttft_s, queue_s or output_tokens."""
    n: int
    sum: float
    mean: float
    stdev: float | None
    """Sample standard deviation, with n − 1; None if n is 1."""
    min: float
    max: float
    p50: float | None
    p95: float | None
    p99: float | None
    """None if n is below `P99_FROM`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSummary:
    """Counts and sums of one arm in one cohort; the reader computes ratios from them."""

    rollout: str
    arm: Arm
    cohort: str | None
    generations: int
    errors: int
    quality_flagged: int
    """Generations whose span violated the contract."""
    fallbacks: int
    """Generations reported as answered by another route."""
    retries: int
    """Sum over all generations that report it."""
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
    """Only metrics with a measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBucket:
    """One arm in one cohort, in one minute, hour or day (UTC)."""

    start_unix_s: int
    length_s: int
    summary: ArmSummary

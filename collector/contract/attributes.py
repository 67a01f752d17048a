"""Attribute names of the wire contract: the single source of truth for every string on the wire.

`GEN_AI_*` follow the OpenTelemetry GenAI conventions as of schema 1.41.0, the last core release
that had them. They are written out because the Python package marks its constants as deprecated.
`SPEC_DECODE_*` is Draftgate's own namespace: no OpenTelemetry convention for speculative decoding
exists.
"""

from typing import Final

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.41.0"

# Operation, provider, models
GEN_AI_OPERATION_NAME: Final = "gen_ai.operation.name"
GEN_AI_PROVIDER_NAME: Final = "gen_ai.provider.name"
GEN_AI_REQUEST_MODEL: Final = "gen_ai.request.model"
GEN_AI_RESPONSE_MODEL: Final = "gen_ai.response.model"

# Request parameters
GEN_AI_REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
GEN_AI_REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
GEN_AI_REQUEST_TOP_P: Final = "gen_ai.request.top_p"
GEN_AI_REQUEST_TOP_K: Final = "gen_ai.request.top_k"
GEN_AI_REQUEST_SEED: Final = "gen_ai.request.seed"
GEN_AI_REQUEST_STOP_SEQUENCES: Final = "gen_ai.request.stop_sequences"
DRAFTGATE_SAMPLER: Final = "draftgate.sampler"
DRAFTGATE_SEEDED_DRAWS: Final = "draftgate.seeded_draws"

GEN_AI_REQUEST_STREAM: Final = "gen_ai.request.stream"

# Response
GEN_AI_RESPONSE_ID: Final = "gen_ai.response.id"
GEN_AI_RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
ERROR_TYPE: Final = "error.type"

# Tokens
GEN_AI_USAGE_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
GEN_AI_USAGE_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS_FLAT: Final = "gen_ai.usage.cache_read_input_tokens"
GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"

# Latency, seconds
GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
DRAFTGATE_RESPONSE_TIME_TO_FIRST_OUTPUT_TOKEN: Final = (
    "draftgate.response.time_to_first_output_token"
)
GEN_AI_SERVER_TIME_TO_FIRST_TOKEN: Final = "gen_ai.server.time_to_first_token"
GEN_AI_SERVER_TIME_PER_OUTPUT_TOKEN: Final = "gen_ai.server.time_per_output_token"
GEN_AI_LATENCY_TIME_IN_QUEUE: Final = "gen_ai.latency.time_in_queue"
GEN_AI_LATENCY_TIME_IN_MODEL_PREFILL: Final = "gen_ai.latency.time_in_model_prefill"
GEN_AI_LATENCY_TIME_IN_MODEL_DECODE: Final = "gen_ai.latency.time_in_model_decode"
DRAFTGATE_STREAM_CHUNKS: Final = "draftgate.stream.chunks"
DRAFTGATE_STREAM_MAX_GAP: Final = "draftgate.stream.max_gap"
DRAFTGATE_STREAM_P99_GAP: Final = "draftgate.stream.p99_gap"

# Rollout
DRAFTGATE_ROLLOUT: Final = "draftgate.rollout"
DRAFTGATE_ARM: Final = "draftgate.arm"
DRAFTGATE_COHORT: Final = "draftgate.cohort"
DRAFTGATE_PROMPT_ID: Final = "draftgate.prompt.id"
DRAFTGATE_REPEAT: Final = "draftgate.repeat"
DRAFTGATE_ROUTE: Final = "draftgate.route"
DRAFTGATE_LAUNCH: Final = "draftgate.launch"
DRAFTGATE_LOOK: Final = "draftgate.look"
DRAFTGATE_LOOKS: Final = "draftgate.looks"
GEN_AI_CONVERSATION_ID: Final = "gen_ai.conversation.id"
DRAFTGATE_TURN: Final = "draftgate.turn"
DRAFTGATE_OWN_HISTORY: Final = "draftgate.own_history"
DRAFTGATE_SENTINEL: Final = "draftgate.sentinel"
DRAFTGATE_SENTINEL_AFTER: Final = "draftgate.sentinel.after"
DRAFTGATE_SENTINEL_ANSWER: Final = "draftgate.sentinel.answer"
DRAFTGATE_DIM_PREFIX: Final = "draftgate.dim."

# Serving outcome
DRAFTGATE_RETRIES: Final = "draftgate.retries"
DRAFTGATE_FALLBACK: Final = "draftgate.fallback"
DRAFTGATE_MIRRORED: Final = "draftgate.mirrored"
DRAFTGATE_CONCURRENCY: Final = "draftgate.concurrency"
DRAFTGATE_CLIENT_LAG: Final = "draftgate.client.lag"

# The device of an engine in this process
DRAFTGATE_MEMORY_WEIGHTS: Final = "draftgate.memory.weights"
DRAFTGATE_MEMORY_DRAFT_WEIGHTS: Final = "draftgate.memory.draft_weights"
DRAFTGATE_MEMORY_CACHE: Final = "draftgate.memory.cache"
DRAFTGATE_MEMORY_DRAFT_CACHE: Final = "draftgate.memory.draft_cache"
DRAFTGATE_GPU_UTILIZATION: Final = "draftgate.gpu.utilization"
DRAFTGATE_GPU_POWER: Final = "draftgate.gpu.power"
DRAFTGATE_GPU_CLOCK: Final = "draftgate.gpu.clock"

# Speculation
SPEC_DECODE_METHOD: Final = "spec_decode.method"
SPEC_DECODE_DRAFT_MODEL: Final = "spec_decode.draft_model"
SPEC_DECODE_NUM_SPECULATIVE_TOKENS: Final = "spec_decode.num_speculative_tokens"
SPEC_DECODE_NUM_STEPS: Final = "spec_decode.num_steps"
SPEC_DECODE_NUM_DRAFT_TOKENS: Final = "spec_decode.num_draft_tokens"
SPEC_DECODE_NUM_ACCEPTED_TOKENS: Final = "spec_decode.num_accepted_tokens"
SPEC_DECODE_NUM_DRAFT_TOKENS_PER_POS: Final = "spec_decode.num_draft_tokens_per_pos"
SPEC_DECODE_NUM_ACCEPTED_TOKENS_PER_POS: Final = "spec_decode.num_accepted_tokens_per_pos"
SPEC_DECODE_ACCEPTANCE_HISTOGRAM: Final = "spec_decode.acceptance_histogram"
SPEC_DECODE_TIME_IN_DRAFT: Final = "spec_decode.time_in_draft"
SPEC_DECODE_TIME_IN_VERIFY: Final = "spec_decode.time_in_verify"
SPEC_DECODE_TIME_IN_OVERHEAD: Final = "spec_decode.time_in_overhead"
SPEC_DECODE_SOURCE: Final = "spec_decode.source"
SPEC_DECODE_LOSSLESS: Final = "spec_decode.lossless"

GEN_AI_SPECULATIVE_DECODING_STEP_COUNT: Final = "gen_ai.speculative_decoding.step.count"
GEN_AI_SPECULATIVE_DECODING_DRAFTED_TOKENS: Final = "gen_ai.speculative_decoding.drafted_tokens"
GEN_AI_SPECULATIVE_DECODING_ACCEPTED_TOKENS: Final = "gen_ai.speculative_decoding.accepted_tokens"
GEN_AI_SPECULATIVE_DECODING_MAX_DRAFT_TOKENS: Final = "gen_ai.speculative_decoding.max_draft_tokens"

# Content, opt-in
GEN_AI_INPUT_MESSAGES: Final = "gen_ai.input.messages"
GEN_AI_OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
GEN_AI_TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"
DRAFTGATE_REQUEST_TOOL_CHOICE: Final = "draftgate.request.tool_choice"
DRAFTGATE_OUTPUT_TOKEN_IDS: Final = "draftgate.output.token_ids"
DRAFTGATE_CONTEXT: Final = "draftgate.context"
DRAFTGATE_REFERENCE: Final = "draftgate.reference"
DRAFTGATE_OUTPUT_SCHEMA: Final = "draftgate.output_schema"

# Evaluation results (log events)
EVENT_NAME: Final = "event.name"
GEN_AI_EVALUATION_NAME: Final = "gen_ai.evaluation.name"
GEN_AI_EVALUATION_SCORE_VALUE: Final = "gen_ai.evaluation.score.value"
GEN_AI_EVALUATION_SCORE_LABEL: Final = "gen_ai.evaluation.score.label"
GEN_AI_EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"
DRAFTGATE_EVALUATOR_NAME: Final = "draftgate.evaluator.name"
DRAFTGATE_EVALUATOR_VERSION: Final = "draftgate.evaluator.version"

# Environment (resource attributes)
SERVICE_NAME: Final = "service.name"
SERVICE_VERSION: Final = "service.version"
SERVICE_INSTANCE_ID: Final = "service.instance.id"
HOST_NAME: Final = "host.name"
DRAFTGATE_FINGERPRINT: Final = "draftgate.fingerprint"
DRAFTGATE_WORKLOAD: Final = "draftgate.workload"
DRAFTGATE_CHANGE: Final = "draftgate.change"
DRAFTGATE_PRICE: Final = "draftgate.price"
DRAFTGATE_ENGINE_VERSION: Final = "draftgate.engine.version"

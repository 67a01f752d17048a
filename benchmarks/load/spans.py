"""Export requests like those of a rollout's replay: 25 attributes, about 3.4 kB per span.

Text is drawn by Zipf's law from a seeded vocabulary, so that it compresses like prose; ids are
random, like an SDK's. Generations are in 40 groups (rollout, arm, cohort).
"""

import json
import random
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1 import trace_pb2

from collector.contract import Arm, Content, Generation, Speculation, encode
from collector.protobuf.values import write_attribute

COHORTS = ("chat", "code", "rag", "tool_call")
ROLLOUTS = 5
GROUPS = ROLLOUTS * 2 * len(COHORTS)
NS_BETWEEN_STARTS = 8_640_000
"""10 million generations per day."""

_POOL_CHARACTERS = 8_000_000
_WORDS = 20_000
_QUESTION, _ANSWER = 1_250, 950
_SYLLABLES = ["".join(letters) for letters in product("bdfgklmnprstvw", "aeiou", ("", *"lnrs"))]
_PROMPT_ID = 12
"""The index of `draftgate.prompt.id` among a span's attributes."""


class Identity(NamedTuple):
    """One span's ids."""

    trace_id: str
    span_id: str


class Body(NamedTuple):
    """One export request, with the ids of its spans."""

    content: bytes
    spans: tuple[Identity, ...]


class Spans:
    """Creates export requests, equal ones for equal seeds."""

    def __init__(self, seed: int, *, first_start_unix_ns: int, spans_a_trace: int = 1) -> None:
        self._random = random.Random(seed)  # noqa: S311  # not a secret
        self._spans_a_trace = spans_a_trace
        self._first_start_unix_ns = first_start_unix_ns
        self._text = _prose(seed)
        self._at = 0
        self._made = 0
        self._trace_id = self._root = b""

    def bodies(self, batch: int, batches: int) -> Iterator[Body]:
        """Yield requests of `batch` spans each."""
        for _ in range(batches):
            request = self._request(batch)
            yield Body(request.SerializeToString(), _identities(request))

    def many(self, batch: int, batches: int, *, distinct: int = 64) -> Iterator[Body]:
        """Yield requests as `bodies` does, but faster: text repeats after `distinct` requests.

        Ids, times and prompts never repeat.
        """
        made: list[ExportTraceServiceRequest] = []
        for number in range(batches):
            if number < distinct:
                made.append(self._request(batch))
            else:
                self._renew(made[number % distinct])
            request = made[number % distinct]
            yield Body(request.SerializeToString(), _identities(request))

    def _request(self, batch: int) -> ExportTraceServiceRequest:
        request = ExportTraceServiceRequest()
        resource_spans = request.resource_spans.add()
        resource_spans.resource.attributes.append(write_attribute("service.name", "bench"))
        scope_spans = resource_spans.scope_spans.add()
        scope_spans.scope.name = "draftgate.bench"
        # Spans of one request share no text, so that compression cannot exploit repetition.
        self._at = self._random.randrange(len(self._text))
        for _ in range(batch):
            span = scope_spans.spans.add()
            self._identify(span)
            _write(span, self._generation(span.trace_id.hex(), span.span_id.hex()))
            self._made += 1
        return request

    def _renew(self, request: ExportTraceServiceRequest) -> None:
        for span in request.resource_spans[0].scope_spans[0].spans:
            self._identify(span)
            duration = span.end_time_unix_nano - span.start_time_unix_nano
            span.start_time_unix_nano = self._start_unix_ns()
            span.end_time_unix_nano = span.start_time_unix_nano + duration
            span.attributes[_PROMPT_ID].value.string_value = self._prompt_id()
            self._made += 1

    def _identify(self, span: trace_pb2.Span) -> None:
        span.span_id = self._random.randbytes(8)
        first = self._made % self._spans_a_trace == 0
        if first:
            self._trace_id, self._root = self._random.randbytes(16), span.span_id
        span.trace_id = self._trace_id
        span.parent_span_id = b"" if first else self._root

    def _start_unix_ns(self) -> int:
        return self._first_start_unix_ns + self._made * NS_BETWEEN_STARTS

    def _prompt_id(self) -> str:
        return f"prompt-{self._first_start_unix_ns}-{self._made // GROUPS}"

    def _generation(self, trace_id: str, span_id: str) -> Generation:
        draw = self._random
        start = self._start_unix_ns()
        steps, output_tokens = draw.randint(20, 60), draw.randint(80, 240)
        ttft_s, e2e_s = 0.05 + draw.gammavariate(2, 0.05), 0.5 + draw.gammavariate(2, 0.8)
        pair, arm = divmod(self._made, 2)
        rollout, cohort = divmod(pair % (GROUPS // 2), len(COHORTS))
        return Generation(
            trace_id=trace_id,
            span_id=span_id,
            start_unix_ns=start,
            end_unix_ns=start + int(e2e_s * 1e9),
            provider="vllm",
            request_model="meta-llama/Llama-3.3-70B-Instruct",
            max_tokens=256,
            finish_reasons=("stop",),
            input_tokens=draw.randint(200, 900),
            output_tokens=output_tokens,
            ttft_s=ttft_s,
            tpot_s=(e2e_s - ttft_s) / output_tokens,
            rollout=f"rollout-{rollout}",
            arm=(Arm.BASELINE, Arm.CANDIDATE)[arm],
            cohort=COHORTS[cohort],
            prompt_id=self._prompt_id(),
            repeat=0,
            fallback=False,
            speculation=_speculation(draw, steps),
            content=Content(
                input_messages=_messages("user", self._slice(_QUESTION)),
                output_messages=_messages("assistant", self._slice(_ANSWER)),
            ),
        )

    def _slice(self, characters: int) -> str:
        wanted = int(characters * self._random.uniform(0.7, 1.3))
        if self._at + wanted > len(self._text):
            self._at = 0
        self._at += wanted
        return self._text[self._at - wanted : self._at]


def _speculation(draw: random.Random, steps: int) -> Speculation:
    accepted = [steps]
    for _ in range(4):
        accepted.append(draw.randint(accepted[-1] // 2, accepted[-1]))
    exactly = [more - less for more, less in zip(accepted, [*accepted[1:], 0], strict=True)]
    return Speculation(
        method="eagle3",
        num_speculative_tokens=4,
        source="request",
        steps=steps,
        draft_tokens=4 * steps,
        accepted_tokens=sum(accepted[1:]),
        accepted_tokens_per_pos=tuple(accepted[1:]),
        acceptance_histogram=tuple(exactly),
    )


def _messages(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def _prose(seed: int) -> str:
    """Return sentences whose word frequencies are like a natural language's."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 4, _WORDS)
    words = np.array(["".join(rng.choice(_SYLLABLES, n)) for n in lengths], dtype=object)
    weights = 1 / np.arange(1, _WORDS + 1) ** 0.9
    drawn = rng.choice(words, _POOL_CHARACTERS // 6, p=weights / weights.sum())
    ends = rng.random(len(drawn)) < 0.08
    return " ".join(f"{word}." if end else word for word, end in zip(drawn, ends, strict=True))


def _identities(request: ExportTraceServiceRequest) -> tuple[Identity, ...]:
    spans = request.resource_spans[0].scope_spans[0].spans
    return tuple(Identity(span.trace_id.hex(), span.span_id.hex()) for span in spans)


def _write(out: trace_pb2.Span, generation: Generation) -> None:
    span = encode(generation)
    out.name, out.kind = span.name, trace_pb2.Span.SPAN_KIND_CLIENT
    out.start_time_unix_nano, out.end_time_unix_nano = span.start_unix_ns, span.end_unix_ns
    out.attributes.extend(write_attribute(key, value) for key, value in span.attributes.items())

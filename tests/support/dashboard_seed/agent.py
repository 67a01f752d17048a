"""A whole agent's trace: a plan, a retrieval, two generations on either arm, a failed tool."""

import json
import time

from collector.contract import Arm, Generation, Span, SpanStatus, Speculation, encode

TRACE = "a9e27" + "0" * 27
ROLLOUT = "support-k8-relaxed"
HOSTILE_TOOL = "tool <img src=http://127.0.0.1:9/tool.png> [link](http://127.0.0.1:9/tool)"
_MS = 1_000_000


def spans() -> list[Span]:
    """Return the trace's spans, the generations as their sender would encode them."""
    start = time.time_ns() - 90 * 1_000_000_000
    root = _step("a000000000000001", None, "agent: refund request", start, 0, 2_400)
    return [
        root,
        _step("a000000000000002", root.span_id, "plan", start, 10, 900),
        _generation(
            "a000000000000003", "a000000000000002", Arm.CANDIDATE, "chat", start + 20 * _MS
        ),
        _step("a000000000000004", root.span_id, "retrieve passages", start, 910, 240),
        _step("a000000000000005", root.span_id, HOSTILE_TOOL, start, 1_160, 130, failed=True),
        _generation("a000000000000006", root.span_id, Arm.BASELINE, "rag", start + 1_300 * _MS),
    ]


def _step(
    span_id: str,
    parent: str | None,
    name: str,
    start_unix_ns: int,
    after_ms: int,
    length_ms: int,
    *,
    failed: bool = False,
) -> Span:
    begun = start_unix_ns + after_ms * _MS
    return Span(
        trace_id=TRACE,
        span_id=span_id,
        parent_span_id=parent,
        name=name,
        start_unix_ns=begun,
        end_unix_ns=begun + length_ms * _MS,
        status=SpanStatus.ERROR if failed else SpanStatus.OK,
        scope_name="desk-agent",
        attributes={"agent.step": name},
    )


def _generation(span_id: str, parent: str, arm: Arm, cohort: str, start_unix_ns: int) -> Span:
    speculated = Speculation(
        method="draft_model", steps=20, draft_tokens=80, accepted_tokens=44, source="request"
    )
    sent = encode(
        Generation(
            trace_id=TRACE,
            span_id=span_id,
            start_unix_ns=start_unix_ns,
            end_unix_ns=start_unix_ns + 850 * _MS,
            request_model="desk-1b",
            input_tokens=320,
            output_tokens=64,
            ttft_s=0.061,
            tpot_s=0.0125,
            rollout=ROLLOUT,
            arm=arm,
            cohort=cohort,
            dims={"step": "plan" if cohort == "chat" else "answer"},
            speculation=speculated if arm is Arm.CANDIDATE else None,
        )
    )
    attributes = dict(sent.attributes) | {"agent.note": json.dumps({"step": span_id[-1]})}
    fields = {name: getattr(sent, name) for name in sent.__dataclass_fields__}
    return Span(**(fields | {"parent_span_id": parent, "attributes": attributes}))

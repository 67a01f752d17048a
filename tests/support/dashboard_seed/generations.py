"""Generations of three rollouts: one that passes, one that fails, one that is undecided.

The numbers are made up; they are shaped like a real rollout's so that pages look as they will.
"""

import json
import time
from collections.abc import Iterator
from typing import NamedTuple

from collector.contract import (
    Arm,
    Content,
    Feedback,
    FeedbackKind,
    Generation,
    Outcome,
    Score,
    ScoredSpan,
    Speculation,
)

COHORTS = ("rag", "tool_call", "code", "chat", "json", "summary")
REPEATS = 2
PROMPTS = 20
CELL = PROMPTS * REPEATS
"""Pairs a cohort."""
PAIRS = CELL * len(COHORTS)
METRICS = ("groundedness", "task_completion")
HOSTILE = (
    "Refunds take 5 days. <script>alert(1)</script> ![x](http://127.0.0.1:9/pixel.png) "
    "[link](http://127.0.0.1:9) **bold** <b>b</b> $x^2$ :material/delete: </style></pre>"
)


class Fate(NamedTuple):
    """How a seeded rollout came out."""

    rollout: str
    outcome: Outcome
    speed: float
    """Candidate/baseline time."""
    lower_scores: int
    """Every so many pairs the candidate scores lower; 0 is never."""


FATES = (
    Fate("support-k4", Outcome.PASS, 0.62, 0),
    Fate("support-k8-relaxed", Outcome.FAIL, 0.55, 7),
    Fate("support-eagle-k6", Outcome.INCONCLUSIVE, 0.71, 40),
)


def output(text: str) -> str:
    """Return an assistant's answer as output messages."""
    part = {"type": "text", "content": text}
    return json.dumps([{"role": "assistant", "parts": [part], "finish_reason": "stop"}])


def answer(fate: Fate, arm: Arm, cohort: str, number: int, *, lower: bool) -> str:
    """Return what an arm answered."""
    texts = {
        "rag": "Refunds take 5 working days after the return is booked in. Shipping is not paid.",
        "tool_call": json.dumps(
            {"name": "lookup_order", "arguments": {"order": f"A-{number:04d}"}}
        ),
        "code": "def total(prices):\n    return sum(price for price in prices if price > 0)\n",
        "chat": "Hello! Your parcel left our depot this morning and should arrive tomorrow.",
        "json": json.dumps({"order": f"A-{number:04d}", "paid": True, "items": number}),
        "summary": "The customer wants a refund for a late parcel; the parcel has since arrived.",
    }
    if arm is Arm.CANDIDATE and lower:
        return HOSTILE if cohort == "rag" else texts[cohort][: len(texts[cohort]) // 2] + " …"
    if arm is Arm.CANDIDATE and number % 5 == 3 and fate.outcome is not Outcome.PASS:
        return texts[cohort].replace("e", "é", 1)
    return texts[cohort]


def generation(fate: Fate, arm: Arm, cohort: str, number: int, repeat: int) -> Generation:
    """Return one made-up generation; its ids are derived from its identity."""
    rollout_number = FATES.index(fate)
    key = f"{rollout_number:02x}{COHORTS.index(cohort):02x}{number:04x}{repeat:02x}"
    side = "0b" if arm is Arm.BASELINE else "0c"
    speed = fate.speed if arm is Arm.CANDIDATE else 1.0
    wobble = 1 + (number * 37 % 23) / 60
    e2e_s = 1.4 * wobble * speed * (1 + COHORTS.index(cohort) / 4)
    ttft_s = 0.08 * wobble
    start_unix_ns = time.time_ns() - (400 - 2 * number - repeat) * 1_000_000_000
    lower = bool(fate.lower_scores) and number % fate.lower_scores == 2
    return Generation(
        trace_id=f"{side}{key}".ljust(32, "a"),
        span_id=f"{side}{key}".ljust(16, "b")[:16],
        start_unix_ns=start_unix_ns,
        end_unix_ns=start_unix_ns + int(e2e_s * 1e9),
        provider="vllm",
        request_model="desk-1b",
        max_tokens=256,
        temperature=0.0,
        finish_reasons=("stop",),
        error_type="timeout" if (arm, number, cohort) == (Arm.CANDIDATE, 11, "chat") else None,
        input_tokens=640 + 13 * number,
        output_tokens=96 + number,
        ttft_s=ttft_s,
        tpot_s=(e2e_s - ttft_s) / (95 + number),
        rollout=fate.rollout,
        arm=arm,
        cohort=cohort,
        prompt_id=f"{cohort}-{number:03d}",
        dims={"language": "de" if number % 4 == 0 else "en"},
        concurrency=1 + number % 6,
        retries=1 if number == 13 else 0,
        fallback=arm is Arm.CANDIDATE and number == 17,
        queue_s=0.011 * wobble,
        prefill_s=0.043 * wobble,
        stream_chunks=30 + number,
        stream_max_gap_s=0.081,
        service_name="desk-serving",
        fingerprint="4f2a91c07d" if arm is Arm.BASELINE or number < 12 else "b7e0d5529a",
        repeat=repeat,
        speculation=speculation(cohort, number) if arm is Arm.CANDIDATE else None,
        content=Content(
            input_messages=json.dumps(
                [
                    {"role": "system", "parts": [{"type": "text", "content": "You are a desk."}]},
                    {
                        "role": "user",
                        "parts": [{"type": "text", "content": f"Question {number} on {cohort}?"}],
                    },
                ]
            ),
            output_messages=output(answer(fate, arm, cohort, number, lower=lower)),
            context=(
                ("Refunds are paid within 5 working days.", "Shipping costs are not refunded.")
                if cohort == "rag"
                else None
            ),
            reference="Refunds take 5 working days." if cohort == "rag" else None,
        ),
    )


def speculation(cohort: str, number: int) -> Speculation:
    """Return made-up counts that keep the contract, but for one generation that breaks it."""
    steps = 30 + number
    keeps = {"rag": 5, "tool_call": 6, "code": 6, "chat": 4, "json": 7, "summary": 5}[cohort]
    accepted = tuple(steps * (keeps - j) // 8 for j in range(4))
    broken = (cohort, number) == ("chat", 5)
    return Speculation(
        method="draft_model",
        draft_model="desk-100m",
        num_speculative_tokens=4,
        lossless=True,
        source="request",
        steps=steps,
        draft_tokens=4 * steps,
        accepted_tokens=sum(accepted) + (1_000 if broken else 0),
        draft_tokens_per_pos=(steps,) * 4,
        accepted_tokens_per_pos=accepted,
    )


def scores(fate: Fate, sent: Generation) -> Iterator[Score]:
    """Yield made-up scores of a generation."""
    number = int(str(sent.prompt_id).rsplit("-", 1)[1])
    lower = sent.arm is Arm.CANDIDATE and fate.lower_scores and number % fate.lower_scores == 2
    for metric in METRICS:
        unscored = metric == "groundedness" and sent.cohort != "rag"
        yield Score(
            trace_id=sent.trace_id,
            span_id=sent.span_id,
            metric=metric,
            evaluator="lexical",
            version="1",
            value=None if unscored else 0.25 if lower else 1.0,
            explanation=None if unscored else f"{metric} of an <i>answer</i>",
            spans=_spans(sent, lower=bool(lower)) if metric == "groundedness" else None,
            unscored_reason="no context" if unscored else None,
        )


def _spans(sent: Generation, *, lower: bool) -> tuple[ScoredSpan, ...] | None:
    """Return the spans that a made-up evaluator marks: the first words, and the text after them."""
    if sent.cohort != "rag":
        return None
    return (
        ScoredSpan(start=0, end=20, support=0.92),
        ScoredSpan(start=21, end=70, support=0.08 if lower else 0.88),
    )


def feedback(sent: Generation) -> Iterator[Feedback]:
    """Yield made-up feedback on a generation: a thumb down now and then."""
    number = int(str(sent.prompt_id).rsplit("-", 1)[1])
    if number in (4, 9) and sent.repeat == 0:
        kind = FeedbackKind.THUMBS_DOWN if sent.arm is Arm.CANDIDATE else FeedbackKind.THUMBS_UP
        yield Feedback(
            trace_id=sent.trace_id,
            span_id=sent.span_id,
            kind=kind,
            source="desk",
            time_unix_ns=sent.end_unix_ns,
        )

"""A collector with three rollouts in it: one that passes, one that fails, one that is undecided.

The numbers are made up; they are shaped like a real rollout's so that pages look as they will.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from otlp_bodies import export_request

from collector.client import Client
from collector.contract import (
    Acceptance,
    Arm,
    ArmLatency,
    Content,
    Finding,
    Generation,
    Outcome,
    Percentiles,
    QualityCounts,
    Reason,
    Role,
    Score,
    Speculation,
    Verdict,
    encode,
)

COHORTS = ("rag", "tool_call", "code", "chat")
REPEATS = 2
PROMPTS = 20
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
    }
    if arm is Arm.CANDIDATE and lower:
        return HOSTILE if cohort == "rag" else texts[cohort][: len(texts[cohort]) // 2] + " …"
    if arm is Arm.CANDIDATE and number % 5 == 3 and fate.outcome is not Outcome.PASS:
        return texts[cohort].replace("e", "é", 1)
    return texts[cohort]


def generation(fate: Fate, arm: Arm, cohort: str, number: int, repeat: int) -> Generation:
    """Return one made-up generation; its ids follow from what it is of."""
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
    keeps = {"rag": 5, "tool_call": 6, "code": 6, "chat": 4}[cohort]
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


def finding(cohort: str | None, metric: str, stat: str, **changes: object) -> Finding:
    """Return a made-up finding that passes, with changes."""
    difference = stat.endswith("diff")
    values: dict[str, object] = {
        "cohort": cohort,
        "metric": metric,
        "stat": stat,
        "role": Role.PROVE if cohort is None else Role.GUARD,
        "outcome": Outcome.PASS,
        "reason": None,
        "bound": "min" if difference else "max",
        "margin": -0.02 if difference else 1.1,
        "unit": "difference" if difference else "ratio",
        "confidence": 0.95,
        "n": 160 if cohort is None else 40,
        "method": "tango-1998/1" if difference else "mover-os/1",
        "message": f"{metric} {stat} stays within the margin.",
    }
    return Finding(**(values | changes))  # type: ignore[arg-type]


def findings(fate: Fate) -> tuple[Finding, ...]:
    """Return the findings of a made-up verdict, every kind of limit among them."""
    made = [
        finding(
            None,
            "e2e",
            "geomean_ratio",
            margin=1.0,
            estimate=fate.speed + 0.01234567,
            lower=fate.speed - 0.0213,
            upper=fate.speed + 0.0471,
            method="log-ratio-t/1",
        ),
        finding(
            None, "tpot", "geomean_ratio", margin=1.0, estimate=0.58123, lower=0.5412, upper=0.6241
        ),
        finding(None, "ttft", "p95_ratio", estimate=1.0123, lower=0.9634, upper=1.0721),
        finding(
            None,
            "ttft",
            "p99_ratio",
            margin=1.25,
            outcome=Outcome.INCONCLUSIVE,
            reason=Reason.TOO_FEW,
            estimate=1.0841,
            lower=0.8712,
            n_needed=139,
            role=Role.GUARD,
            message="p99 needs 299 pairs for an upper limit; there are 160.",
        ),
        finding(
            None, "groundedness", "mean_diff", estimate=-0.0031, lower=-0.0123, upper=0.0061, n=40
        ),
        finding(None, "task_completion", "diff", estimate=0.0, lower=-0.0187, upper=0.0187),
    ]
    for number, cohort in enumerate(COHORTS):
        made.append(
            finding(
                cohort,
                "ttft",
                "p95_ratio",
                margin=1.25,
                outcome=Outcome.INCONCLUSIVE,
                reason=Reason.TOO_FEW,
                estimate=1.01 + number / 50,
                lower=0.91,
                n_needed=19,
                message="p95 needs 59 pairs for an upper limit; there are 40.",
            )
        )
        made.append(_task(fate, cohort))
    made.append(
        finding(
            "chat",
            "schema_validity",
            "diff",
            outcome=Outcome.INCONCLUSIVE,
            reason=Reason.MISSING,
            n=0,
            role=Role.REPORT,
            message="Nobody scored schema validity in chat.",
        )
    )
    return tuple(made)


def _task(fate: Fate, cohort: str) -> Finding:
    if fate.outcome is Outcome.FAIL and cohort in ("rag", "code"):
        return finding(
            cohort,
            "task_completion",
            "diff",
            outcome=Outcome.FAIL,
            estimate=-0.15,
            lower=-0.2512,
            upper=-0.0614,
            p_fail=0.0004,
            message="Task completion fell by 0.15, and by at least 0.06 at 95 % confidence.",
        )
    if fate.outcome is Outcome.PASS:
        return finding(
            cohort,
            "task_completion",
            "diff",
            margin=-0.05,
            estimate=0.0,
            lower=-0.0433,
            upper=0.0433,
        )
    return finding(
        cohort,
        "task_completion",
        "diff",
        outcome=Outcome.INCONCLUSIVE,
        reason=Reason.TOO_FEW,
        estimate=-0.025,
        lower=-0.0981,
        upper=0.0315,
        n_needed=109,
        message="The limits straddle the margin: 109 more pairs needed.",
    )


def percentiles(p50_s: float) -> Percentiles:
    """Return made-up percentiles around a median."""
    return Percentiles(n=40, p50=p50_s, p95=p50_s * 1.42, p99=p50_s * 1.77)


def verdict(fate: Fate) -> Verdict:
    """Return a made-up verdict, with evidence for every section."""
    scopes = (None, *COHORTS)
    summaries = {
        Outcome.PASS: "38 % faster end to end over 160 pairs, no metric worse than its margin.",
        Outcome.FAIL: "Task completion fell by 0.15 in rag and code: faster, but worse answers.",
        Outcome.INCONCLUSIVE: "29 % faster, but 109 more pairs are needed to rule out harm.",
    }
    return Verdict(
        rollout=fate.rollout,
        outcome=fate.outcome,
        summary=summaries[fate.outcome],
        reasons=tuple(
            f"{f.cohort or 'all cohorts'}: {f.message}"
            for f in findings(fate)
            if f.outcome is fate.outcome
        )[:3],
        pairs=160,
        incomplete_pairs=1,
        failed_pairs=REPEATS,
        duplicates=3,
        findings=findings(fate),
        latency=tuple(
            ArmLatency(
                cohort=cohort,
                arm=arm,
                generations=160 if cohort is None else 40,
                errors=REPEATS if arm is Arm.CANDIDATE and cohort in (None, "chat") else 0,
                ttft_s=percentiles(0.0813),
                tpot_s=percentiles(0.0153 * (fate.speed if arm is Arm.CANDIDATE else 1)),
                e2e_s=percentiles(1.51 * (fate.speed if arm is Arm.CANDIDATE else 1)),
            )
            for cohort in scopes
            for arm in Arm
        ),
        acceptance=tuple(acceptance(cohort) for cohort in scopes),
        quality=tuple(quality(fate, metric, cohort) for metric in METRICS for cohort in scopes),
        policy_name="default",
        policy_hash="5f1c9a" * 10 + "abcd",
        data_hash="07e3b1" * 10 + "ef01",
        versions={"draftgate": "0.1.0"},
    )


METRICS = ("groundedness", "task_completion")


def acceptance(cohort: str | None) -> Acceptance:
    """Return made-up acceptance of the candidate in a scope."""
    scale = {None: 5.2, "rag": 5.0, "tool_call": 6.0, "code": 6.1, "chat": 4.0}[cohort]
    per_pos = tuple((scale - j) / 8 for j in range(4))
    return Acceptance(
        cohort=cohort,
        arm=Arm.CANDIDATE,
        generations=158 if cohort is None else 40,
        excluded=2 if cohort in (None, "chat") else 0,
        steps=6_320,
        draft_tokens=25_280,
        accepted_tokens=int(sum(per_pos) * 6_320),
        rate=sum(per_pos) / 4,
        length=1 + sum(per_pos),
        rate_per_pos=per_pos,
        drafts_per_pos=(6_320,) * 4,
    )


def quality(fate: Fate, metric: str, cohort: str | None) -> QualityCounts:
    """Return made-up wins, losses and ties."""
    n = 160 if cohort is None else 40
    losses = {Outcome.PASS: 1, Outcome.FAIL: 7, Outcome.INCONCLUSIVE: 3}[fate.outcome]
    losses *= 4 if cohort is None else 1
    return QualityCounts(
        metric=metric,
        cohort=cohort,
        n=n,
        unscored=1,
        baseline_mean=0.9125,
        candidate_mean=0.9125 - losses / 4 / n,
        wins=2,
        losses=losses,
        ties=n - 2 - losses,
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
            unscored_reason="no context" if unscored else None,
        )


def seed(client: Client) -> None:
    """Post three rollouts with their scores and verdicts."""
    for fate in FATES:
        generations = [
            generation(fate, arm, cohort, number, repeat)
            for cohort in COHORTS
            for number in range(PROMPTS)
            for repeat in range(REPEATS)
            for arm in Arm
            if (arm, cohort, number, repeat) != (Arm.CANDIDATE, "code", 19, 1)
        ]
        body = export_request([encode(sent) for sent in generations])
        client.post_traces(body.SerializeToString())
        client.post_scores([score for sent in generations for score in scores(fate, sent)])
        client.post_verdict(verdict(fate))


@pytest.fixture(scope="session")
def seeded_database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the URL of a SQLite file with three rollouts in it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('seeded')}/seeded.db"
    with Client.local(url, capture_content=True) as client:
        seed(client)
    return url


@pytest.fixture
def undecided_database(tmp_path: Path) -> str:
    """Return the URL of a SQLite file with one pair of one rollout, and no verdict."""
    url = f"sqlite:///{tmp_path}/undecided.db"
    pair = [generation(FATES[0], arm, "chat", 1, 0) for arm in Arm]
    with Client.local(url, capture_content=True) as client:
        client.post_traces(export_request([encode(side) for side in pair]).SerializeToString())
    return url


@pytest.fixture
def decide(undecided_database: str) -> Callable[[], None]:
    """Return what posts a verdict on the undecided rollout."""

    def post() -> None:
        with Client.local(undecided_database, capture_content=True) as client:
            client.post_verdict(verdict(FATES[0]))

    return post


@pytest.fixture
def empty_database(tmp_path: Path) -> str:
    """Return the URL of a SQLite file without any rollout."""
    return f"sqlite:///{tmp_path}/empty.db"

"""Verdicts made up for tests of what stores and carries them, without any finding."""

import hashlib
import zlib
from dataclasses import replace

from otlp_bodies import export_request

from collector.client import Client
from collector.contract import Arm, Generation, Outcome, PolicyRegistration, Verdict, encode
from evals.evidence.parts import parts_of, with_part


def made_verdict(
    outcome: Outcome = Outcome.INCONCLUSIVE, *, rollout: str = "k4", **changes: object
) -> Verdict:
    """Return a verdict on one pair, with changes."""
    plain = Verdict(
        rollout=rollout,
        outcome=outcome,
        summary=f"{outcome} of {rollout}",
        reasons=(),
        pairs=1,
        incomplete_pairs=0,
        failed_pairs=0,
        duplicates=0,
        findings=(),
        latency=(),
        acceptance=(),
        quality=(),
        policy_name="default",
        policy_hash=hashlib.sha256(b"{}").hexdigest(),
        data_hash="d",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]  # fields by name


def resting_on(client: Client, verdict: Verdict, *, younger_than: int = 0) -> Verdict:
    """Return the verdict with the stored pairs of its rollout as its evidence."""
    table = with_part(
        client.pairs_table(verdict.rollout, younger_than=younger_than), verdict.rollout
    )
    pairs = min(verdict.pairs, len(table))
    return replace(verdict, pairs=pairs, evidence=parts_of(table))


def send_pairs(client: Client, rollout: str, count: int = 1, *, first: int = 0) -> None:
    """Store so many pairs of a rollout, each of one prompt."""
    spans = [
        encode(
            Generation(
                trace_id=f"{zlib.crc32(rollout.encode()):032x}",
                span_id=f"{2 * number + side + 1:016x}",
                start_unix_ns=10**18 + number,
                end_unix_ns=10**18 + 10**9 + number,
                rollout=rollout,
                arm=arm,
                prompt_id=f"p{number}",
                repeat=0,
            )
        )
        for number in range(first, first + count)
        for side, arm in enumerate(Arm)
    ]
    client.post_traces(export_request(spans).SerializeToString())


def registration(text: str = "{}", name: str = "default") -> PolicyRegistration:
    """Return a registration of a canonical policy's text."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return PolicyRegistration(policy_name=name, policy_hash=digest, text=text)

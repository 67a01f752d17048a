"""What is too much to read anew for every click: kept for a while, for all viewers."""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import streamlit as st

from collector.client import Client
from collector.contract import ArmSummary, RolloutOverview, StoredVerdict
from evals import advice as advices
from evals import distributions
from evals.advice.records import Advice
from evals.feedback_counts import FeedbackCount, by_arm

SAMPLE = 50_000
"""Generations that distributions are drawn from: the newest ones."""
_FEW = 5_000
"""Generations that may be new before what is kept of a large rollout is read anew."""
_COLUMNS = (
    "trace_id",
    "span_id",
    "arm",
    "cohort",
    "start_unix_ns",
    "end_unix_ns",
    "error_type",
    "input_tokens",
    "output_tokens",
    "ttft_s",
    "ttfo_s",
    "tpot_s",
    "concurrency",
    "dims",
    "retries",
    "fallback",
    "fingerprint",
    "spec_steps",
    "spec_draft_tokens",
    "spec_accepted_tokens",
    "spec_accepted_tokens_per_pos",
    "spec_acceptance_histogram",
    "quality",
)


class Stamp(NamedTuple):
    """What tells one state of a rollout's data from another, for caches."""

    address: str
    rollout: str
    generations: int
    last_end_unix_ns: int


def stamp(address: str, overview: RolloutOverview) -> Stamp:
    """Return the stamp of what the collector holds of a rollout now."""
    generations = overview.baseline_generations + overview.candidate_generations
    return Stamp(address, overview.rollout, generations, overview.last_end_unix_ns)


def settled(at: Stamp) -> Stamp:
    """Return the stamp for what is read of a large rollout: it stays while little is new.

    Else a rollout with live traffic would be read anew for every click.
    """
    if at.generations <= SAMPLE:
        return at
    return at._replace(generations=at.generations // _FEW * _FEW, last_end_unix_ns=0)


def newest(client: Client, at: Stamp) -> pa.Table:
    """Return at most `SAMPLE` generations, the newest first, numbers only."""
    return _newest(client, settled(at))


def newest_of(client: Client, at: Stamp, cohort: str | None) -> pa.Table:
    """Return those of the newest generations that are of the cohort; `None` is all of them."""
    return distributions.narrowed(newest(client, at), distributions.Slice(cohort))


def pairs(client: Client, at: Stamp) -> pa.Table:
    """Return every pair of a rollout, numbers only."""
    return _pairs(client, settled(at))


def advice(client: Client, at: Stamp, others: tuple[str, ...]) -> Advice:
    """Return what `draftgate advise` says of a rollout."""
    newest = client.newest_verdict(at.rollout)
    return _advice(client, settled(at), others, newest, None if newest is None else newest.id)


def feedback(client: Client, at: Stamp) -> tuple[FeedbackCount, ...]:
    """Return what people did about the newest generations."""
    return _feedback(client, settled(at))


def summary(client: Client, at: Stamp, start_unix_s: int | None) -> tuple[ArmSummary, ...]:
    """Return what the collector counted since then; read anew where anything has arrived."""
    return _summary(client, at, start_unix_s)


def forget() -> None:
    """Read everything anew the next time."""
    for kept in (_newest, _pairs, _advice, _feedback, _summary):
        kept.clear()


@st.cache_resource(ttl=60, show_spinner="Reading the newest generations …", max_entries=4)
def _newest(_client: Client, at: Stamp) -> pa.Table:
    with _client.generation_batches(at.rollout, newest=True, fields=_COLUMNS) as reader:
        return pa.Table.from_batches(list(_first(reader, SAMPLE)), reader.schema)


@st.cache_resource(ttl=60, show_spinner="Reading the pairs …", max_entries=4)
def _pairs(_client: Client, at: Stamp) -> pa.Table:
    return _client.pairs_table(at.rollout).combine_chunks()


@st.cache_data(ttl=600, show_spinner="Working out the advice …", max_entries=8)
def _advice(
    _client: Client,
    at: Stamp,
    others: tuple[str, ...],
    _newest: StoredVerdict | None,
    verdict_id: str | None,  # noqa: ARG001  # tells one verdict from another, for the cache
) -> Advice:
    beside = {name: advices.load(_client, name) for name in others}
    verdict = None if _newest is None else _newest.verdict
    return advices.advise(at.rollout, advices.load(_client, at.rollout), beside, verdict=verdict)


@st.cache_data(ttl=60, show_spinner="Reading the feedback …", max_entries=8)
def _feedback(_client: Client, at: Stamp) -> tuple[FeedbackCount, ...]:
    return by_arm(_client.feedback(at.rollout, newest=SAMPLE), _newest(_client, at))


@st.cache_data(ttl=60, show_spinner=False, max_entries=64)
def _summary(_client: Client, at: Stamp, start_unix_s: int | None) -> tuple[ArmSummary, ...]:
    return _client.summary(at.rollout, start=start_unix_s)


def _first(reader: pa.RecordBatchReader, most: int) -> Iterator[pa.RecordBatch]:
    left = most
    for batch in reader:
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return

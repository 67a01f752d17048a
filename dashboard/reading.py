"""Cached reads of large data, shared by all viewers."""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import streamlit as st

from collector.client import Client
from collector.contract import LATENCIES, Arm, ArmSummary, RolloutOverview, StoredVerdict
from evals import advice as advices
from evals.advice.records import Advice
from evals.profiles import distributions, slow_requests
from evals.profiles.feedback_counts import FeedbackCount, by_arm

SAMPLE = 50_000
"""Number of newest generations that distributions are drawn from."""
NEWEST_COMPARED = 20_000
"""Number of newest requests in which slow ones are compared with the rest."""
_FEW = 5_000
"""Number of new generations after which a large rollout's cache is read again."""
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
    *(f"{name}_s" for name in LATENCIES if name != "e2e"),
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
    """A cache key that identifies the state of a rollout's data."""

    address: str
    rollout: str
    generations: int
    last_end_unix_ns: int


def stamp(address: str, overview: RolloutOverview) -> Stamp:
    """Return the stamp of a rollout's current data."""
    generations = overview.baseline_generations + overview.candidate_generations
    return Stamp(address, overview.rollout, generations, overview.last_end_unix_ns)


def settled(at: Stamp) -> Stamp:
    """Return a stamp that, for a large rollout, changes only every `_FEW` generations.

    Otherwise a rollout with live traffic would be read again at every click.
    """
    if at.generations <= SAMPLE:
        return at
    return at._replace(generations=at.generations // _FEW * _FEW, last_end_unix_ns=0)


def newest(client: Client, at: Stamp) -> pa.Table:
    """Return up to `SAMPLE` generations, newest first, without text."""
    return _newest(client, settled(at))


def newest_of(client: Client, at: Stamp, cohort: str | None) -> pa.Table:
    """Return the newest generations of the cohort; `None` for all cohorts."""
    return distributions.narrowed(newest(client, at), distributions.Slice(cohort))


def compared(client: Client, at: Stamp, cohort: str | None, arm: Arm | None) -> pa.Table:
    """Return up to `NEWEST_COMPARED` generations of the cohort and arm, newest first."""
    return _compared(client, settled(at), cohort, arm)


def pairs(client: Client, at: Stamp) -> pa.Table:
    """Return every pair of a rollout, without text."""
    return _pairs(client, settled(at))


def advice(client: Client, at: Stamp, others: tuple[str, ...]) -> Advice:
    """Return the advice of `draftgate advise` on a rollout."""
    newest = client.newest_verdict(at.rollout)
    return _advice(client, settled(at), others, newest, None if newest is None else newest.id)


def feedback(client: Client, at: Stamp) -> tuple[FeedbackCount, ...]:
    """Return counts of user feedback on the newest generations."""
    return _feedback(client, settled(at))


def summary(client: Client, at: Stamp, start_unix_s: int | None) -> tuple[ArmSummary, ...]:
    """Return the collector's counts since `start_unix_s`; read again whenever data arrives."""
    return _summary(client, at, start_unix_s)


def clear() -> None:
    """Clear the caches."""
    for kept in (_newest, _compared, _pairs, _advice, _feedback, _summary):
        kept.clear()


@st.cache_resource(ttl=60, show_spinner="Reading the newest generations …", max_entries=4)
def _newest(_client: Client, at: Stamp) -> pa.Table:
    with _client.generation_batches(at.rollout, newest=True, fields=_COLUMNS) as reader:
        return pa.Table.from_batches(list(_first(reader, SAMPLE)), reader.schema)


@st.cache_resource(ttl=60, show_spinner="Reading the newest requests …", max_entries=4)
def _compared(_client: Client, at: Stamp, cohort: str | None, arm: Arm | None) -> pa.Table:
    fields = slow_requests.FIELDS
    with _client.generation_batches(
        at.rollout, cohort=cohort, arm=arm, newest=True, fields=fields
    ) as reader:
        return pa.Table.from_batches(list(_first(reader, NEWEST_COMPARED)), reader.schema)


@st.cache_resource(ttl=60, show_spinner="Reading the pairs …", max_entries=4)
def _pairs(_client: Client, at: Stamp) -> pa.Table:
    return pa.table(_client.pairs_table(at.rollout)).combine_chunks()


@st.cache_data(ttl=600, show_spinner="Working out the advice …", max_entries=8)
def _advice(
    _client: Client,
    at: Stamp,
    others: tuple[str, ...],
    _newest: StoredVerdict | None,
    verdict_id: str | None,  # noqa: ARG001  # part of the cache key
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

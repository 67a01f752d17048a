"""Spans to rows: the short way for Draftgate's dialect, and the rows of other spans."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from made_generations import generation_of
from otlp_bodies import received

from collector import store as store_package
from collector.content import DROP, ContentPolicy
from collector.content.redaction import Pattern, Redactor
from collector.contract import Span, SpanEvent, SpanLink, attributes, decode, encode
from collector.ingest.preparation import prepare
from collector.store import Batch, Store, generation_rows, traces

KNOWN = [
    value
    for name, value in vars(attributes).items()
    if name.isupper() and isinstance(value, str) and name != "SCHEMA_URL"
]
SCALARS = (
    st.text(max_size=5)
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.sampled_from(["baseline", "candidate", "chat", '["a"]'])
)
FINISHES = st.lists(st.sampled_from(["stop", "error"]), max_size=2).map(tuple)
VALUES = SCALARS | FINISHES | st.lists(st.integers(-2, 9), max_size=4).map(tuple)
NAMES = st.sampled_from([*KNOWN, "draftgate.dim.step", "other"])


@settings(deadline=None, max_examples=300)
@given(st.dictionaries(NAMES, VALUES, max_size=20))
def test_the_short_way_ends_where_the_contracts_decoding_does(given_: dict[str, Any]) -> None:
    """Reading from the wire's bytes gives the same as `decode` of the span."""
    span = Span(
        trace_id="a" * 32,
        span_id="b" * 16,
        name="chat m",
        start_unix_ns=10**9,
        end_unix_ns=3 * 10**9,
        attributes=given_ | {attributes.GEN_AI_OPERATION_NAME: "chat"},
        resource={"service.name": "s"},
    )
    (rows,) = prepare(received([span]))
    wanted = generation_rows.to_row(decode(span).fields, "draftgate")
    wanted |= {"trace_id": bytes.fromhex(span.trace_id), "span_id": bytes.fromhex(span.span_id)}
    assert rows.generation is not None
    rows.generation.pop("carries", None)  # which is of its text
    assert rows.generation == wanted


def test_events_and_links_come_back_whole(database_url: str) -> None:
    """A trace keeps its spans' events and links."""
    span = with_parts(encode(generation_of(1)))
    assert round_trip(database_url, span, ContentPolicy(Redactor(()))) == span


def test_text_in_events_and_links_is_content_too(database_url: str) -> None:
    """Where content is not kept, an exception's message is not either; its type is."""
    kept = round_trip(database_url, with_parts(encode(generation_of(1))), DROP)
    assert [event.attributes for event in kept.events] == [{"exception.type": "ValueError"}]
    assert [link.attributes for link in kept.links] == [{"why": "retry"}]


def test_text_in_events_is_redacted(database_url: str) -> None:
    """Stored text is redacted by the patterns, wherever it stands."""
    policy = ContentPolicy(Redactor([Pattern("name", "Ada")]))
    kept = round_trip(database_url, with_parts(encode(generation_of(1))), policy)
    assert kept.events[0].attributes["exception.message"] == "no [redacted:name]"


def test_the_dictionary_of_payloads_never_changes() -> None:
    """What was packed with it could not be read any more: a new one is a new file."""
    file = Path(store_package.__file__).with_name("payload-1.zstd-dictionary")
    assert hashlib.sha256(file.read_bytes()).hexdigest() == (
        "4a6d17742f4a86e122fdd6d2496abd8184b1bfab8838d570348f09cc2997e9cf"
    )


def with_parts(span: Span) -> Span:
    message = {"exception.type": "ValueError", "exception.message": "no Ada"}
    return replace(
        span,
        events=(SpanEvent(name="exception", time_unix_ns=5, attributes=message),),
        links=(SpanLink(trace_id="c" * 32, span_id="d" * 16, attributes={"why": "retry"}),),
    )


def round_trip(database_url: str, span: Span, content: ContentPolicy) -> Span:
    with Store.open(database_url) as store:
        store.write(Batch(spans=prepare(received([span]), content)))
        with store.read() as connection:
            (kept,) = traces.trace(connection, span.trace_id)
    return kept

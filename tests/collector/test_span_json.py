"""Spans as JSON, without loss."""

import json

from hypothesis import given
from hypothesis import strategies as st

from collector.contract import Span
from collector.contract.span_json import (
    attributes_from_json,
    attributes_to_json,
    span_from_document,
    span_to_document,
)

NAMES = st.sampled_from(["a", "bytes_hex", "double", "kvlist"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.dictionaries(NAMES, inner, max_size=3)
    ),
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_attributes_come_back_as_they_went(attributes: dict[str, object]) -> None:
    """Strict JSON carries every attribute value, key-value lists named like tags included."""
    text = json.dumps(attributes_to_json(attributes), allow_nan=False)  # type: ignore[arg-type]
    assert attributes_from_json(json.loads(text)) == attributes


def test_what_json_lacks_is_tagged() -> None:
    """NaN, infinities, bytes and key-value lists are objects with one key."""
    attributes = {"d": (float("nan"), float("inf"), float("-inf")), "b": b"\x00\xff", "m": {"k": 1}}
    assert attributes_to_json(attributes) == {
        "d": [{"double": "NaN"}, {"double": "Infinity"}, {"double": "-Infinity"}],
        "b": {"bytes_hex": "00ff"},
        "m": {"kvlist": {"k": 1}},
    }


def test_a_span_comes_back_as_it_went(odd_span: Span) -> None:
    """A span's document is JSON, and restores the span."""
    text = json.dumps(span_to_document(odd_span), allow_nan=False)
    assert span_from_document(json.loads(text)) == odd_span

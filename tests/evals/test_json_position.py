"""Where the JSON of an answer breaks."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.contract import ScoredSpan
from evals.evaluators.json_position import fault_in
from evals.evaluators.json_schema import SchemaFault
from evals.evaluators.schema_validity import SchemaValidity

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "integer"}}},
        "required": ["a", "b"],
    }
)


@pytest.mark.parametrize(
    ("answer", "start"),
    [
        ('{"a": [1, "x"], "b": 1}', 10),
        ('{"a": [1, 2]}', 13),
        ('{"b": 0, "a": [1, }', 18),
        ('{"a": [1, 2', 11),
        ('{"a": [1], "b": "and so on', 26),
        ("Sure!", 0),
        ('```json\n{"a": "", "b": 0}\n```', 14),
        ("[1]", 0),
    ],
)
def test_an_invalid_answer_says_where_it_breaks(
    generation_of: Any, answer: str, start: int
) -> None:
    """At the wrong value, at the end of an object that lacks a member, or where JSON ends."""
    score = SchemaValidity().score(generation_of(answer=answer, output_schema=SCHEMA))
    assert score is not None
    assert score.spans == (ScoredSpan(start=start, end=len(answer), support=0.0),)


def test_a_valid_answer_breaks_nowhere(generation_of: Any) -> None:
    """It has no spans."""
    score = SchemaValidity().score(generation_of(answer='{"a": [], "b": 1}', output_schema=SCHEMA))
    assert score is not None
    assert (score.value, score.spans) == (1.0, None)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


def paths(value: Any, before: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, Any]]:
    yield before, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*before, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*before, index))


@given(VALUES, st.sampled_from([None, 0, 2]), st.booleans())
def test_every_value_is_found(value: Any, indent: int | None, ascii_only: bool) -> None:
    """At any path, whatever the white space; the end of a value follows its start."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    for path, inner in paths(value):
        found, ended = (fault_in(text, SchemaFault("", path, missing)) for missing in (False, True))
        assert found is not None
        assert ended is not None
        assert json.loads(text[found.start : ended.start]) == inner


@given(st.text(max_size=30))
def test_any_text_has_a_place_within_it_or_none(text: str) -> None:
    """Nothing is raised, whatever the text is."""
    span = fault_in(text)
    assert span is None or 0 <= span.start <= span.end == len(text)


def test_what_was_redacted_is_not_called_wrong(generation_of: Any) -> None:
    """A number replaced by a mark has no known validity; another fault beside it has."""
    for answer, value in (
        ('{"a": ["[redacted:card]"], "b": 1}', None),
        ('{"a": ["[redacted:card]"]}', 0.0),
        ('{"a": [1], "b": "[redacted:card]"}', 1.0),
    ):
        score = SchemaValidity().score(generation_of(answer=answer, output_schema=SCHEMA))
        assert score is not None
        assert score.value == value

"""Redacted values stay apart: equal ones have equal tokens, made with a secret key."""

import json
from collections.abc import Callable

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_generations import generation_of
from otlp_bodies import body_of, export_request

from collector.client import Client
from collector.content import ContentPolicy, Pattern, Redactor, shipped
from collector.contract import Content, encode
from collector.errors import SettingsError
from collector.settings import from_environment

KEYED = Redactor(shipped()).keyed(b"k" * 32)
NUMBER, OTHER = "call +49 30 1234567", "call +49 30 1234568"


@pytest.mark.parametrize(
    "spellings",
    [
        ("+49 30 1234567", "+49 (0)30 123-4567", "0049 30 1234567"),
        ("+1 415 555 2671", "(415) 555-2671", "415.555.2671"),
        ("4111 1111 1111 1111", "4111111111111111", "4111-1111-1111-1111"),
        ("DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
        ("Bob@Example.com", "bob@example.com"),
    ],
)
def test_spellings_of_one_value_have_one_token(spellings: tuple[str, ...]) -> None:
    """Spaces, capitals and the prefix of international calls make no difference."""
    assert len({KEYED.text(text) for text in spellings}) == 1
    assert KEYED.text(f"a {spellings[0]}, b") == f"a {KEYED.text(spellings[0])}, b"


@given(st.sets(st.from_regex(r"\+49 30 [0-9]{7}", fullmatch=True), min_size=2, max_size=2))
def test_other_numbers_have_other_tokens(numbers: set[str]) -> None:
    """Of 90,000 tokens two numbers seldom share one; a key of other bytes tells those apart."""
    keys = (b"k" * 32, b"l" * 32, b"m" * 32)
    assert any(len({KEYED.keyed(key).text(n) for n in numbers}) == 2 for key in keys)


def test_kinds_do_not_share_tokens() -> None:
    """One text under two patterns gets two numbers."""
    one, other = (
        Redactor([Pattern(name, "E-[0-9]+")], b"k" * 32).text("E-1").split(":")
        for name in ("one", "other")
    )
    assert one[2] != other[2]


def test_a_token_is_not_redacted_again() -> None:
    """Neither by a later pattern of digits nor when a judge quotes the stored text."""
    patterns = [Pattern("employee", "E-[0-9]{6}"), Pattern("zip", "[0-9]{5}")]
    redactor = Redactor(patterns, b"k" * 32)
    once = redactor.text("E-123456 lives in 10115")
    assert once.count("[redacted:") == 2
    assert redactor.text(once) == once


def test_names_show_only_the_kind() -> None:
    """A span's name is grouped by; a token for each value would split the group."""
    policy = ContentPolicy(Redactor(shipped())).keyed(b"k" * 32)
    assert policy.apply_name("GET a@b.de") == policy.apply_label("GET a@b.de")
    assert policy.apply_name("GET a@b.de") == "GET [redacted:email]"
    assert policy.apply_message("for a@b.de") == f"for {KEYED.text('a@b.de')}"


def _stored(url: str, number: int, text: str) -> str:
    """Post an answer to the collector of a database, and return it as it is stored."""
    content = Content(output_messages=json.dumps([{"content": text}]))
    with Client.local(url, capture_content=True) as client:
        made = encode(generation_of(number, content=content))
        client.post_traces(export_request([made]).SerializeToString())
        (kept,) = [g for g in client.generations("k4", content=True) if g.span_id == made.span_id]
    assert kept.content is not None
    (message,) = json.loads(kept.content.output_messages or "")
    return str(message["content"])


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_tokens_outlive_the_collector(
    kind: str, new_database_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a configured key the store's own makes them; another store has another key."""
    monkeypatch.delenv("DRAFTGATE_REDACTION_KEY", raising=False)
    url, another = new_database_url(kind), new_database_url(kind)
    texts = (NUMBER, OTHER, NUMBER, "a@b.de", "a@b.de")
    first = [_stored(url, n, text) for n, text in enumerate(texts, 1)]
    assert first[0] == first[2] != first[1]
    assert first[3] == first[4]
    assert all(text.startswith(("call [redacted:phone:", "[redacted:email:")) for text in first)
    others = [_stored(another, n, text) for n, text in enumerate(texts, 1)]
    assert others != first


def test_a_configured_key_makes_the_tokens_of_every_store(
    new_database_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is in no database: a copy of one alone cannot be searched by guesses."""
    found = []
    for key in ("0f" * 32, "0f" * 32, "e1" * 32):
        monkeypatch.setenv("DRAFTGATE_REDACTION_KEY", key)
        url = new_database_url("sqlite")
        found.append([_stored(url, n, t) for n, t in enumerate((NUMBER, OTHER), 1)])
    assert found[0] == found[1]
    assert found[2] != found[0]


def test_a_key_that_could_be_guessed_is_refused() -> None:
    """With the length that is wanted; the key itself is in no message."""
    with pytest.raises(SettingsError, match="DRAFTGATE_REDACTION_KEY: wanted at least 16") as said:
        from_environment({"DRAFTGATE_REDACTION_KEY": "hunter2"})
    assert "hunter2" not in str(said.value)
    settings = from_environment({"DRAFTGATE_REDACTION_KEY": "hunter2" * 4})
    assert settings.redaction_key is not None
    assert str(settings.redaction_key) not in repr(settings)


def test_spans_and_scores_of_one_collector_share_tokens(http: httpx.Client) -> None:
    """Passages, answers and a judge's explanation name one number by one token."""
    content = Content(
        output_messages=json.dumps([{"content": NUMBER}]), context=(f"Please {NUMBER}.", OTHER)
    )
    span = encode(generation_of(1, content=content))
    protobuf = {"Content-Type": "application/x-protobuf"}
    assert http.post("/v1/traces", content=body_of([span]), headers=protobuf).is_success
    score = {"trace_id": span.trace_id, "span_id": span.span_id, "metric": "m"}
    score |= {"evaluator": "e", "version": "1", "value": 0.5, "explanation": NUMBER}
    assert http.post("/api/v1/scores", json=[score]).is_success
    (kept,) = http.get("/api/v1/generations?rollout=k4&content=true").json()["generations"]
    (said,) = json.loads(kept["content"]["output_messages"])
    right, wrong = kept["content"]["context"]
    assert right == f"Please {said['content']}."
    assert wrong not in right
    (judged,) = http.get("/api/v1/scores?rollout=k4").json()["scores"]
    assert judged["explanation"] == said["content"]

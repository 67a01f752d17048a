"""Stored text: none, or the text that redaction leaves."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from collector_in_process import http_of
from hypothesis import given
from hypothesis import strategies as st
from made_generations import generation_of, span_of
from otlp_bodies import PROTOBUF, body_of, export_request, logs_request

from collector.client import Client
from collector.content import DROP, ContentPolicy, Redactor, checksums, redaction_file, shipped
from collector.contract import Content, encode
from collector.errors import SettingsError
from collector.settings import Settings

REDACTOR = Redactor(shipped())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("write to bob.o'neil+x@mail.example.com, now", "write to bob.o'[redacted:email], now"),
        ("jörg@exämple.de", "[redacted:email]"),
        ("call +49 30 1234567.", "call [redacted:phone]."),
        ("(415) 555-2671 or 415-555-2671", "[redacted:phone] or [redacted:phone]"),
        ("paid with 4111 1111 1111 1111", "paid with [redacted:card]"),
        ("order 1234 4111-1111-1111-1111 1", "order 1234 [redacted:card] 1"),
        ("378282246310005", "[redacted:card]"),
        ("4111 1111 1111 1112 has a wrong check digit", None),
        ("at 1700000000000000000 ns, 2024-01-15 10:20:30", None),
        ("IBAN DE89 3704 0044 0532 0130 00 BIC", "IBAN [redacted:iban] BIC"),
        ("GB82WEST12345698765432", "[redacted:iban]"),
        ("GB82WEST12345698765433", None),
        ("key sk-proj-abcdefghijklmnopqrstuv", "key [redacted:api_key]"),
        ("AKIAIOSFODNN7EXAMPLE", "[redacted:api_key]"),
        ("ghp_" + "a1" * 18, "[redacted:api_key]"),
        ("dgk_0123abcd_" + "0f" * 32, "[redacted:api_key]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.s-_x", "[redacted:jwt]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", None),
        ("10.0.0.1 is only an address", None),
        ("risk-free task-list 12.5 % of 3.000.000", None),
    ],
)
def test_what_is_shipped_finds(text: str, wanted: str | None) -> None:
    """Each kind is replaced by its name; what fails its checksum, and plain numbers, stay."""
    if "PRIVATE KEY" in text:
        wanted = "[redacted:private_key]"
    assert REDACTOR.value(text) == (text if wanted is None else wanted)


def test_json_stays_json_and_hides_nothing() -> None:
    """Escapes neither hide an address nor become part of one; keys and numbers count too."""
    inner = json.dumps({"mail": "a@b.de"}, ensure_ascii=True).replace("@", "\\u0040")
    message = [{"role": "user", "content": "hi\nbob@x.com", "arguments": inner}]
    written = json.dumps([*message, {"a@b.de": 1, "c@d.de": 4111111111111111, "n": 1.5}])
    redacted = REDACTOR.value(written.replace("bob@", "bob\\u0040"))
    assert isinstance(redacted, str)
    first, second = json.loads(redacted)
    assert first["content"] == "hi\n[redacted:email]"
    assert json.loads(first["arguments"]) == {"mail": "[redacted:email]"}
    assert second == {"[redacted:email]": 1, "[redacted:email] 2": "[redacted:card]", "n": 1.5}


def test_every_kind_of_value_is_looked_into() -> None:
    """Lists, mappings, bytes and numbers of the wrong type hide nothing."""
    assert REDACTOR.value(("a@b.de", {"k": b"\xff a@b.de"}, 4111111111111111, None, True)) == (
        "[redacted:email]",
        {"k": b"\xff [redacted:email]"},
        "[redacted:card]",
        None,
        True,
    )


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_redacted_json_is_json(document: object) -> None:
    """Whatever is sent as JSON is stored as JSON, and redacting again changes nothing."""
    once = REDACTOR.value(json.dumps(document))
    assert isinstance(once, str)
    once.encode()
    if isinstance(document, list | dict):
        json.loads(once)
    assert REDACTOR.value(once) == once


_PIECES = st.sampled_from(
    (
        "a@b.de",
        "\\n",
        "\\u0040",
        "\\\\",
        "@",
        "x.org",
        "[",
        '{"k":"',
        '"}',
        " ",
        "4111 1111 ",
        "1e15",
    )
)


@given(st.lists(st.lists(_PIECES, max_size=6).map("".join), max_size=4))
def test_texts_that_are_clean_together_are_clean_one_by_one(texts: list[str]) -> None:
    """One pass over many texts overlooks nothing that a look at each of them finds."""
    assert REDACTOR.is_clean(["plain words", '[{"content": "a line\\nand another"}]'])
    if REDACTOR.is_clean(texts):
        assert [REDACTOR.value(text) for text in texts] == texts
    anchored = Redactor((redaction_file.Pattern("first", "^plain"),))
    assert not anchored.is_clean(["other", "plain words"])


def test_the_work_grows_with_the_text_and_no_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the worst runs of digits, twice the text costs twice the checksums."""
    calls = [0]
    real = checksums.luhn

    def counting(digits: bytes) -> bool:
        calls[0] += 1
        return real(digits)

    monkeypatch.setattr(checksums, "luhn", counting)
    costs = []
    for groups in (20_000, 40_000):
        calls[0] = 0
        REDACTOR.text("5556 " * groups)
        costs.append(calls[0])
    assert costs[0] <= 20_000
    assert costs[1] <= 2 * costs[0] + 8


def test_patterns_that_stall_others_are_linear_here() -> None:
    """A nested repetition on ten million characters ends: RE2 does not backtrack."""
    redactor = Redactor((*shipped(), redaction_file.Pattern("stall", "(a+)+$b")))
    text = "a" * 10_000_000
    assert redactor.text(text) is text


_DENSE = {
    "addresses": "a@b.c ",
    "keys": "sk-aaaaaaaaaaaaaaaa ",
    "single digits": "4 ",
    "no cards": "4444 4444 4444 4444 ",
    "cards": "4111 1111 1111 1111 ",
    "no accounts": "DE89 3704 0044 0532 0130 01 ",
    "telephones": "+4915112345678 ",
    "times": "00 1 ",
}


@pytest.mark.parametrize("dense", _DENSE.values(), ids=_DENSE)
def test_what_is_dense_is_replaced_too(dense: str) -> None:
    """A megabyte in which everything may be something to replace."""
    redacted = REDACTOR.value(dense * (2**20 // len(dense)))
    assert isinstance(redacted, str)
    if REDACTOR.value(dense.strip()) != dense.strip():
        assert dense.strip() not in redacted


@pytest.mark.parametrize(
    "document",
    [
        [f"u{number}@b.c" for number in range(50_000)],
        {f"u{number}@b.c": "x" for number in range(50_000)},
        [[f"u{number}@b.c"] for number in range(50_000)],
        [{"a": number, "b": "x@y.de"} for number in range(30_000)],
        [*([1] * 100_000), "x@y.de"],
        [*([{"a": 1}] * 50_000), "x@y.de"],
        [*([[[[]]]] * 30_000), "x@y.de"],
    ],
    ids=["list", "keys", "lists", "objects", "numbers", "small objects", "lists within lists"],
)
def test_json_of_a_hundred_thousand_parts_is_replaced_whole(document: object) -> None:
    """There is too much in it to look at each part."""
    assert REDACTOR.value(json.dumps(document)) == "[redacted:dense]"


def test_much_json_with_little_to_replace_stays() -> None:
    """Values without anything to redact are searched together, within the limit."""
    document = [{"number": number, "words": f"thing {number}"} for number in range(20_000)]
    redacted = REDACTOR.value(json.dumps([*document, "bob@x.com"]))
    assert isinstance(redacted, str)
    assert json.loads(redacted) == [*document, "[redacted:email]"]


def test_without_capture_text_is_dropped_and_numbers_stay(database_url: str) -> None:
    """By our names and by those of other conventions, of whatever type; the message goes too."""
    span = encode(generation_of(1, content=Content(input_messages="PLANTED", reference="PLANTED")))
    more = {
        "gen_ai.prompt.0.content": "PLANTED",
        "llm.input_messages.0.message.content": "PLANTED",
        "input.value": ("PLANTED",),
        "gen_ai.output.messages": {"odd": b"PLANTED"},
        "exception.message": "PLANTED",
        "my.label": "kept",
    }
    sent = replace(span, attributes={**span.attributes, **more}, status_message="PLANTED")
    judged = {"trace_id": sent.trace_id, "span_id": sent.span_id, "metric": "m"}
    score = judged | {"evaluator": "e", "version": "1", "value": 0.5, "explanation": "PLANTED"}
    result = {
        "trace_id": bytes.fromhex(sent.trace_id),
        "span_id": bytes.fromhex(sent.span_id),
        "event_name": "gen_ai.evaluation.result",
        "attributes": {"gen_ai.evaluation.name": "n", "gen_ai.evaluation.explanation": "PLANTED"},
    }
    logs = logs_request([result]).SerializeToString()
    annotation = {"annotations.0.annotation.name": "o", "openinference.span.kind": "CHAIN"}
    annotated = span_of(
        trace_id=sent.trace_id,
        span_id="f" * 16,
        attributes=annotation | {"annotations.0.annotation.explanation": "PLANTED"},
    )
    with http_of(Settings(database_url=database_url)) as http:  # type: ignore[attr-defined]
        assert http.get("/api/v1/collector").json()["captures_content"] is False
        body = body_of([sent, annotated])
        assert http.post("/v1/traces", content=body, headers=PROTOBUF).is_success
        assert http.post("/v1/logs", content=logs, headers=PROTOBUF).is_success
        assert http.post("/api/v1/scores", json=[score]).is_success
        _, stored = http.get(f"/api/v1/traces/{sent.trace_id}").json()["spans"]
        (kept,) = http.get("/api/v1/generations?rollout=k4&content=true").json()["generations"]
    assert "PLANTED" not in json.dumps([stored, kept])
    assert stored["attributes"]["my.label"] == "kept"
    assert (kept["output_tokens"], kept["content"]) == (11, None)
    for suffix in ("", "-wal"):
        file = Path(database_url.removeprefix("sqlite:///") + suffix)
        assert not file.exists() or b"PLANTED" not in file.read_bytes()


def test_captured_text_is_redacted_before_it_is_stored(http: httpx.Client) -> None:
    """The API returns the kind of a redacted value in its place."""
    content = Content(
        output_messages='[{"content":"ask bob@x.com"}]', context=("call +49 30 1234567",)
    )
    body = body_of([encode(generation_of(1, content=content))])
    assert http.post("/v1/traces", content=body, headers=PROTOBUF).is_success
    (kept,) = http.get("/api/v1/generations?rollout=k4&content=true").json()["generations"]
    (said,) = json.loads(kept["content"]["output_messages"])
    assert re.fullmatch(r"ask \[redacted:email:[0-9]{5}\]", said["content"])
    (passage,) = kept["content"]["context"]
    assert re.fullmatch(r"call \[redacted:phone:[0-9]{5}\]", passage)


@pytest.mark.parametrize(
    ("answer", "kept"), [("no address", "17,4111,1111,1111,1111,2"), ("ask bob@x.com", None)]
)
def test_token_ids_go_with_the_first_redaction(
    http: httpx.Client, answer: str, kept: str | None
) -> None:
    """Ids of tokens would spell out what the text no longer says; their digits are no card's."""
    content = Content(
        output_messages=json.dumps([{"content": answer}]),
        output_token_ids="17,4111,1111,1111,1111,2",
    )
    body = body_of([encode(generation_of(1, content=content))])
    assert http.post("/v1/traces", content=body, headers=PROTOBUF).is_success
    (found,) = http.get("/api/v1/generations?rollout=k4&content=true").json()["generations"]
    assert found["content"].get("output_token_ids") == kept


def test_a_policy_without_capture_keeps_nothing() -> None:
    """Neither attributes nor messages."""
    assert DROP.apply({"a": "b"}) == {}
    assert DROP.apply_message("x") is None
    assert ContentPolicy(REDACTOR).apply_message("for a@b.de") == "for [redacted:email]"


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("yaml", "shipped: [email, ip]\npatterns:\n  employee: 'E-[0-9]{6}'\n"),
        ("toml", "shipped = ['email', 'ip']\n[patterns]\nemployee = 'E-[0-9]{6}'\n"),
    ],
)
def test_a_redaction_file_chooses_and_adds(suffix: str, text: str, tmp_path: Path) -> None:
    """YAML or TOML; a team's own pattern is named as it says."""
    file = tmp_path / f"redaction.{suffix}"
    file.write_text(text)
    redactor = Redactor(redaction_file.read(file))
    assert redactor.text("E-123456 at 10.0.0.1, a@b.de, +49 30 1234567") == (
        "[redacted:employee] at [redacted:ip], [redacted:email], +49 30 1234567"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("patterns: {x: 'a(b'}", "patterns.x: is no regular expression: missing ), unterminated"),
        ("patterns: {x: 'ab(?=c)'}", "patterns.x: is not read by RE2 (invalid perl operator: (?="),
        ("patterns: {x: '(a)\\1'}", "patterns.x: is not read by RE2"),
        ("patterns: {x: 'a*'}", "patterns.x: matches nothing at all"),
        ("patterns: {x: 3}", "patterns.x: wanted a regular expression, got int"),
        ("patterns: {'A B': 'x'}", "patterns.A B: wanted a name"),
        ("shipped: [mail]", "shipped[0]: no pattern 'mail'; wanted private_key, jwt"),
        ("pattern: {}", "pattern: unknown key; wanted shipped or patterns"),
        ("- a", "wanted keys such as `patterns:`, got list"),
        ("a: [", "is not YAML"),
    ],
)
def test_an_unusable_redaction_file_is_named_with_its_key(
    text: str, words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """File, key and place; the matcher's library prints nothing of its own."""
    file = tmp_path / "r.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        redaction_file.read(file)
    assert str(caught.value).startswith(f"{file}: {words}")
    if "RE2" in words or "is no regular" in words:
        assert "position" in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_calls_results_and_tools_are_redacted_and_stay_json(
    new_database_url: Callable[[str], str],
) -> None:
    """Arguments, results and definitions are text as any other, and evaluators can read them."""
    mail = "bob@mail.example.com"
    call = {"type": "tool_call", "id": "c", "name": "send", "arguments": {"to": mail}}
    result = {"type": "tool_call_response", "id": "c", "response": f"sent to {mail}"}
    content = Content(
        input_messages=json.dumps([{"role": "tool", "parts": [result]}]),
        output_messages=json.dumps([{"role": "assistant", "parts": [call]}]),
        tool_definitions=json.dumps([{"type": "function", "name": "send", "description": mail}]),
    )
    made = replace(generation_of(1), rollout="k4", content=content)
    with Client.local(new_database_url("sqlite"), capture_content=True) as client:
        client.post_traces(export_request([encode(made)]).SerializeToString())
        (kept,) = client.generations("k4", content=True)
    assert kept.content is not None
    (said,) = json.loads(kept.content.output_messages or "")
    (tool,) = json.loads(kept.content.tool_definitions or "")
    assert re.fullmatch(r"\[redacted:email:[0-9]{5}\]", tool["description"])
    assert said["parts"] == [call | {"arguments": {"to": tool["description"]}}]
    assert mail not in (kept.content.input_messages or mail)

"""Workload files, good and bad."""

import json
from pathlib import Path

import pytest

from engine_adapter import workload
from engine_adapter.errors import WorkloadError
from engine_adapter.messages import Message
from engine_adapter.workload import Prompt

GOOD = {"id": "a", "cohort": "chat", "prompt": "hello"}


def write(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines))
    return path


def test_every_field_is_read(tmp_path: Path) -> None:
    """A full record is read whole; blank lines are skipped; order is kept."""
    full = {
        "id": "r1",
        "cohort": "rag",
        "messages": [{"role": "user", "content": "when?"}],
        "max_tokens": 8,
        "context": ["on monday"],
        "reference": {"kind": "exact", "text": "monday"},
        "schema": {"type": "object"},
        "dims": {"language": "en"},
    }
    assert workload.read(write(tmp_path / "w.jsonl", full, "", GOOD)) == (
        Prompt(
            id="r1",
            cohort="rag",
            messages=(Message(role="user", content="when?"),),
            max_tokens=8,
            context=("on monday",),
            reference={"kind": "exact", "text": "monday"},
            output_schema={"type": "object"},
            dims={"language": "en"},
        ),
        Prompt(id="a", cohort="chat", prompt="hello"),
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"id": "a", "prompt": "x"}, "w.jsonl:2: cohort: required key is missing"),
        ({**GOOD, "id": ""}, r"w.jsonl:2: id: String should have at least 1 character \(got ''\)"),
        ({**GOOD, "id": "b", "cohrt": "x"}, "cohrt: unknown key; did you mean `cohort`?"),
        ({**GOOD, "id": "b", "max_tokens": 0}, r"max_tokens: .*greater than 0 \(got 0\)"),
        ({"id": "b", "cohort": "c"}, "w.jsonl:2: wanted either `messages` or `prompt`"),
        ({**GOOD, "id": "b", "tool": []}, "tool: unknown key; did you mean `tools`?"),
        ({**GOOD, "id": "b", "top_p": 2}, r"top_p: .*less than or equal to 1 \(got 2\)"),
        ({**GOOD, "id": "b", "tools": [{"type": "function"}]}, "tools.0: has no name"),
        (
            {**GOOD, "id": "b", "response_format": {"type": "json"}},
            "response_format.type: wanted one of text, json_object, json_schema",
        ),
        (
            {**GOOD, "id": "b", "response_format": {"type": "json_schema", "schema": {}}},
            "response_format: wanted",
        ),
        ({**GOOD, "id": "b", "extra_body": {"stream": False}}, "`extra_body` holds 'stream'"),
        (
            {"id": "b", "cohort": "c", "messages": [{"role": "user", "contents": "x"}]},
            "messages.0.contents: unknown key; did you mean `content`?",
        ),
        (
            {"id": "b", "cohort": "c", "messages": [{"role": "tool", "content": "x"}]},
            "needs the `tool_call_id` of its call",
        ),
        (
            {"id": "b", "cohort": "c", "messages": [{"role": "user", "content": [{"text": "x"}]}]},
            "part 0 has no `type`",
        ),
        (GOOD, "w.jsonl:2: id: 'a' was used by an earlier line"),
        ("{", "w.jsonl:2: is not JSON"),
        ("[1]", "w.jsonl:2: wanted a JSON object, got list"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: object, message: str) -> None:
    """The error is one line with file, line number, key and value."""
    with pytest.raises(WorkloadError, match=message) as caught:
        workload.read(write(tmp_path / "w.jsonl", GOOD, line))
    assert "\n" not in str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    """A missing file, an empty file and a binary file are each told apart."""
    with pytest.raises(WorkloadError, match=r"absent\.jsonl: cannot be read: No such file"):
        workload.read(tmp_path / "absent.jsonl")
    with pytest.raises(WorkloadError, match="holds no prompt"):
        workload.read(write(tmp_path / "empty.jsonl", ""))
    binary = tmp_path / "binary.jsonl"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WorkloadError, match=r"is not UTF-8 text \(byte 0\)"):
        workload.read(binary)

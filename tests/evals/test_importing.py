"""Public data sets as workloads: samples of every format, and rows that cannot be used.

The samples are written for these tests in the formats' documented fields; no data set is copied.
"""

import base64
import gzip
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from draftgate.commands import app
from engine_adapter import sessions, workload
from engine_adapter.errors import WorkloadError
from evals.evaluators import TaskCompletion
from evals.evaluators.code import sandbox

HUMANEVAL = {
    "task_id": "HumanEval/900",
    "prompt": 'from typing import List\n\ndef total(xs: List[int]) -> int:\n    """Sum."""\n',
    "entry_point": "total",
    "canonical_solution": "    return sum(xs)\n",
    "test": "def check(candidate):\n    assert candidate([1, 2]) == 3\n",
}
MBPP = {
    "task_id": 900,
    "text": "Write a function to add two numbers.",
    "code": "def add(a, b):\n    return a + b",
    "test_list": ["assert add(1, 2) == 3", "assert set([add(1, 1)]) == {2}"],
    "test_setup_code": "",
}
BIGCODEBENCH = {
    "task_id": "BigCodeBench/900",
    "complete_prompt": 'import json\ndef task_func(x):\n    """Dump."""\n',
    "instruct_prompt": "Write task_func.",
    "code_prompt": "import json\ndef task_func(x):\n",
    "canonical_solution": "    return json.dumps(x)\n",
    "entry_point": "task_func",
    "test": (
        "import unittest\nclass TestCases(unittest.TestCase):\n    def test_dump(self):\n"
        "        self.assertEqual(task_func([1]), '[1]')\n"
    ),
}
STDIN_CASE = {"input": "1 2\n", "output": "3\n", "testtype": "stdin"}
PACKED = base64.b64encode(zlib.compress(pickle.dumps(json.dumps([STDIN_CASE])))).decode()
LIVECODEBENCH = {
    "question_id": "900_A",
    "question_content": "Add two numbers.",
    "public_test_cases": json.dumps([STDIN_CASE]),
    "private_test_cases": PACKED,
    "starter_code": "",
    "metadata": "{}",
}
FUNCTIONAL = LIVECODEBENCH | {
    "question_id": "901",
    "public_test_cases": json.dumps(
        [{"input": "[1, 2]\n3", "output": "6", "testtype": "functional"}]
    ),
    "private_test_cases": "",
    "starter_code": "class Solution:\n    def total(self, xs: List[int], y: int) -> int:\n",
    "metadata": json.dumps({"func_name": "total"}),
}
BFCL = {
    "id": "simple_python_900",
    "question": [[{"role": "user", "content": "Weather in Bonn?"}]],
    "function": [
        {
            "name": "weather.get",
            "parameters": {"type": "dict", "properties": {"city": {"type": "string"}}},
        }
    ],
    "ground_truth": [{"weather.get": {"city": ["Bonn", ""]}}],
}
HALUEVAL = {
    "knowledge": "The kettle costs EUR 48.",
    "question": "What does it cost?",
    "right_answer": "EUR 48",
    "hallucinated_answer": "EUR 50, as everybody knows",
}
RAGTRUTH = {
    "source_id": "900",
    "task_type": "QA",
    "source_info": {"question": "Price?", "passages": "passage 1: EUR 48."},
    "prompt": "Briefly answer: Price? passage 1: EUR 48.",
}
BENCH = {"question_id": 81, "category": "writing", "turns": ["Write.", "Again."]}
SCHEMA = {"unique_id": "Github_900", "json_schema": '{"type": "object"}'}
OPENAI = {
    "custom_id": "r1",
    "method": "POST",
    "url": "/v1/chat/completions",
    "body": {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "string"}}},
    },
}
RIGHT = {
    "humaneval": (HUMANEVAL, HUMANEVAL["canonical_solution"]),
    "mbpp": (MBPP, MBPP["code"]),
    "bigcodebench": (BIGCODEBENCH, BIGCODEBENCH["canonical_solution"]),
    "livecodebench": (LIVECODEBENCH, "print(sum(map(int, input().split())))"),
    "bfcl": (BFCL, '{"name": "weather_get", "arguments": {}}'),
    "halueval": (HALUEVAL, "It costs EUR 48."),
}


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["import", *map(str, arguments)])


def imported(tmp_path: Path, *rows: Any, options: tuple[object, ...] = ()) -> Any:
    source, to = tmp_path / "rows.jsonl", tmp_path / "workload.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run(source, "--to", to, *options)
    assert result.exit_code == 0, result.output
    return result, workload.read(to)


@pytest.mark.parametrize(
    ("row", "name", "wanted"),
    [
        (HUMANEVAL, "humaneval", ("HumanEval/900", "code", HUMANEVAL["prompt"])),
        (
            MBPP,
            "mbpp",
            (
                "MBPP/900",
                "code",
                (
                    "Write a function to add two numbers.\nThe code must pass these tests:\n"
                    "assert add(1, 2) == 3\nassert set([add(1, 1)]) == {2}"
                ),
            ),
        ),
        (
            BIGCODEBENCH,
            "bigcodebench",
            ("BigCodeBench/900", "code", BIGCODEBENCH["complete_prompt"]),
        ),
        (LIVECODEBENCH, "livecodebench", ("900_A", "code", "Add two numbers.")),
        (BFCL, "bfcl", ("simple_python_900", "tool_call", "Weather in Bonn?")),
        (
            HALUEVAL,
            "halueval",
            (
                "halueval-1",
                "rag",
                (
                    "Answer from this passage.\nThe kettle costs EUR 48.\n\n"
                    "Question: What does it cost?"
                ),
            ),
        ),
        (RAGTRUTH, "ragtruth", ("900", "rag", RAGTRUTH["prompt"])),
        (BENCH, "mt-bench", ("81", "writing", "Write.")),
        (
            SCHEMA,
            "jsonschemabench",
            (
                "Github_900",
                "json",
                'Answer with one JSON value that this JSON Schema allows.\n{"type": "object"}',
            ),
        ),
        (OPENAI, "openai", ("r1", "chat", "Hi")),
        ({"messages": [{"role": "user", "content": "Hi"}]}, "openai", ("request-1", "chat", "Hi")),
    ],
)
def test_a_row_of_each_format_becomes_a_prompt(tmp_path: Path, row, name, wanted) -> None:
    """The format is told by its keys, and `draftgate run` can read what comes out."""
    result, (prompt,) = imported(tmp_path, row)
    assert result.stdout.endswith(f"workload.jsonl: 1 prompt of {name}\n")
    assert (prompt.id, prompt.cohort, prompt.chat[0].text) == wanted


def test_what_an_answer_is_judged_against_comes_along(tmp_path: Path) -> None:
    """Passages, schemas, tools and limits are kept."""
    _, (rag,) = imported(tmp_path, RAGTRUTH)
    assert (rag.context, rag.dims) == (("passage 1: EUR 48.",), {"task": "QA"})
    _, (log,) = imported(tmp_path, OPENAI, options=("--force",))
    assert (log.max_tokens, log.asked_schema) == (9, {"type": "string"})
    _, (call,) = imported(tmp_path, BFCL, options=("--force",))
    (tool,) = call.tools
    assert tool["type"] == "function"
    assert tool["function"]["parameters"]["type"] == "object"


@pytest.mark.parametrize("name", RIGHT)
def test_the_right_answer_is_right_and_another_wrong(tmp_path: Path, name, generation_of) -> None:
    """The imported reference accepts the data set's own solution, and not another answer."""
    row, answer = RIGHT[name]
    if "code" in name or name in ("humaneval", "mbpp"):
        _need_sandbox()
    _, (prompt,) = imported(tmp_path, row)
    assert isinstance(prompt.reference, dict)
    evaluator = TaskCompletion()
    values = [
        evaluator.score(generation_of(answer=text, reference=json.dumps(prompt.reference))).value
        for text in (answer, "pass")
    ]
    assert values == [1.0, 0.0]


def test_a_method_of_a_class_is_called(tmp_path: Path, generation_of) -> None:
    """LiveCodeBench's functional problems call `Solution`, with `List` at hand."""
    _need_sandbox()
    _, (prompt,) = imported(tmp_path, FUNCTIONAL)
    answer = FUNCTIONAL["starter_code"] + "        return sum(xs) + y\n"
    reference = json.dumps(prompt.reference)
    assert TaskCompletion().score(generation_of(answer=answer, reference=reference)).value == 1.0


def _need_sandbox() -> None:
    if (reason := sandbox.why_not()) is not None:
        pytest.skip(reason)


def test_accepted_calls_may_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    """BFCL's questions and answers are joined by id."""
    question = {k: v for k, v in BFCL.items() if k != "ground_truth"}
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"id": BFCL["id"], "ground_truth": BFCL["ground_truth"]}))
    _, (prompt,) = imported(tmp_path, question, options=("--answers", answers))
    assert prompt.reference["calls"] == [
        {"name": "weather.get", "arguments": {"city": ["Bonn", ""]}, "optional": ["city"]}
    ]


def test_gzip_and_lists_are_read(tmp_path: Path) -> None:
    """A gzipped file of lines, and one JSON list."""
    packed, listed = tmp_path / "rows.gz", tmp_path / "rows.json"
    packed.write_bytes(gzip.compress(json.dumps(BENCH).encode()))
    listed.write_text(json.dumps([BENCH, BENCH | {"question_id": 82}]))
    for source, count in ((packed, "1 prompt"), (listed, "2 prompts")):
        result = run(source, "--to", tmp_path / "out.jsonl", "--force")
        assert f"{count} of mt-bench" in result.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"turns": ["a"], "question_id": 1}\n{"turns": 3}', "rows:2: turns: wanted a list of"),
        ('{"turns": ["a"]}', "rows:1: question_id: wanted an id, a text or a whole number"),
        ('{"turns": []}', "rows:1: turns: is empty (read as mt-bench)"),
        ("{half", "rows:1: is not JSON: "),
        ("3", "rows:1: wanted a JSON object, got int"),
        ('{"a": 1}', "rows:1: no known format has the keys a; name one with --format: bfcl, "),
        ("", "rows: holds no row that can be used"),
        ("[1]", "rows: item 1: wanted a JSON object, got int"),
        (json.dumps(BENCH) + "\n" + json.dumps(BENCH), "rows:2: id: '81' was used by an earlier"),
        (json.dumps(MBPP | {"test_list": 3}), "rows:1: test_list: wanted a list of texts, got 3"),
        (
            json.dumps(LIVECODEBENCH | {"private_test_cases": "AAAA"}),
            "rows:1: private_test_cases: neither JSON nor packed JSON",
        ),
        (
            json.dumps(BFCL | {"question": [[], []]}),
            "rows:1: question: wanted one turn, a list with one list of messages",
        ),
    ],
)
def test_a_bad_row_is_named_and_nothing_written(tmp_path: Path, text, words) -> None:
    """File, line and key stand in one line, with exit code 2."""
    source, to = tmp_path / "rows", tmp_path / "out.jsonl"
    source.write_text(text)
    result = run(source, "--to", to)
    assert (result.exit_code, to.exists()) == (2, False)
    assert f"error: {tmp_path}/{words}" in result.stderr


def test_a_strangers_pickle_makes_nothing(tmp_path: Path) -> None:
    """A packed case that would call a function is refused unread."""

    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "owned",))

    packed = base64.b64encode(zlib.compress(pickle.dumps(Evil()))).decode()
    source = tmp_path / "rows"
    source.write_text(json.dumps(LIVECODEBENCH | {"private_test_cases": packed}))
    result = run(source, "--to", tmp_path / "out.jsonl")
    assert result.exit_code == 2
    assert "private_test_cases: neither JSON nor packed JSON" in result.stderr
    assert not (tmp_path / "owned").exists()


def test_bad_rows_may_be_left_out(tmp_path: Path) -> None:
    """With --skip-bad the rest is written, and what was left out is said."""
    source, to = tmp_path / "rows", tmp_path / "out.jsonl"
    source.write_text(json.dumps(BENCH) + "\n{half\n" + json.dumps(BENCH | {"question_id": 82}))
    result = run(source, "--to", to, "--skip-bad")
    assert result.stdout == f"{to}: 2 prompts of mt-bench, 1 left out\n"
    assert result.stderr.startswith(f"left out: {source}:2: is not JSON: ")
    again = run(source, "--to", to)
    assert again.exit_code == 2
    assert again.stderr == f"error: {to}: exists; give --force to replace it\n"


ASKED = {"role": "user", "content": "Book me a flight."}
CALL = {"id": "1", "type": "function", "function": {"name": "book", "arguments": "{}"}}
TAU = {
    "task_id": 3,
    "trial": 1,
    "reward": 1.0,
    "traj": [
        {"role": "system", "content": "Be brief."},
        ASKED,
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "1", "name": "book", "content": "done"},
        {"role": "assistant", "content": "Booked."},
        {"role": "user", "content": "###STOP###"},
    ],
}
SHAREGPT = {
    "id": "q",
    "conversations": [
        {"from": "gpt", "value": "Welcome."},
        {"from": "human", "value": "Hi"},
        {"from": "gpt", "value": "Hello"},
        {"from": "human", "value": "Bye"},
        {"from": "gpt", "value": "See you"},
    ],
}


def test_a_trajectory_is_a_session(tmp_path: Path) -> None:
    """Each answer of the agent is a turn, after users and after tools; the end is left out."""
    result, prompts = imported(tmp_path, TAU)
    assert "tau-bench" in result.output
    assert [(p.id, p.session, p.turn) for p in prompts] == [
        ("tau-3-1/1", "tau-3-1", 1),
        ("tau-3-1/2", "tau-3-1", 2),
    ]
    assert [m.role for m in prompts[1].chat] == ["system", "user", "assistant", "tool"]
    assert prompts[1].dims == {"task": "3"}
    assert prompts[1].chat[2].tool_calls[0].function.name == "book"


def test_a_conversation_is_a_session(tmp_path: Path) -> None:
    _, prompts = imported(tmp_path, SHAREGPT)
    assert [[(m.role, m.text) for m in p.chat][-1] for p in prompts] == [
        ("user", "Hi"),
        ("user", "Bye"),
    ]
    assert prompts[0].chat[0].text == "Welcome."


def test_all_turns_of_a_question_are_a_session(tmp_path: Path) -> None:
    """They have no answers, which only own histories do without."""
    _, prompts = imported(tmp_path, BENCH, options=("--format", "mt-bench-sessions"))
    assert [p.chat[-1].text for p in prompts] == BENCH["turns"]
    assert len(sessions.read(tmp_path / "workload.jsonl", own_history=True)) == 1
    with pytest.raises(WorkloadError, match="lacks the `answer`"):
        sessions.read(tmp_path / "workload.jsonl", own_history=False)


def test_a_log_s_sessions_are_kept(tmp_path: Path) -> None:
    """By its own name or its metadata's, in the order of the file."""
    answered = [ASKED, {"role": "assistant", "content": "Where to?"}, ASKED]
    rows = [
        {"id": "a", "conversation_id": 7, "messages": [ASKED]},
        {"id": "b", "request": {"messages": [ASKED], "metadata": {"session_id": "x"}}},
        {"id": "c", "conversation_id": 7, "delay": 2500, "messages": answered},
        {"id": "d", "messages": [ASKED]},
    ]
    _, prompts = imported(tmp_path, *rows)
    assert [(p.id, p.session, p.think_s) for p in prompts] == [
        ("a", "7", None),
        ("b", "x", None),
        ("c", "7", 2.5),
        ("d", None, None),
    ]
    found = sessions.read(tmp_path / "workload.jsonl", own_history=True)
    assert [len(one) for one in found] == [2, 1, 1]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**TAU, "traj": TAU["traj"][:2]}, "traj: holds no answer to a user"),
        (
            {**TAU, "traj": [*TAU["traj"][:3], TAU["traj"][4]]},
            "traj.3: a second answer in a row",
        ),
        ({"conversations": [{"value": "x"}]}, "from: required key is missing"),
    ],
)
def test_a_session_that_cannot_be_made_is_named(
    tmp_path: Path, row: dict[str, Any], message: str
) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps(row))
    result = run(source, "--to", tmp_path / "w.jsonl")
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())

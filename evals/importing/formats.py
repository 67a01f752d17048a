"""The known formats, each with the keys that identify its rows."""

from collections.abc import Callable
from typing import NamedTuple

from evals.importing import chat, code, rag, sessions, tool_calls
from evals.importing.row import JsonObject, Line


class Layout(NamedTuple):
    """The layout of a data set's rows."""

    keys: frozenset[str]
    """Keys that every row has, and that rows of earlier formats do not all have."""
    convert: Callable[[JsonObject, int], Line]
    """Converts a row, given its number, to a workload's line; raises `RowError`."""


def _plain(convert: Callable[[JsonObject], Line]) -> Callable[[JsonObject, int], Line]:
    return lambda row, _: convert(row)


# The order matters: the first format whose keys a row has is taken.
FORMATS: dict[str, Layout] = {
    "bigcodebench": Layout(frozenset({"complete_prompt", "test"}), _plain(code.bigcodebench)),
    "livecodebench": Layout(
        frozenset({"question_content", "public_test_cases"}), _plain(code.livecodebench)
    ),
    "humaneval": Layout(frozenset({"prompt", "entry_point", "test"}), _plain(code.humaneval)),
    "mbpp": Layout(frozenset({"test_list"}), _plain(code.mbpp)),
    "bfcl": Layout(frozenset({"question", "function"}), _plain(tool_calls.bfcl)),
    "ragtruth": Layout(frozenset({"source_id", "source_info", "prompt"}), _plain(rag.ragtruth)),
    "halueval": Layout(frozenset({"knowledge", "question", "right_answer"}), rag.halueval),
    "tau-bench": Layout(frozenset({"traj"}), _plain(sessions.tau_bench)),
    "sharegpt": Layout(frozenset({"conversations"}), sessions.sharegpt),
    "mt-bench": Layout(frozenset({"turns"}), _plain(chat.bench)),
    "jsonschemabench": Layout(frozenset({"json_schema"}), _plain(chat.json_schema_bench)),
    "openai": Layout(frozenset({"messages"}), chat.openai_log),
}
FORMATS["spec-bench"] = FORMATS["mt-bench"]
FORMATS["mt-bench-sessions"] = Layout(frozenset({"turns"}), _plain(sessions.bench))


def detect(row: JsonObject) -> str | None:
    """Return the name of a row's format, `None` if no format's keys match."""
    keys = set(row)
    for name in ("body", "request"):
        if isinstance(row.get(name), dict):
            keys |= set(row[name])
    return next((name for name, known in FORMATS.items() if known.keys <= keys), None)

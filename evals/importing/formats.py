"""The known formats, each with the keys that identify its rows."""

from collections.abc import Callable
from typing import NamedTuple

from evals.importing import chat, code, rag, tool_calls
from evals.importing.row import JsonObject, Line


class Format(NamedTuple):
    """The format of a data set."""

    keys: frozenset[str]
    """Keys that every row has, and that rows of earlier formats do not all have."""
    convert: Callable[[JsonObject, int], Line]
    """Converts a row, given its number, to a workload's line; raises `RowError`."""


def _plain(convert: Callable[[JsonObject], Line]) -> Callable[[JsonObject, int], Line]:
    return lambda row, _: convert(row)


# The order matters: the first format whose keys a row has is taken.
FORMATS: dict[str, Format] = {
    "bigcodebench": Format(frozenset({"complete_prompt", "test"}), _plain(code.bigcodebench)),
    "livecodebench": Format(
        frozenset({"question_content", "public_test_cases"}), _plain(code.livecodebench)
    ),
    "humaneval": Format(frozenset({"prompt", "entry_point", "test"}), _plain(code.humaneval)),
    "mbpp": Format(frozenset({"test_list"}), _plain(code.mbpp)),
    "bfcl": Format(frozenset({"question", "function"}), _plain(tool_calls.bfcl)),
    "ragtruth": Format(frozenset({"source_id", "source_info", "prompt"}), _plain(rag.ragtruth)),
    "halueval": Format(frozenset({"knowledge", "question", "right_answer"}), rag.halueval),
    "mt-bench": Format(frozenset({"turns"}), _plain(chat.bench)),
    "jsonschemabench": Format(frozenset({"json_schema"}), _plain(chat.json_schema_bench)),
    "openai": Format(frozenset({"messages"}), chat.openai_log),
}
FORMATS["spec-bench"] = FORMATS["mt-bench"]


def detect(row: JsonObject) -> str | None:
    """Return the name of a row's format, `None` if no format's keys match."""
    keys = set(row)
    for name in ("body", "request"):
        if isinstance(row.get(name), dict):
            keys |= set(row[name])
    return next((name for name, known in FORMATS.items() if known.keys <= keys), None)

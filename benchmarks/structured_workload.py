"""Make the shipped workload `structured` from public data.

    python benchmarks/structured_workload.py BFCL.jsonl.gz MT_BENCH.jsonl.gz

The first file has single-turn questions of the Berkeley Function Calling Leaderboard with functions
and accepted calls, the second MT-Bench's questions. Rows are taken at even distances, so that the
same files always give the same workload.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import jsonschema_rs

from evals.importing.chat import bench
from evals.importing.row import JsonObject, Line
from evals.importing.tool_calls import bfcl

EACH = 64
_ONE_CALL = ("simple_python", "live_simple")
_CALLS = ("multiple", "parallel", "parallel_multiple")
_MOST_CHARACTERS = 2_500


def main() -> None:
    """Write the workload to standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bfcl", type=Path)
    parser.add_argument("mt_bench", type=Path)
    given = parser.parse_args()
    questions = [bfcl(row) for row in _rows(given.bfcl)]
    chats = [_chat(bench(row)) for row in _rows(given.mt_bench)]
    forms = [line for q in _usable(questions, _ONE_CALL) if (line := _form(q)) is not None]
    calls = [line | {"tool_choice": "required"} for line in _usable(questions, _CALLS)]
    for some in zip(*map(_spread, (forms, calls, chats)), strict=False):
        for line in some:
            sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")


def _rows(path: Path) -> Iterator[JsonObject]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _usable(lines: Sequence[Line], categories: Sequence[str]) -> Iterator[Line]:
    """Yield the short lines of the categories whose functions have valid schemas."""
    for line in lines:
        if line["dims"]["category"] in categories and len(json.dumps(line)) < _MOST_CHARACTERS:
            try:
                for tool in line["tools"]:
                    jsonschema_rs.validator_for(tool["function"]["parameters"], offline=True)
            except ValueError:
                continue
            yield line


def _form(line: Line) -> Line | None:
    """Return the question as one for a function's arguments in JSON; None if no value is sure."""
    function, call = line["tools"][0]["function"], line["reference"]["calls"][0]
    properties = function["parameters"].get("properties", {})
    schema = {
        "type": "object",
        "properties": properties,
        "required": function["parameters"].get("required", []),
        "additionalProperties": False,
    }
    sure = {
        f"/{name}": values[0]
        for name, values in call["arguments"].items()
        if name in schema["required"] and len(values) == 1 and "$fields" not in json.dumps(values)
    }
    asked = f"Answer with one JSON object: the arguments of {function['name']}. "
    if not sure:
        return None
    return {
        "id": f"json-{line['id']}",
        "cohort": "json",
        "messages": [
            {"role": "system", "content": asked + function["description"]},
            *line["messages"],
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": function["name"], "schema": schema},
        },
        "reference": {"kind": "json", "required": sure},
        "dims": line["dims"],
    }


def _chat(line: Line) -> Line:
    return line | {"cohort": "chat", "dims": {"category": line["cohort"]}}


def _spread(lines: Sequence[Any]) -> list[Any]:  # Any: lines
    """Return at most `EACH` lines at even distances."""
    count = min(EACH, len(lines))
    return [lines[at * len(lines) // count] for at in range(count)]


if __name__ == "__main__":
    main()

"""Agreement of the task-completion graders with the official ones, and recall of planted faults.

    python benchmarks/task_graders.py --data FOLDER [--bfcl bfcl_eval.whl] [--limit N]

FOLDER contains task/ and schema/ with the public data sets as gzipped JSON lines. For BFCL the
official checker is loaded from its wheel (`pip download --no-deps bfcl-eval`), without its
dependencies. For HumanEval and MBPP the official grader is a script: program, tests, and the exit
status. For JSON Schema it is the suite's own verdict.
"""

import argparse
import gzip
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.graders import agent, bfcl, code, schema


def rows(path: Path, limit: int | None) -> list[dict[str, Any]]:
    """Read gzipped JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    return found[:limit]


def main() -> None:
    """Run the requested measurements, and print one JSON document last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--bfcl", type=Path, help="the official checker's wheel")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--only", choices=["bfcl", "humaneval", "mbpp", "schema", "tau"])
    given = parser.parse_args()
    if given.data is None:
        print(json.dumps({"skipped": "give --data, the folder of the public data sets"}))
        return
    results: dict[str, Any] = {}
    for name, path, measure in parts(given):
        if given.only in (None, name):
            started = time.process_time()
            results[name] = measure(rows(given.data / path, given.limit))
            results[name]["cpu_s"] = round(time.process_time() - started, 1)
            print(name, json.dumps(results[name], indent=1), flush=True)
    print(json.dumps(results))


def parts(given: argparse.Namespace) -> Iterator[tuple[str, str, Any]]:
    """Yield name, file and measurement."""
    yield "schema", "schema/json_schema_test_suite.jsonl.gz", schema.measure
    yield "bfcl", "task/bfcl_v4.jsonl.gz", lambda found: bfcl.measure(found, given.bfcl)
    yield "tau", "task/tau_airline_gpt4o_trajectories.jsonl.gz", agent.measure
    yield "humaneval", "task/humaneval.jsonl.gz", code.humaneval
    yield "mbpp", "task/mbpp.jsonl.gz", code.mbpp


if __name__ == "__main__":
    main()

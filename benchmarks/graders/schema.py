"""Schema validity against the JSON Schema Test Suite's own verdicts."""

import json
import time
from collections import Counter
from dataclasses import replace
from typing import Any

from benchmarks.graders.generation import generation, text
from evals.evaluators import SchemaValidity

_DRAFTS = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def measure(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Validate every instance as an answer; schemas that need other documents stay unscored."""
    evaluator, found = SchemaValidity(), Counter[str]()
    disagreements, took_s = list[str](), 0.0
    for row in rows:
        schema = row["schema"]
        if isinstance(schema, dict):
            schema = {"$schema": _DRAFTS[row["draft"]]} | schema
        for test in row["tests"]:
            given = generation(None, text(json.dumps(test["data"])))
            assert given.content is not None
            content = replace(given.content, output_schema=json.dumps(schema))
            started = time.perf_counter()
            score = evaluator.score(replace(given, content=content))
            took_s += time.perf_counter() - started
            assert score is not None
            kind = f"{row['draft']} {_part(row)}"
            if score.value is None:
                found[f"{kind}: unscored"] += 1
                disagreements.append(f"{row['id']}: {score.unscored_reason}")
            elif (score.value == 1.0) == test["valid"]:
                found[f"{kind}: agrees"] += 1
            else:
                found[f"{kind}: disagrees"] += 1
                if _part(row) != "optional formats":
                    disagreements.append(f"{row['id']}: {test['description']}")
    counts = dict(sorted(found.items()))
    return counts | {
        "ms_an_answer": round(1000 * took_s / sum(found.values()), 4),
        "not_agreeing": sorted(set(disagreements)),
    }


def _part(row: dict[str, Any]) -> str:
    """Name the suite's part: `format` is separate because 2020-12 makes it an annotation."""
    if "optional/format/" in row["id"]:
        return "optional formats"
    return "optional" if row["optional"] else "required"

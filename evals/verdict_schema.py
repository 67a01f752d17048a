"""The JSON schema of a verdict's document, made from the contract's records.

python -m evals.verdict_schema > docs/verdict.schema.json
"""

import json
import sys

from pydantic import TypeAdapter

from collector.contract import Verdict


def verdict_schema() -> str:
    """Return the schema (JSON Schema 2020-12) as text with sorted keys."""
    schema = TypeAdapter(Verdict).json_schema(mode="serialization")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(verdict_schema())

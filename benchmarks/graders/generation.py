"""Answers as generation records."""

import json
from typing import Any

from collector.contract import Content, Generation


def generation(
    reference: Any, output: list[dict[str, Any]], before: list[dict[str, Any]] | None = None
) -> Generation:
    """Return a generation that answers these messages with these parts."""
    content = Content(
        input_messages=json.dumps(before or []),
        output_messages=json.dumps([{"role": "assistant", "parts": output}]),
        reference=json.dumps(reference),
    )
    return Generation(
        trace_id="1" * 32, span_id="1" * 16, start_unix_ns=0, end_unix_ns=1, content=content
    )


def text(answer: str) -> list[dict[str, Any]]:
    """Return the parts of a text answer."""
    return [{"type": "text", "content": answer}]

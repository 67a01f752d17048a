"""Engines' answers: recorded from a real server if one could run, otherwise written by hand."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine_adapter.engines.answer import Answer, AnswerReader

FOLDER = Path(__file__).parents[1] / "engine_adapter" / "engines" / "recorded"


def document(name: str) -> Any:
    """Return a recorded JSON document, such as `vllm/draft.json`."""
    return json.loads((FOLDER / name).read_text())


def exposition(name: str) -> str:
    """Return a recorded `/metrics`."""
    return (FOLDER / name).read_text()


def events(name: str) -> Iterator[Any]:
    """Yield the events of a recorded stream, without its end mark."""
    for line in (FOLDER / name).read_text().splitlines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def answered(reader: AnswerReader, *documents: Any) -> Answer:
    """Return what a reader makes of an answer's documents."""
    for one in documents:
        reader.take(one)
    return reader.answer()


def chat(text: str, *, finish: str = "stop", **besides: Any) -> dict[str, Any]:
    """Return a whole answer of a chat route, with the engine's additional fields."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": finish,
        **besides.pop("choice", {}),
    }
    usage = {"prompt_tokens": 12, "completion_tokens": 40, "total_tokens": 52}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "served",
        "choices": [choice],
        "usage": usage,
        **besides,
    }


SGLANG_0_5_23 = {
    "spec_accept_rate": 0.5,
    "spec_accept_length": 2.5,
    "spec_num_correct_drafts": 24,
    "spec_num_proposed_drafts": 48,
    "spec_verify_ct": 16,
    "spec_correct_drafts_histogram": [4, 4, 4, 4],
}
SGLANG_0_5_18 = {
    "spec_accept_rate": 0.5,
    "spec_accepted_drafts": 24,
    "spec_proposed_drafts": 48,
    "spec_verify_ct": 16,
    "spec_accept_histogram": [4, 4, 4, 4],
}
SGLANG_0_5_10 = {
    "spec_accept_rate": 0.5,
    "spec_accept_token_num": 24,
    "spec_draft_token_num": 48,
    "spec_verify_ct": 16,
}
SGLANG_NOTHING_MEASURED = {
    "spec_accept_rate": 0.0,
    "spec_accept_length": 0.0,
    "spec_num_correct_drafts": 0,
    "spec_num_proposed_drafts": 0,
    "spec_verify_ct": 0,
    "spec_correct_drafts_histogram": [],
}
TGI_HEADERS = {
    "X-Compute-Time": "0.52",
    "X-Total-Time": "530",
    "X-Validation-Time": "1",
    "X-Queue-Time": "12",
    "X-Inference-Time": "517",
    "X-Time-Per-Token": "12",
    "X-Prompt-Tokens": "12",
    "X-Generated-Tokens": "40",
}

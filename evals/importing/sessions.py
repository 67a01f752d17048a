"""Whole sessions: tau-bench's trajectories, ShareGPT's conversations, MT-Bench's two turns."""

from collections.abc import Sequence
from typing import Any

from evals.importing.chat import message
from evals.importing.row import JsonObject, Line, RowError, identity, objects, text, texts

_ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant"}
"""ShareGPT's senders that the API calls otherwise."""


def tau_bench(row: JsonObject) -> Line:
    """Convert an agent's trajectory: each of its answers, and the turn before it.

    Rows hold no tools: give them under the rollout file's `sampling`.
    """
    numbers = [identity(row, key) for key in ("task_id", "trial") if key in row]
    id_ = identity(row, "id") if "id" in row else f"tau-{'-'.join(numbers)}"
    line = _session(id_, "agent", [message(one) for one in objects(row, "traj")], "traj")
    return line | {"dims": {"task": numbers[0]}} if "task_id" in row else line


def sharegpt(row: JsonObject, number: int) -> Line:
    """Convert a conversation of a person and an assistant."""
    told = [
        {"role": _ROLES.get(sender := text(one, "from"), sender), "content": text(one, "value")}
        for one in objects(row, "conversations")
    ]
    id_ = identity(row, "id") if "id" in row else f"sharegpt-{number}"
    return _session(id_, "chat", told, "conversations")


def bench(row: JsonObject) -> Line:
    """Convert all turns of a question; as they have no answers, replay with `history: own`."""
    turns = texts(row, "turns")
    if not turns:
        raise RowError("turns: is empty")
    category = row.get("category")
    cohort = category if isinstance(category, str) and category else "chat"
    return {"id": identity(row, "question_id", "id"), "cohort": cohort, "turns": turns}


def _session(id_: str, cohort: str, told: Sequence[dict[str, Any]], key: str) -> Line:
    """Return a session of the messages; those after the last answer are left out."""
    first = next((n for n, one in enumerate(told) if one["role"] == "user"), len(told))
    turns: list[JsonObject] = []
    asked: list[JsonObject] = []
    for number, one in enumerate(told[first:], start=first):
        if one["role"] != "assistant":
            asked.append(one)
            continue
        if not asked:
            raise RowError(f"{key}.{number}: a second answer in a row")
        turns.append({"messages": asked, "answer": one})
        asked = []
    if not turns:
        raise RowError(f"{key}: holds no answer to a user")
    before = {"messages": list(told[:first])} if first else {}
    return {"id": id_, "cohort": cohort, **before, "turns": turns}

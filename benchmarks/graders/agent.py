"""Agents' actions against the verified rewards of tau-bench's airline trajectories."""

import json
from collections import Counter
from typing import Any

from benchmarks.graders.generation import generation, text
from evals.evaluators import TaskCompletion

CHANGING = [
    "book_reservation",
    "cancel_reservation",
    "send_certificate",
    "update_reservation_baggages",
    "update_reservation_flights",
    "update_reservation_passengers",
]


def measure(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Judge each trajectory by its state-changing calls; the reward is the ground truth."""
    evaluator, found = TaskCompletion(), Counter[str]()
    for row in rows:
        wanted = [{"name": a["name"], "arguments": a["kwargs"]} for a in row["task"]["actions"]]
        reference = {"kind": "actions", "calls": wanted, "state_changing": CHANGING}
        given = generation(reference, text("Done."), [_message(m) for m in row["traj"]])
        score = evaluator.score(given)
        assert score is not None
        ours, truth = score.value == 1.0, row["reward"] == 1.0
        found[f"{'completed' if truth else 'failed'}, judged {'right' if ours else 'wrong'}"] += 1
    right = found["completed, judged right"] + found["failed, judged wrong"]
    return dict(sorted(found.items())) | {"accuracy": round(right / len(rows), 4)}


def _message(message: dict[str, Any]) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if message["role"] == "tool":
        id_ = message["tool_call_id"]
        parts = [{"type": "tool_call_response", "id": id_, "response": message["content"]}]
        return {"role": "tool", "parts": parts}
    if message.get("content"):
        parts = text(message["content"])
    for call in message.get("tool_calls") or []:
        function = call["function"]
        arguments = json.loads(function["arguments"])
        part = {"type": "tool_call", "id": call["id"], "name": function["name"]}
        parts.append(part | {"arguments": arguments})
    return {"role": message["role"], "parts": parts}

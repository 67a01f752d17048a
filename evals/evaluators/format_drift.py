"""Whether an answer is whole and clean, as errors of engines leave it not to be."""

import json
from collections.abc import Set as AbstractSet
from typing import ClassVar

from collector.contract import Generation, Score
from evals.evaluators.answers import answer_text
from evals.evaluators.base import Need, scored
from evals.evaluators.conversation import answered_calls
from evals.evaluators.drift import language, leaks, loops, truncation


class FormatDrift:
    """1 where nothing is wrong with the answer's form, else 0; the label names what is.

    `empty`, `truncated`, `template_leak`, `stop_leak`, `broken_characters`, `loop`,
    `other_script`. Applies to every answer whose text was recorded. It says nothing about whether
    the answer is right.
    """

    name = "format-drift"
    version = "1"
    metric = "format_intact"
    needs: ClassVar[AbstractSet[Need]] = frozenset()

    def score(self, generation: Generation) -> Score | None:
        """Look for each failure; one that the prompt itself shows or asks for is none."""
        text = answer_text(generation)
        if text is None:
            return None
        found = self._found(generation, text)
        if not found:
            return scored(self, generation, 1.0, label="intact")
        words = "; ".join(f"{name}: {what}" for name, what in found.items())
        return scored(self, generation, 0.0, label=" ".join(found), explanation=words)

    def close(self) -> None:
        """Release nothing."""

    def _found(self, generation: Generation, text: str) -> dict[str, str]:
        if not text.strip():
            return {} if answered_calls(generation) else {"empty": "no text and no tool call"}
        prompt = _prompt(generation)
        checks = {
            "truncated": truncation.truncated(text, generation.finish_reasons or ()),
            "template_leak": leaks.template(text, prompt),
            "stop_leak": leaks.stop_sequence(text, generation.stop_sequences or ()),
            "broken_characters": leaks.broken_characters(text, prompt),
            "loop": loops.loop(text),
            "other_script": language.switched_script(text, prompt),
        }
        return {name: what for name, what in checks.items() if what is not None}


def _prompt(generation: Generation) -> str:
    """Return all text that went in, passages included."""
    content = generation.content
    if content is None:
        return ""
    texts = list(content.context or ())
    try:
        messages = json.loads(content.input_messages or "[]")
    except (ValueError, RecursionError):
        messages = []
    for message in messages if isinstance(messages, list) else []:
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, dict):
                texts += [v for v in part.values() if isinstance(v, str)]
    return "\n".join(texts)

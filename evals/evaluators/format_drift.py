"""Check an answer for damage that engine errors cause: truncation, leaks, loops and the like."""

import json
from collections.abc import Set as AbstractSet
from typing import ClassVar

from collector.contract import Generation, Score
from evals.evaluators.answers import answer_text
from evals.evaluators.base import Need, scored
from evals.evaluators.conversation import answered_calls
from evals.evaluators.drift import language, leaks, loops, truncation


class FormatDrift:
    """1 if the answer's form is intact, else 0; the label names every failure found.

    Failures: `empty`, `truncated`, `template_leak`, `stop_leak`, `broken_characters`, `loop`,
    `other_script`. Applies to every answer whose text was recorded. Does not judge whether the
    answer is right.
    """

    name = "format-drift"
    version = "1"
    metric = "format_intact"
    needs: ClassVar[AbstractSet[Need]] = frozenset()

    def score(self, generation: Generation) -> Score | None:
        """Check for each failure; something that the prompt shows or asks for is no failure."""
        text = answer_text(generation)
        if text is None:
            return None
        found = self._failures(generation, text)
        if not found:
            return scored(self, generation, 1.0, label="intact")
        explanation = "; ".join(f"{name}: {detail}" for name, detail in found.items())
        return scored(self, generation, 0.0, label=" ".join(found), explanation=explanation)

    def close(self) -> None:
        """Release nothing."""

    def _failures(self, generation: Generation, text: str) -> dict[str, str]:
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
        return {name: detail for name, detail in checks.items() if detail is not None}


def _prompt(generation: Generation) -> str:
    """Return all text of the prompt, passages included."""
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

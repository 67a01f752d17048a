"""The request's `tool_choice`, and whether the answer's calls keep to it."""

import json
from dataclasses import dataclass

from collector.contract import Generation
from evals.evaluators.conversation import answered_calls


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The request's demand on tool calls."""

    mode: str = "auto"
    """`auto`, `required`, `none`, or `function` if one tool is named."""
    name: str | None = None

    @classmethod
    def of(cls, recorded: str | None) -> "ToolChoice":
        """Read the recorded choice: a word, or JSON that names a tool; else `auto`."""
        if recorded in ("required", "none", "any"):
            return cls("required" if recorded == "any" else recorded)
        try:
            named = json.loads(recorded or "null")
        except (ValueError, RecursionError):
            return cls()
        inner = named.get("function", named) if isinstance(named, dict) else None
        name = inner.get("name") if isinstance(inner, dict) else None
        return cls("function", name) if isinstance(name, str) else cls()

    @property
    def asks_for_call(self) -> bool:
        """Whether an answer without calls breaks it."""
        return self.mode in ("required", "function")

    @property
    def unmet(self) -> str:
        """Description of an answer without calls."""
        wanted = "a tool call" if self.name is None else f"a call of {self.name}"
        return f"tool_choice asks for {wanted}, and the answer makes none"

    def problem(self, generation: Generation) -> str | None:
        """Return how the answer's calls break it, if they do."""
        called = [call.name for call in answered_calls(generation)]
        if self.mode == "none" and called:
            return f"tool_choice is none, and {called[0]} is called"
        others = [name for name in called if name != self.name] if self.name else []
        return f"tool_choice asks for {self.name}, and {others[0]} is called" if others else None

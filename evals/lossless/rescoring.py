"""Run the baseline's model in this process, with transformers on the CPU, to rescore answers."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evals.errors import RescoringError
from evals.lossless.greedy import Rescorer


class TextRescorer(Rescorer, Protocol):
    """A rescorer that also tokenizes texts."""

    end_token: int
    vocabulary: int
    """Number of its token ids."""

    def tokens(self, text: str) -> list[int]:
        """Return an answer's tokens, without special tokens."""

    def prompt_tokens(self, input_messages: str | None) -> list[int] | None:
        """Return the tokens of a recorded prompt; None if it was not recorded."""

    def shown(self, token: int) -> str:
        """Return a token in readable form."""


class TransformersRescorer:
    """Teacher forcing with a model from a folder, or by a name that transformers resolves."""

    def __init__(self, model: str | Path) -> None:
        """Load the model; raises `RescoringError`."""
        try:
            # Slow to import, and in an optional extra.
            import torch  # noqa: PLC0415
            from transformers import (  # noqa: PLC0415
                AutoModelForCausalLM,
                AutoTokenizer,
            )
        except ImportError as exc:
            raise RescoringError(
                f"--rescore {model}: wanted torch and transformers: install draftgate[transformers]"
            ) from exc
        self._torch: Any = torch  # Any: transformers is untyped here
        try:
            self._model: Any = AutoModelForCausalLM.from_pretrained(str(model))
            self._tokenizer: Any = AutoTokenizer.from_pretrained(str(model))
        except (OSError, ValueError) as exc:
            first = str(exc).splitlines()[0]
            raise RescoringError(f"--rescore {model}: cannot be loaded ({first})") from exc
        self._model.eval()  # type: ignore[no-untyped-call]
        self.dtype = str(self._model.dtype).removeprefix("torch.")
        ends = self._model.generation_config.eos_token_id
        self.vocabulary = int(self._model.config.vocab_size)
        self.end_token = int(ends[0] if isinstance(ends, list) else ends)

    def draft(self, model: str | Path) -> "TransformersRescorer":
        """Load the draft model; raises `RescoringError`, also if its tokenizer is another."""
        found = TransformersRescorer(model)
        if found._tokenizer.get_vocab() != self._tokenizer.get_vocab():
            raise RescoringError(
                f"--rescore-draft {model}: its tokenizer is not that of the baseline's model"
            )
        return found

    def tokens(self, text: str) -> list[int]:
        """Return an answer's tokens, without special tokens."""
        return [int(t) for t in self._tokenizer(text, add_special_tokens=False)["input_ids"]]

    def prompt_tokens(self, input_messages: str | None) -> list[int] | None:
        """Return the tokens of a recorded prompt; None if it was not recorded."""
        messages = _messages(input_messages)
        if messages is None:
            return None
        encoded = self._tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=True
        )
        return [int(t) for t in encoded["input_ids"]]

    def shown(self, token: int) -> str:
        """Return a token in readable form."""
        return "the end" if token == self.end_token else repr(self._tokenizer.decode([token]))

    def next_logits(self, tokens: Sequence[int]) -> NDArray[np.float64]:
        """Return the logits of the token after these."""
        with self._torch.inference_mode():
            found = self._model(self._torch.tensor([list(tokens)])).logits[0, -1]
        return np.asarray(found.to(self._torch.float64).numpy())

    def answer_logits(self, prompt: list[int], answer: list[int]) -> NDArray[np.float64]:
        """Return the logits at each of the answer's tokens, one row per token."""
        given = [*prompt, *answer[:-1]]
        with self._torch.inference_mode():
            found = self._model(self._torch.tensor([given])).logits[0, len(prompt) - 1 :]
        return np.asarray(found.to(self._torch.float64).numpy())


def _messages(input_messages: str | None) -> list[dict[str, str]] | None:
    """Convert `gen_ai.input.messages` to a chat template's messages; None if unreadable."""
    if input_messages is None:
        return None
    try:
        found = json.loads(input_messages)
        return [
            {"role": one["role"], "content": "".join(part["content"] for part in one["parts"])}
            for one in found
        ]
    except (ValueError, TypeError, KeyError):
        return None

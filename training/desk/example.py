"""One exchange of the support desk, and the rule that separates held-out from training ones."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Cohort = Literal["rag", "tool_call", "code", "chat"]
Split = Literal["train", "heldout"]

COHORTS: tuple[Cohort, ...] = get_args(Cohort)
SPLITS: tuple[Split, ...] = get_args(Split)

_HELDOUT_ONE_IN = 8


@dataclass(frozen=True, slots=True)
class Example:
    """A user message, its correct answer, and the data to score another answer.

    `slots` are the facts in the answer; with the topic they determine it. `reference` is the
    scorer's reference in the workload file; `context` holds the passages of a `rag` prompt, and
    `schema` the JSON Schema of a `tool_call` answer.
    """

    cohort: Cohort
    topic: str
    prompt: str
    answer: str
    slots: tuple[str, ...]
    reference: Mapping[str, object]
    context: tuple[str, ...] = ()
    schema: Mapping[str, object] | None = None

    @property
    def split(self) -> Split:
        """Return the split of these slots: one hash class in eight is held out.

        The class depends on the slots alone, so no seed, order or amount of training text can put
        a held-out combination into training.
        """
        key = "\x1f".join((self.cohort, self.topic, *self.slots)).encode()
        held_out = hashlib.sha256(key).digest()[0] % _HELDOUT_ONE_IN == 0
        return "heldout" if held_out else "train"

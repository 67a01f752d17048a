"""Find the prompts whose drafts were accepted least, and write them with their answers."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from collector.client import Client
from collector.contract import Arm
from evals.draft_data.conversation import NoConversationError, conversation, tools
from evals.errors import SourceError, WriteError

_COUNTED = (
    *("prompt_id", "error_type", "quality", "fallback"),
    *("spec_draft_tokens", "spec_accepted_tokens", "spec_lossless"),
)
_Row = Mapping[str, Any]  # Any: columns' own types


class HardPrompt(NamedTuple):
    """A prompt with its acceptance over all repeats."""

    id: str
    accepted: int
    drafted: int

    @property
    def rate(self) -> float:
        """Accepted by drafted tokens."""
        return self.accepted / self.drafted


class Written(NamedTuple):
    """The prompts of an export, and how many were left out."""

    prompts: tuple[HardPrompt, ...]
    """In the order of the file: least accepted first."""
    left_out: Mapping[str, int]
    """Numbers of prompts by why they were left out."""


def hardest(
    client: Client, rollout: str, *, cohort: str | None, min_drafts: int
) -> tuple[HardPrompt, ...]:
    """Return the candidate's prompts, least accepted first.

    Only answers with usable counts count, that succeeded, that are the candidate's own and
    lossless: another's answer is no text of the target. A prompt with fewer than `min_drafts`
    draft tokens says too little.
    """
    accepted, drafted = Counter[str](), Counter[str]()
    for row in _rows(client, rollout, cohort, fields=_COUNTED):
        if _is_usable(row):
            accepted[row["prompt_id"]] += row["spec_accepted_tokens"]
            drafted[row["prompt_id"]] += row["spec_draft_tokens"]
    found = [HardPrompt(id_, accepted[id_], n) for id_, n in drafted.items() if n >= min_drafts]
    return tuple(sorted(found, key=lambda one: (one.rate, one.id)))


def write(
    client: Client, rollout: str, prompts: Sequence[HardPrompt], path: Path, *, cohort: str | None
) -> Written:
    """Write each prompt's newest answer as a JSON line with `id`, `conversations` and `tools`.

    Raises `SourceError` if no text of them is stored, and `WriteError`.
    """
    wanted = {one.id for one in prompts}
    lines, reasons = dict[str, str](), dict[str, str]()
    for row in _rows(client, rollout, cohort, fields=(), content=True):
        if row["prompt_id"] in wanted and _is_usable(row):
            try:
                lines[row["prompt_id"]] = _line(row)
            except NoConversationError as exc:
                reasons[row["prompt_id"]] = str(exc)
    kept = tuple(one for one in prompts if one.id in lines)
    left_out = Counter(why for id_, why in reasons.items() if id_ not in lines)
    if not kept:
        raise SourceError(
            f"rollout {rollout}: no prompt can be written ({_in_words(left_out)}); text is kept "
            "by a collector with --capture-content, and read with the scope content"
        )
    try:
        path.write_text("".join(lines[one.id] for one in kept), encoding="utf-8")
    except OSError as exc:
        raise WriteError(f"{path}: cannot be written ({exc.strerror})") from exc
    return Written(kept, left_out)


def _line(row: _Row) -> str:
    messages = conversation(row["input_messages"], row["output_messages"])
    document: dict[str, Any] = {"id": row["prompt_id"], "conversations": messages}
    if (offered := tools(row["tool_definitions"])) is not None:
        document["tools"] = offered
    return json.dumps(document, ensure_ascii=False) + "\n"


def _rows(
    client: Client,
    rollout: str,
    cohort: str | None,
    *,
    fields: Sequence[str],
    content: bool = False,
) -> Iterator[_Row]:
    opened = client.generation_batches(
        rollout, arm=Arm.CANDIDATE, cohort=cohort, content=content, fields=fields
    )
    with opened as reader:
        for batch in reader:
            yield from batch.to_pylist()


def _is_usable(row: _Row) -> bool:
    counts = (row["spec_draft_tokens"], row["spec_accepted_tokens"])
    return (
        row["prompt_id"] is not None
        and row["error_type"] is None
        and not row["fallback"]
        and row["spec_lossless"] is not False
        and None not in counts
        and not any(flag.startswith("counts:") for flag in row["quality"] or ())
    )


def _in_words(left_out: Mapping[str, int]) -> str:
    return ", ".join(f"{n} × {why}" for why, n in sorted(left_out.items())) or "none was answered"

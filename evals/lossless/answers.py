"""Compare and audit the answers of a rollout's pairs; add the results to the table of pairs."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from collector.client import Client
from collector.columns import Column, Kind, Table
from collector.contract import Arm, Generation, Pair
from evals.evaluators.answers import answer_text
from evals.lossless.greedy import Compared, compare, confirm, gap_noise
from evals.lossless.rescoring import TextRescorer
from evals.lossless.sampled_answers import ArmAudit, AuditedAnswer, given_tokens

_PAGE = 200
_TYPES = {
    "divergence_compared": Kind.INT,
    "divergence_position": Kind.INT,
    "divergence_gap": Kind.FLOAT,
    "divergence_allowed": Kind.FLOAT,
    "divergence_words": Kind.STRING,
    "divergence_unknown": Kind.STRING,
}
_SAMPLED_TYPES = {
    "tokens": Kind.INT,
    "uncertain": Kind.FLOAT,
    "log_e": Kind.FLOAT,
    "left_out": Kind.STRING,
    "seeded_tokens": Kind.INT,
    "seeded_log_e": Kind.FLOAT,
    "drafted_tokens": Kind.INT,
    "unseeded": Kind.STRING,
}


_Key = tuple[str | None, int | None]


class _PairRow(NamedTuple):
    compared: int | None = None
    position: int | None = None
    gap: float | None = None
    allowed: float | None = None
    words: str | None = None
    unknown: str | None = None
    """Why the answers were not compared, although they may be greedy."""


def with_divergences(
    client: Client,
    rollout: str,
    table: Table,
    rescorer: TextRescorer | None,
    *,
    noise: float = 0.0,
    audits: Mapping[Arm, ArmAudit] | None = None,
) -> Table:
    """Add the first divergence of each pair's greedy answers to the table of pairs.

    With a rescorer, answers are compared by token, and each divergence is rescored under the
    baseline's model; without one they are compared by character. Sampled and failed answers are
    not compared; for others that are not compared the table gives the reason. `noise` is the gap
    of logits that equal arms show. With `audits`, each arm's sampled answers are fed to its audit
    in the order of pairs, and the table has the evidence after each answer.
    """
    rows = dict[_Key, _PairRow]()
    audited: dict[Arm, dict[_Key, AuditedAnswer]] = {arm: {} for arm in audits or ()}
    for pair in _pairs(client, rollout):
        key = (pair.prompt_id, pair.repeat)
        rows[key] = _row(pair, rescorer, noise)
        for arm, audit in (audits or {}).items():
            side = pair.baseline if arm is Arm.BASELINE else pair.candidate
            if side is not None:
                audited[arm][key] = audit.take(side)
    keys = list(zip(table["prompt_id"], table["repeat"], strict=True))
    found = [rows.get(key, _PairRow()) for key in keys]
    added = {
        name: Column.of([row[i] for row in found], kind)
        for i, (name, kind) in enumerate(_TYPES.items())
    }
    for arm, of_arm in audited.items():
        for name, kind in _SAMPLED_TYPES.items():
            values = [getattr(of_arm.get(key, AuditedAnswer()), name) for key in keys]
            added[f"{arm}_sampled_{name}"] = Column.of(values, kind)
    return table.with_columns(added)


def noise_of(control: Table) -> float:
    """Return the gap noise of a rescored A/A control; 0 if it has no divergence."""
    gaps = control["divergence_gap"]
    return gap_noise(gaps.data[gaps.valid])


def _pairs(client: Client, rollout: str) -> Iterator[Pair]:
    after: str | None = None
    while True:
        page = client.pairs(rollout, content=True, limit=_PAGE, after=after)
        yield from page.pairs
        after = page.next
        if after is None:
            return


def _row(pair: Pair, rescorer: TextRescorer | None, noise: float) -> _PairRow:
    if pair.baseline is None or pair.candidate is None:
        return _PairRow()
    sides = (pair.baseline, pair.candidate)
    if any(map(_promises_nothing, sides)):
        return _PairRow()
    baseline, candidate = (answer_text(side) for side in sides)
    if (unknown := _incomparable(sides)) or baseline is None or candidate is None:
        return _PairRow(unknown=unknown or "have no text that was kept")
    where = f"prompt {pair.prompt_id}"
    if rescorer is None:
        return _by_characters(where, baseline, candidate)
    prompt = None if pair.baseline.content is None else pair.baseline.content.input_messages
    tokens, others = _tokens(rescorer, sides, (baseline, candidate))
    found = compare(tokens, others)
    if found.position is None:
        return _PairRow(found.tokens)
    prefix = rescorer.prompt_tokens(prompt)
    given = None if prefix is None else [*prefix, *tokens[: found.position]]
    return _rescored(rescorer, where, given, found, noise)


def _tokens(
    rescorer: TextRescorer, sides: tuple[Generation, Generation], texts: tuple[str, str]
) -> tuple[list[int], list[int]]:
    """Return both answers' tokens: those that the engines gave, if both did, else the texts'."""
    baseline, candidate = map(given_tokens, sides)
    if baseline and candidate and max(*baseline, *candidate) < rescorer.vocabulary:
        return baseline, candidate
    return rescorer.tokens(texts[0]), rescorer.tokens(texts[1])


def _promises_nothing(side: Generation) -> bool:
    """Return whether the answer failed, was sampled, or has a prompt of its own arm."""
    return side.error_type is not None or (side.temperature or 0) > 0 or bool(side.own_history)


def _by_characters(where: str, baseline: str, candidate: str) -> _PairRow:
    found = compare(list(map(ord, baseline)), list(map(ord, candidate)))
    if found.position is None:
        return _PairRow(found.tokens)
    at = found.position
    words = f"{where} at character {at}: {_near(candidate, at)} for {_near(baseline, at)}"
    return _PairRow(found.tokens, at, words=words)


def _rescored(
    rescorer: TextRescorer, where: str, prefix: list[int] | None, found: Compared, noise: float
) -> _PairRow:
    at, end = found.position, rescorer.end_token
    ours = end if found.candidate_token is None else found.candidate_token
    theirs = end if found.baseline_token is None else found.baseline_token
    words = f"{where} at token {at}: {rescorer.shown(ours)} for {rescorer.shown(theirs)}"
    if prefix is None:
        return _PairRow(found.tokens, at, words=words)
    checked = confirm(rescorer.next_logits(prefix), ours, dtype=rescorer.dtype, noise=noise)
    words += f", gap {checked.gap:.3g} where {checked.allowed:.2g} is a tie"
    return _PairRow(found.tokens, at, checked.gap, checked.allowed, words)


def _incomparable(sides: tuple[Generation, Generation]) -> str | None:
    if any(side.fallback for side in sides):
        return "were answered by another route"
    if any(side.temperature is None for side in sides):
        return "do not say their temperature"
    return None


def _near(text: str, at: int) -> str:
    return repr(text[at : at + 12]) if at < len(text) else "the end"

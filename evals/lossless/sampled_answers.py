"""Rescore sampled answers under the baseline's model, and audit them one by one."""

import math
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from collector.contract import Generation, SamplerSteps, not_modelled, read_sampler
from evals.evaluators.answers import answer_text
from evals.lossless.rescoring import TextRescorer
from evals.lossless.sampler_law import law
from evals.lossless.sampling_audit import ALARM, Drafts, Floats, SamplingAudit, observe
from evals.lossless.seeded_draws import RescoredAnswer, misses
from evals.stats.bets import Bets

CUT = "cut into other tokens than were sampled"
GREEDY = "greedy, or of unknown temperature"
FAILED = "failed"
UNREADABLE = "with a sampler that cannot be read"
_IDS = re.compile(r"[0-9]{1,9}(,[0-9]{1,9})*")
FOREIGN = "with token ids that the model does not have"
SAME_SEED = "with the seed of an earlier answer"


class SequenceRescorer(TextRescorer, Protocol):
    """A rescorer that also scores a whole answer in one pass."""

    def answer_logits(self, prompt: list[int], answer: list[int]) -> Floats:
        """Return the logits at each of the answer's tokens, one row per token."""


class AuditedAnswer(NamedTuple):
    """One audited answer, and the evidence after it."""

    tokens: int | None = None
    """None if the answer cannot be used."""
    uncertain: float | None = None
    """Σ(1 − max p): how many of its tokens are expected not to be the likeliest."""
    log_e: float | None = None
    """Logarithm of the arm's e-value after this answer."""
    left_out: str | None = None
    """Why the answer cannot be used."""
    seeded_tokens: int | None = None
    """Tokens compared with those that the seed gives; None if these cannot be computed."""
    seeded_log_e: float | None = None
    """Logarithm of the e-value of that comparison after this answer."""
    drafted_tokens: int | None = None
    """Tokens compared with the draft model's distribution; None without that model."""
    unseeded: str | None = None
    """Why the engine's draws, which can be made again, cannot be in this answer."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """An e-process over tokens, and whether it ever reached the alarm."""

    tokens: int = 0
    uncertain: float = 0.0
    """Of them, those expected not to be the likeliest: a token that is certain shows no fault."""
    log_e: float = 0.0
    """The greatest log e-value after any answer; 0 without answers."""
    tokens_to_alarm: int | None = None
    """Tokens up to the answer after which the e-value reached the alarm; None if it never did."""
    level: float = ALARM
    """The e-value that is an alarm."""

    @property
    def alarmed(self) -> bool:
        """Whether the e-value ever reached the alarm."""
        return self.tokens_to_alarm is not None

    def after(self, tokens: int, uncertain: float, log_e: float) -> "Alarm":
        """Return the state after an answer of so many tokens, with this log e-value then."""
        total, at = self.tokens + tokens, self.tokens_to_alarm
        if at is None and log_e >= math.log(self.level):
            at = total
        return Alarm(total, self.uncertain + uncertain, max(self.log_e, log_e), at, self.level)


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The audit of one arm."""

    answers: int
    law: Alarm
    """Whether the tokens follow the baseline's distribution."""
    left_out: Mapping[str, int]
    """Answers that could not be used, by reason."""
    seeded: Alarm = field(default_factory=Alarm)
    """Whether they are those that the seeds give, where that can be computed."""
    drafted_tokens: int = 0
    """Tokens compared with the draft model's distribution as well."""
    unseeded: Mapping[str, int] = field(default_factory=dict)
    """Audited answers that could not be compared with their seeds, by reason."""

    @property
    def cut(self) -> int:
        """Answers whose text does not have as many tokens as the engine counted."""
        return self.left_out.get(CUT, 0)


class ArmAudit:
    """Tests an arm's sampled tokens against the baseline's distribution, answer by answer.

    Answers with equal seeds share their randomness, so only the first answer of each seed counts.
    If the engine counted another number of tokens than a text has, its tokens are known only if all
    of them are those that the seed gives: then the count is wrong, and the answer is audited.
    """

    def __init__(
        self,
        rescorer: SequenceRescorer,
        tolerance: float,
        seed: int = 0,
        *,
        draft: SequenceRescorer | None = None,
    ) -> None:
        """Start an audit; `seed` seeds the random numbers of the rank-PIT.

        With the draft model, tokens that it finds likelier than the target are counted as well.
        """
        self._rescorer, self._draft = rescorer, draft
        self._dtypes = frozenset(model.dtype for model in (rescorer, draft) if model is not None)
        self._state = SamplingAudit.begin(tolerance)
        self._misses = Bets(tolerance)
        self._rng = np.random.default_rng(seed)
        self._seeds = set[int]()

    def take(self, one: Generation) -> AuditedAnswer:
        """Rescore one answer and return the evidence after it."""
        usable = _usable(one, self._rescorer, self._seeds)
        if isinstance(usable, str):
            return AuditedAnswer(left_out=usable)
        tokens, steps = np.array(usable.tokens), usable.steps
        laws = law(self._rescorer.answer_logits(usable.prompt, usable.tokens), steps)
        drafts = self._drafts(usable, laws)
        q = None if drafts is None else drafts.probabilities
        missed = misses(one, RescoredAnswer(steps, laws, tokens, q, self._dtypes))
        if not usable.counted and (not isinstance(missed, np.ndarray) or missed.any()):
            return AuditedAnswer(left_out=CUT)
        if one.seed is not None:
            self._seeds.add(one.seed)
        self._state = self._state.after(observe(laws, tokens, drafts, self._rng))
        audited = AuditedAnswer(
            len(tokens),
            float((1 - laws.max(axis=1)).sum()),
            self._state.log_e,
            drafted_tokens=None if drafts is None else len(tokens),
        )
        if not isinstance(missed, np.ndarray):
            return audited._replace(unseeded=missed)
        self._misses = self._misses.after(missed)
        return audited._replace(seeded_tokens=len(missed), seeded_log_e=self._misses.log_e)

    def _drafts(self, answer: "_Usable", laws: Floats) -> Drafts | None:
        """Return the draft model's distributions under the answer's sampler, if there is one."""
        if self._draft is None:
            return None
        logits = self._draft.answer_logits(answer.prompt, answer.tokens)
        padded = np.full(laws.shape, -np.inf)
        common = min(laws.shape[1], logits.shape[1])  # models pad a vocabulary differently
        padded[:, :common] = logits[:, :common]
        return Drafts(law(padded, answer.steps))


class _Usable(NamedTuple):
    prompt: list[int]
    steps: SamplerSteps
    tokens: list[int]
    counted: bool
    """Whether the engine counted as many."""


class AuditTally:
    """Sums up an arm's audited answers, in their order."""

    def __init__(self, alarm: float = ALARM) -> None:
        """Start without answers; `alarm` is the e-value that is an alarm."""
        self._answers = self._drafted = 0
        self._left_out, self._unseeded = Counter[str](), Counter[str]()
        self._law = self._seeded = Alarm(level=alarm)

    def add(self, answer: AuditedAnswer) -> None:
        """Count one answer."""
        if answer.left_out is not None:
            self._left_out[answer.left_out] += 1
        if answer.tokens is None or answer.uncertain is None or answer.log_e is None:
            return
        self._answers += 1
        self._drafted += answer.drafted_tokens or 0
        if answer.unseeded is not None:
            self._unseeded[answer.unseeded] += 1
        self._law = self._law.after(answer.tokens, answer.uncertain, answer.log_e)
        if answer.seeded_tokens is not None and answer.seeded_log_e is not None:
            self._seeded = self._seeded.after(
                answer.seeded_tokens, answer.uncertain, answer.seeded_log_e
            )

    def audited(self) -> AuditResult:
        """Return the sums."""
        return AuditResult(
            self._answers,
            self._law,
            dict(self._left_out),
            self._seeded,
            self._drafted,
            dict(self._unseeded),
        )


def _steps(one: Generation) -> SamplerSteps:
    """Return the recorded sampler; else temperature, top-k and top-p as the request set them."""
    if one.sampler is not None:
        return read_sampler(one.sampler)
    asked = {"temperature": one.temperature, "top_k": one.top_k, "top_p": one.top_p}
    return tuple((name, float(value)) for name, value in asked.items() if value and value > 0)


def _modelled_steps(one: Generation) -> SamplerSteps | str:
    """Return the answer's sampler, or why it cannot be computed."""
    try:
        steps = _steps(one)
    except ValueError:
        return UNREADABLE
    if unknown := not_modelled(steps):
        return f"sampled by {', '.join(unknown)}"
    usable = all(0 < value <= (1 if name == "min_p" else sys.maxsize) for name, value in steps)
    return steps if usable else UNREADABLE


def _usable(one: Generation, rescorer: SequenceRescorer, seeds: set[int]) -> _Usable | str:
    """Return prompt and answer as tokens, or the reason why the answer cannot be used."""
    if (why := _inapplicable(one)) is not None:
        return why
    if isinstance(steps := _modelled_steps(one), str):
        return steps
    text = answer_text(one)
    prompt = None if one.content is None else rescorer.prompt_tokens(one.content.input_messages)
    if text is None or prompt is None:
        return "without the texts"
    if one.seed is not None and one.seed in seeds:
        return SAME_SEED
    given = given_tokens(one)
    found = (given, True) if given else _cut(rescorer.tokens(text), one, rescorer.end_token)
    if not found[0] or max(found[0]) >= rescorer.vocabulary:
        return FOREIGN if found[0] else CUT
    return _Usable(prompt, steps, *found)


def _inapplicable(one: Generation) -> str | None:
    if one.error_type is not None:
        return FAILED
    return None if one.temperature else GREEDY


def given_tokens(one: Generation) -> list[int] | None:
    """Return the ids of all output tokens, if the engine gave as many as it counted."""
    given = None if one.content is None else one.content.output_token_ids
    if given is None or not _IDS.fullmatch(given):
        return None
    ids = [int(token) for token in given.split(",")]
    return ids if one.output_tokens in (None, len(ids)) else None


def _cut(tokens: list[int], one: Generation, end_token: int) -> tuple[list[int], bool]:
    """Return the tokens of a text, and whether the engine counted as many.

    An answer that stopped by itself ends with an end token, which its text lacks. Some engines do
    not count that token, and an answer stopped by a stop string has none.
    """
    ended = [*tokens, end_token] if one.finish_reasons == ("stop",) else tokens
    if one.output_tokens is None or one.output_tokens == len(ended):
        return ended, True
    return (tokens, True) if one.output_tokens == len(tokens) else (ended, False)

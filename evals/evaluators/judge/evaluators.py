"""Groundedness, task completion and preference, scored by a judge."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar

from collector.contract import Generation, Score, ScoredSpan
from evals.evaluators.answers import NOT_RECORDED, answer_text
from evals.evaluators.base import Need, scored, unscored
from evals.evaluators.conversation import prompt_transcript
from evals.evaluators.judge import prompts
from evals.evaluators.judge.endpoint import Endpoint, JudgeError
from evals.evaluators.judge.reply import JudgeReply, UnusableReplyError, ask
from evals.evaluators.judge.settings import JudgeSettings, from_environment
from evals.evaluators.reference import Rubric, UnusableReferenceError
from evals.evaluators.reference_reading import parse

_OPEN_ENDED = ("The answer does what the task asks for, correctly and completely.",)
_Reply = Mapping[str, Any]  # Any: JSON values


class _Judge:
    """Base of the three: an endpoint, and a version made of the prompt's hash and the model."""

    prompt: ClassVar[str]

    def __init__(self, settings: JudgeSettings | None = None, *, sample: int = 0) -> None:
        """Use the environment's judge by default; each `sample` is cached separately."""
        self._settings = settings or from_environment()
        self._endpoint = Endpoint(self._settings)
        self._sample = sample

    @property
    def version(self) -> str:
        """The prompt's hash and the model's name."""
        return prompts.version(self.prompt, self._settings.model)

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _ask(self, read: Callable[[_Reply], Any], **values: str) -> JudgeReply | str:
        """Return the judgement, or the reason why the answer stays unscored."""
        question = prompts.filled(self.prompt, **values)
        try:
            return ask(self._endpoint, question, read, sample=self._sample)
        except UnusableReplyError as exc:
            return f"the judge's reply cannot be used: {exc}"
        except JudgeError as exc:
            return str(exc)


class JudgedGroundedness(_Judge):
    """The share of an answer's claims that its passages support, as the judge reports it."""

    name = "judge-groundedness"
    metric = "groundedness"
    needs: ClassVar[AbstractSet[Need]] = frozenset({Need.CONTEXT})
    prompt = prompts.GROUNDEDNESS

    def score(self, generation: Generation) -> Score | None:
        """Ask for the unsupported claims; those that quote the answer verbatim become spans."""
        passages = generation.content.context if generation.content else None
        if passages is None:
            return None
        if (answer := answer_text(generation)) is None:
            return unscored(self, generation, NOT_RECORDED)
        found = self._ask(
            _share,
            context="\n\n".join(passages),
            question=prompt_transcript(generation),
            answer=answer,
        )
        if isinstance(found, str):
            return unscored(self, generation, found)
        value, claims = found.reading
        return scored(
            self,
            generation,
            value,
            label="unsupported" if claims else "supported",
            explanation="; ".join(claims)[:1000] or None,
            spans=[
                ScoredSpan(start=answer.index(c), end=answer.index(c) + len(c), support=0.0)
                for c in claims
                if c and c in answer
            ],
            cost_usd=found.cost_usd,
        )


class JudgedTask(_Judge):
    """The share of a rubric's criteria that an answer meets.

    An answer without a reference is judged by one general criterion. References of other kinds
    than a rubric are left to their rules.
    """

    name = "judge-task"
    metric = "task_completion"
    needs: ClassVar[AbstractSet[Need]] = frozenset()
    prompt = prompts.TASK

    def score(self, generation: Generation) -> Score | None:
        """Ask which criteria the answer meets."""
        criteria = _criteria(generation)
        if criteria is None:
            return None
        if (answer := answer_text(generation)) is None:
            return unscored(self, generation, NOT_RECORDED)
        found = self._ask(
            lambda reply: _met(reply, len(criteria)),
            criteria="\n".join(f"{n}. {c}" for n, c in enumerate(criteria, start=1)),
            question=prompt_transcript(generation),
            answer=answer,
        )
        if isinstance(found, str):
            return unscored(self, generation, found)
        met: list[tuple[bool, str]] = found.reading
        missed = [f"{n}: {why}" for n, (ok, why) in enumerate(met, start=1) if not ok]
        right = sum(ok for ok, _ in met)
        return scored(
            self,
            generation,
            right / len(met),
            label=f"rubric: {right} of {len(met)} met",
            explanation="; ".join(missed)[:1000] or None,
            cost_usd=found.cost_usd,
        )


class Preference(_Judge):
    """1 if the judge prefers the candidate's answer, 0 if the baseline's, 0.5 if neither.

    The judge is not told which is which, and is asked in both orders: if its choice changes with
    the order, the score is 0.5. Two equal texts score 0.5 without a request.
    """

    name = "judge-preference"
    metric = "preference"
    needs: ClassVar[AbstractSet[Need]] = frozenset({Need.BASELINE})
    prompt = prompts.PREFERENCE

    def score_pair(self, candidate: Generation, baseline: Generation) -> Score | None:
        """Ask in both orders."""
        got, wanted = answer_text(candidate), answer_text(baseline)
        if got is None or wanted is None:
            return unscored(self, candidate, NOT_RECORDED)
        if got == wanted:
            return scored(self, candidate, 0.5, label="identical", cost_usd=0.0)
        question = prompt_transcript(candidate)
        ahead = self._ask(_better, question=question, first=got, second=wanted)
        behind = self._ask(_better, question=question, first=wanted, second=got)
        if isinstance(ahead, str):
            return unscored(self, candidate, ahead)
        if isinstance(behind, str):
            return unscored(self, candidate, behind)
        value = (ahead.reading + 1 - behind.reading) / 2
        consistent = ahead.reading == 1 - behind.reading
        costs = (ahead.cost_usd, behind.cost_usd)
        return scored(
            self,
            candidate,
            value if consistent else 0.5,
            label=_LABELS[value] if consistent else "goes with the order",
            cost_usd=None if None in costs else sum(c for c in costs if c is not None),
        )


_LABELS = {0.0: "baseline", 0.5: "equal", 1.0: "candidate"}


def _criteria(generation: Generation) -> tuple[str, ...] | None:
    text = generation.content.reference if generation.content else None
    if generation.content is None:
        return None
    if text is None:
        return _OPEN_ENDED
    try:
        reference = parse(text)
    except UnusableReferenceError:
        return None
    return reference.criteria if isinstance(reference, Rubric) else None


def _share(reply: _Reply) -> tuple[float, list[str]]:
    value, claims = reply.get("score"), reply.get("unsupported", [])
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UnusableReplyError(f"score is {value!r}, wanted 0.0 to 1.0")
    if not isinstance(claims, list) or not all(isinstance(claim, str) for claim in claims):
        raise UnusableReplyError("unsupported is not a list of texts")
    return float(value), claims


def _met(reply: _Reply, count: int) -> list[tuple[bool, str]]:
    found = reply.get("criteria")
    if not isinstance(found, list) or len(found) != count:
        raise UnusableReplyError(f"criteria is not a list of {count}")
    if not all(isinstance(c, dict) and isinstance(c.get("met"), bool) for c in found):
        raise UnusableReplyError("a criterion has no met that is true or false")
    return [(c["met"], str(c.get("why", ""))) for c in found]


def _better(reply: _Reply) -> float:
    """Return 1 if the first is better, 0 if the second is, 0.5 if they are equal."""
    chosen = reply.get("better")
    values = {"first": 1.0, "second": 0.0, "equal": 0.5}
    if not isinstance(chosen, str) or chosen not in values:
        raise UnusableReplyError(f"better is {chosen!r}, wanted first, second or equal")
    return values[chosen]

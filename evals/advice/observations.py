"""Load the pairs of a rollout as the numbers that the advisor needs."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from collector.client import Client
from collector.contract import Generation, InputBands, Pair, Speculation, counts_usable
from evals.evidence.drafting import AnswerDrafts
from evals.evidence.launches import ArmLaunches, Launches, launches_of
from evals.evidence.load_bands import load_band
from evals.rollouts import require

_PAGE = 1000


class Times(NamedTuple):
    """One answer's times."""

    e2e_s: float
    ttft_s: float | None
    output_tokens: int | None
    tpot_s: float | None

    @property
    def decode_s(self) -> float | None:
        """Seconds from the first token to the last."""
        return None if self.ttft_s is None else self.e2e_s - self.ttft_s


class StepCounts(NamedTuple):
    """One answer's verify steps."""

    k: int | None
    """Configured draft tokens per step; `None` if not recorded."""
    steps: int
    decode_steps: int
    """Steps after the first token."""
    draft_tokens: int
    accepted_tokens: int
    accepted_per_pos: tuple[int, ...] | None


class Observation(NamedTuple):
    """A pair; a side is `None` if it failed, is missing or has no usable times."""

    prompt: str
    cohort: str | None
    load: tuple[int, int] | None
    """Requests in flight, as the ends of a power-of-two bucket; `None` if the arms differ."""
    max_tokens: int | None
    baseline: Times | None
    candidate: Times | None
    counts: StepCounts | None
    drafts: AnswerDrafts | None = None
    """The candidate's; `None` without a count, or a load."""
    input_tokens: int | None = None
    """By the baseline's count, else the candidate's."""
    band: str | None = None
    """The band of `input_tokens`; `None` without declared bands."""
    launch: int | None = None
    """Group of launches of the servers; `None` if the rollout has too few for limits over them."""


def in_bands(pairs: Sequence[Observation], bands: InputBands | None) -> Sequence[Observation]:
    """Return the pairs with their bands."""
    if bands is None:
        return pairs
    return [pair._replace(band=bands.of(pair.input_tokens)) for pair in pairs]


def load(client: Client, rollout: str) -> list[Observation]:
    """Return a rollout's pairs; raises `SourceError` if the collector does not know it."""
    require(client, rollout)
    seen: list[Observation] = []
    asked: list[tuple[_Asked | None, _Asked | None]] = []
    for pair in _pairs(client, rollout):
        seen.append(_observation(pair))
        asked.append((_asked(pair.baseline), _asked(pair.candidate)))
    launches = _launches(asked)
    if launches is None or not launches.enough:
        return seen
    groups = map(int, launches.of)
    return [one._replace(launch=group) for one, group in zip(seen, groups, strict=True)]


def _pairs(client: Client, rollout: str) -> Iterator[Pair]:
    after: str | None = None
    while True:
        page = client.pairs(rollout, limit=_PAGE, after=after)
        yield from page.pairs
        after = page.next
        if after is None:
            return


def _observation(pair: Pair) -> Observation:
    band, candidate = _band(pair.baseline), pair.candidate
    return Observation(
        prompt=pair.prompt_id,
        cohort=pair.cohort,
        load=band if band == _band(candidate) else None,
        max_tokens=candidate.max_tokens if candidate else None,
        baseline=_times(pair.baseline),
        candidate=_times(candidate),
        counts=_counts(candidate) if candidate else None,
        drafts=_drafts(candidate),
        input_tokens=_input_tokens(pair),
    )


class _Asked(NamedTuple):
    """When a side of a pair was asked, and the launch that answered; `None` if not recorded."""

    started_unix_ns: int
    launch: str | None


def _asked(side: Generation | None) -> _Asked | None:
    return None if side is None else _Asked(side.start_unix_ns, side.launch)


def _launches(asked: Sequence[tuple[_Asked | None, _Asked | None]]) -> Launches | None:
    started = [min(side.started_unix_ns for side in sides if side is not None) for sides in asked]
    baseline, candidate = ([sides[arm] for sides in asked] for arm in (0, 1))
    return launches_of(_arm(baseline), _arm(candidate), np.array(started, dtype=np.int64))


def _arm(asked: Sequence[_Asked | None]) -> ArmLaunches:
    launch = np.empty(len(asked), dtype=np.object_)
    launch[:] = [None if side is None else side.launch for side in asked]
    present = np.array([side is not None for side in asked], dtype=np.bool_)
    return ArmLaunches(launch, present)


def _drafts(candidate: Generation | None) -> AnswerDrafts | None:
    if candidate is None or candidate.error_type is not None or candidate.fallback:
        return None
    spec, load = candidate.speculation, _band(candidate)
    if spec is None or spec.draft_tokens is None or load is None:
        return None
    return AnswerDrafts(load, spec.draft_tokens, spec.steps)


def _input_tokens(pair: Pair) -> int | None:
    sides = (side for side in (pair.baseline, pair.candidate) if side is not None)
    return next((side.input_tokens for side in sides if side.input_tokens is not None), None)


def _times(generation: Generation | None) -> Times | None:
    g = generation
    if g is None or g.error_type is not None or g.e2e_s <= 0:
        return None
    if any(flag.startswith("times:") for flag in g.quality):
        return None
    return Times(g.e2e_s, g.ttft_s, g.output_tokens, g.tpot_s)


def _band(generation: Generation | None) -> tuple[int, int] | None:
    return None if generation is None else load_band(generation.concurrency)


def _counts(generation: Generation) -> StepCounts | None:
    spec = generation.speculation
    if spec is None or spec.steps is None or not counts_usable(generation):
        return None
    return StepCounts(
        k=spec.num_speculative_tokens,
        steps=spec.steps,
        decode_steps=_decode_steps(spec.steps, generation.stream_chunks),
        draft_tokens=spec.draft_tokens or 0,
        accepted_tokens=spec.accepted_tokens or 0,
        accepted_per_pos=_per_position(spec),
    )


def _decode_steps(steps: int, chunks: int | None) -> int:
    """Count the verify steps after the first token.

    An engine that emits the first token from a separate prefill sends one more chunk than it has
    verify steps. With no more chunks than steps, the first step produced the first token.
    """
    first_included = chunks is not None and 0 < chunks <= steps
    return steps - 1 if first_included else steps


def _per_position(spec: Speculation) -> tuple[int, ...] | None:
    if spec.accepted_tokens_per_pos is not None:
        return spec.accepted_tokens_per_pos
    histogram = spec.acceptance_histogram
    return (
        None if histogram is None else tuple(sum(histogram[j:]) for j in range(1, len(histogram)))
    )

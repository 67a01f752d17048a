"""Differences between the arms other than the rollout's declared change."""

import json
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import NamedTuple

from collector.contract import Change
from engine_adapter.preflight.arms import ArmFacts
from engine_adapter.preflight.findings import PreflightFinding, error, note, warning

_MEANT: dict[Change, tuple[str, ...]] = {
    Change.SPECULATION: ("speculation",),
    Change.DRAFT_SWAP: ("speculation",),
    Change.KV_CACHE_DTYPE: ("kv_cache_dtype",),
    Change.QUANTIZATION: ("quantization", "dtype", "weights"),
    Change.ENGINE_UPGRADE: ("engine_version",),
    Change.PREFIX_CACHE: ("prefix_cache",),
    Change.ATTENTION_KERNEL: (),
}
"""The checks that the change itself makes differ; the first of them must differ.

For a quantization, another number format is enough."""


class _Aspect(NamedTuple):
    check: str
    words: str
    of: Callable[[ArmFacts], object]
    """Returns the arm's value; `None` if nobody knows it."""


def of_change(
    baseline: ArmFacts, candidate: ArmFacts, change: Change
) -> Iterator[PreflightFinding]:
    """Yield a finding for each difference that is not the change, and one if the change is absent.

    A difference is an error; if the change is `other`, most are warnings.
    """
    if baseline.route == candidate.route:
        yield note(
            "same_route",
            "both arms are one route: this is an A/A control",
            evidence=baseline.where,
            fix="use it as --control of the gate",
        )
        return
    meant = _MEANT.get(change, ())
    for aspect in _ASPECTS:
        values = [aspect.of(arm) for arm in (baseline, candidate)]
        if None in values:
            if aspect.check in meant[:1] and change is not Change.SPECULATION:
                yield _unseen(aspect, baseline, candidate, change)
            continue
        if values[0] != values[1] and aspect.check not in meant:
            yield _difference(aspect, values, change)
        elif values[0] == values[1] and aspect.check in meant[:1]:
            yield from _absent(aspect, baseline, candidate, change)
    yield from _drafts(baseline, candidate, change)
    yield from _parameters(baseline, candidate, change)


def _difference(aspect: _Aspect, values: list[object], change: Change) -> PreflightFinding:
    make = warning if change is Change.OTHER and aspect.check not in _WORTHLESS else error
    return make(
        aspect.check,
        f"the arms' {aspect.words} differ, and the change is {change.value}: they may be the cause "
        "of a difference in speed or answers",
        evidence=f"{_shown(values[0])} and {_shown(values[1])}",
        fix="remove it, unless it is the change"
        if change is Change.OTHER
        else f"make the {change.value.replace('_', ' ')} the arms' only difference, or name the "
        "change under `change:`",
    )


def _unseen(
    aspect: _Aspect, baseline: ArmFacts, candidate: ArmFacts, change: Change
) -> PreflightFinding:
    silent = [arm.where for arm in (baseline, candidate) if aspect.of(arm) is None]
    return note(
        "change_unseen",
        f"the change is {change.value}, but nothing tells both arms' {aspect.words}: it may be "
        "absent",
        evidence=f"unknown: {', '.join(silent)}",
        fix="make sure of it by the servers' own start commands",
    )


def _absent(
    aspect: _Aspect, baseline: ArmFacts, candidate: ArmFacts, change: Change
) -> Iterator[PreflightFinding]:
    formats = {baseline.probe.dtype, candidate.probe.dtype} - {None}
    if change is Change.QUANTIZATION and len(formats) > 1:
        return
    if change is not Change.SPECULATION:  # `_drafts` checks whether the candidate speculates
        yield error(
            "change_absent",
            f"the change is {change.value}, but the arms' {aspect.words} are the same",
            evidence=_shown(aspect.of(baseline)),
            fix="check the candidate's flags, or name another `change:`",
        )


def _drafts(baseline: ArmFacts, candidate: ArmFacts, change: Change) -> Iterator[PreflightFinding]:
    """Yield a finding for an arm that speculates but should not, or the reverse."""
    if baseline.probe.speculates and change is Change.SPECULATION:
        method = baseline.probe.setup.configured.method or "method unknown"
        yield warning(
            "baseline_speculates",
            "the baseline speculates too: the run compares two ways of speculating",
            evidence=f"{baseline.where}: {method}",
            fix="name the change `draft_swap` if this is intended, or serve the baseline without "
            "speculation",
        )
    if candidate.probe.speculates is False and change.is_of_drafts:
        make = error if change is Change.DRAFT_SWAP else warning
        yield make(
            "candidate_does_not_speculate",
            "the candidate does not speculate",
            evidence=candidate.where,
            fix="check its flags: engines ignore a draft that they cannot use without an error",
        )
    if baseline.probe.speculates is False and change is Change.DRAFT_SWAP:
        yield error(
            "baseline_does_not_speculate",
            "the change is draft_swap, and the baseline does not speculate",
            evidence=baseline.where,
            fix="serve the baseline with the old draft, or leave `change:` out",
        )


def _parameters(
    baseline: ArmFacts, candidate: ArmFacts, change: Change
) -> Iterator[PreflightFinding]:
    left, right = dict(baseline.extra_body), dict(candidate.extra_body)
    if left != right and baseline.route.engine == candidate.route.engine:
        # With some engines a request's parameters turn speculation on.
        make = warning if change.is_of_drafts or change is Change.OTHER else error
        yield make(
            "parameters",
            "the arms get different request parameters",
            evidence=f"extra_body: {json.dumps(left)} and {json.dumps(right)}",
            fix="give both routes the same `extra_body`",
        )


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_shown, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _speculation(arm: ArmFacts) -> tuple[object, ...] | None:
    """Return the arm's method, draft model and draft length as far as known."""
    if arm.probe.speculates is None:
        return None
    if not arm.probe.speculates:
        return ("none",)
    said = arm.probe.setup.configured
    known = (said.method, said.draft_model, said.num_speculative_tokens)
    return tuple(value for value in known if value is not None) or None


def _engine(arm: ArmFacts) -> str | None:
    named = arm.route.engine if arm.route.engine != "openai" else None
    return arm.probe.served_by or named


def _parameter_count(arm: ArmFacts) -> str | None:
    count = arm.probe.target_parameters
    return None if count is None else f"{count:,} parameters"


def _of_files(name: str) -> Callable[[ArmFacts], object]:
    def value(arm: ArmFacts) -> object:
        return None if arm.files is None else getattr(arm.files, name)

    return value


def _quantization(arm: ArmFacts) -> str | None:
    of_files = (arm.files.quantization or "none") if arm.files else None
    return arm.probe.quantization or of_files


def _family(arm: ArmFacts) -> str | None:
    return arm.probe.model_family or (arm.files.family if arm.files else None)


def _stops(arm: ArmFacts) -> object:
    if arm.probe.stop_token_ids is not None:
        return tuple(sorted(arm.probe.stop_token_ids))
    return arm.files.stop_token_ids if arm.files else None


def _version(arm: ArmFacts) -> str | None:
    return f"{arm.route.engine} {arm.probe.version}" if arm.probe.version else None


_WORTHLESS = ("model_family", "target")
"""Differences that are errors whatever the change is."""
_ASPECTS = (
    _Aspect("engine", "engines", _engine),
    _Aspect("target", "targets", _parameter_count),
    _Aspect("target", "targets", _of_files("shape")),
    _Aspect("weights", "weights", _of_files("weights")),
    _Aspect("weights", "weights", attrgetter("probe.target")),
    _Aspect("model_family", "architectures", _family),
    _Aspect("dtype", "number formats", attrgetter("probe.dtype")),
    _Aspect("quantization", "quantisations", _quantization),
    _Aspect("kv_cache_dtype", "formats of the KV cache", attrgetter("probe.kv_cache_dtype")),
    _Aspect("context_length", "contexts", attrgetter("probe.context_length")),
    _Aspect("stop_tokens", "stop tokens", _stops),
    _Aspect("engine_version", "engine versions", _version),
    _Aspect("prefix_cache", "prefix caches", attrgetter("probe.prefix_cache")),
    _Aspect("speculation", "ways of speculating", _speculation),
)

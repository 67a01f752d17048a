"""Checks of the two arms against each other."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from collector.contract import Change
from engine_adapter.preflight.arms import ArmFacts
from engine_adapter.preflight.differences import of_change
from engine_adapter.preflight.findings import PreflightFinding, error, note, warning
from engine_adapter.preflight.refusals import Refusal
from engine_adapter.routes import HttpRoute, Route
from engine_adapter.run.rollout_file import Rollout

_REFUSED_WITH_SPECULATION = {"vllm": ("min_p", "logit_bias")}
"""Request keys that an engine answers with 400 if it speculates."""
_SYNCHRONOUS = ("ngram", "suffix", "custom_class")
"""vLLM's speculative methods that disable asynchronous scheduling on its V1 model runner."""


def of_pair(baseline: ArmFacts, candidate: ArmFacts, change: Change) -> Iterator[PreflightFinding]:
    """Yield a finding for each unwanted difference, and for each missing one."""
    yield from of_change(baseline, candidate, change)
    yield from _tokenizer(baseline, candidate)
    yield from _prompts(baseline, candidate)
    yield from _parameters(baseline, candidate)
    yield from _scheduling(baseline, candidate)


def of_load(rollout: Rollout) -> Iterator[PreflightFinding]:
    """Yield a note if arms answer at the same time on one machine."""
    machines = [_machine(route) for route in rollout.routes.values()]
    shared = sorted({one for one in machines if machines.count(one) > 1})
    if shared and (rollout.load.is_open or (rollout.load.concurrency or 1) > 1):
        yield note(
            "shared_machine",
            "arms on one machine answer at the same time: unless each has hardware of its own, "
            "each arm's times include delays that the other causes",
            evidence=f"both on {' and '.join(shared)}, with load {_load_words(rollout)}",
            fix="give each arm its own GPU, or let them take turns: `load: {concurrency: 1}`",
        )


def _machine(route: Route) -> str:
    """Return the host of a server, or the device of a model in this process."""
    if isinstance(route, HttpRoute):
        return urlsplit(route.url).hostname or route.url
    return f"this process's {route.device}"


def _load_words(rollout: Rollout) -> str:
    load = rollout.load
    return f"`mode: {load.mode}`" if load.is_open else f"`concurrency: {load.concurrency}`"


def _tokenizer(baseline: ArmFacts, candidate: ArmFacts) -> Iterator[PreflightFinding]:
    fix = "serve the same model and tokenizer revision on both arms"
    if baseline.files is not None and candidate.files is not None:
        differing = baseline.files.differing_parts(candidate.files)
        if differing:
            sizes = [files.vocabulary_size for files in (baseline.files, candidate.files)]
            yield error(
                "tokenizer",
                f"the arms' tokenizers differ: {', '.join(differing)}",
                evidence=f"{baseline.files.folder} ({sizes[0]} tokens), "
                f"{candidate.files.folder} ({sizes[1]} tokens)",
                fix=fix,
            )
    elif None not in (baseline.token_ids, candidate.token_ids) and (
        baseline.token_ids != candidate.token_ids
    ):
        yield error(
            "tokenizer",
            "the arms' servers read the same text as different tokens",
            evidence=f"/tokenize of {baseline.where} and {candidate.where}",
            fix=fix,
        )


def _prompts(baseline: ArmFacts, candidate: ArmFacts) -> Iterator[PreflightFinding]:
    fix = (
        "give both servers the same chat template (vLLM: --chat-template, llama.cpp: "
        "--chat-template-file)"
    )
    left, right = (
        arm.probe.chat_template or (arm.files.chat_template if arm.files else None)
        for arm in (baseline, candidate)
    )
    if left is not None and right is not None and left != right:
        yield error(
            "chat_template",
            "the arms' chat templates differ: the models get different prompts",
            evidence=f"{len(left)} and {len(right)} characters",
            fix=fix,
        )
        return
    counts = [arm.trial.input_tokens if arm.trial else None for arm in (baseline, candidate)]
    if None not in counts and counts[0] != counts[1]:
        yield error(
            "prompt_tokens",
            "the arms read the same messages as different numbers of tokens: their chat "
            "templates or tokenizers differ",
            evidence=f"{counts[0]} and {counts[1]} input tokens",
            fix=fix,
        )


def _parameters(baseline: ArmFacts, candidate: ArmFacts) -> Iterator[PreflightFinding]:
    for arm, other in ((baseline, candidate), (candidate, baseline)):
        by_others = {name for refusal in other.refused for name in refusal.names}
        for refusal in arm.refused:
            yield _refused(arm, refusal, alone=by_others.isdisjoint(refusal.names))
        known = _REFUSED_WITH_SPECULATION.get(arm.route.engine, ())
        names = tuple(key for key in known if arm.extra_body.get(key) and arm.probe.speculates)
        if names:
            yield _refused_by_route(arm, names)


def _refused(arm: ArmFacts, refusal: Refusal, *, alone: bool) -> PreflightFinding:
    """Return the error for parameters of the workload that a server refused in a trial."""
    names = " and ".join(refusal.names) or "the request"
    speculating = " when it speculates" if alone and arm.probe.speculates else ""
    return error(
        "refused_parameters",
        f"{arm.route.engine} refuses {names}{speculating}: such requests of the {arm.name} "
        "would fail",
        evidence=f"{refusal.failure.error_type}: {refusal.failure}",
        fix=f"remove {names} from the workload or `sampling`, or serve both arms so that they "
        "take it",
    )


def _refused_by_route(arm: ArmFacts, names: tuple[str, ...]) -> PreflightFinding:
    """Return the error for a route's own parameters that the engine is known to refuse."""
    listed = " and ".join(names)
    return error(
        "refused_parameters",
        f"{arm.route.engine} refuses {listed} when it speculates: every request of the "
        f"{arm.name} would fail",
        evidence=f"extra_body of the {arm.name}",
        fix=f"remove {listed} from both arms",
    )


def _scheduling(baseline: ArmFacts, candidate: ArmFacts) -> Iterator[PreflightFinding]:
    method = candidate.probe.setup.configured.method
    scheduling = [arm.probe.async_scheduling for arm in (baseline, candidate)]
    by_method = (
        candidate.route.engine == baseline.route.engine == "vllm"
        and method in _SYNCHRONOUS
        and baseline.probe.speculates is False
        and None in scheduling
    )
    if scheduling == [True, False] or by_method:
        yield warning(
            "async_scheduling",
            "the candidate runs without asynchronous scheduling and the baseline with it: its "
            "cost would be counted against speculation",
            evidence=f"vLLM, method {method}",
            fix="start the baseline with --no-async-scheduling, and read both results",
        )

"""Checks of one arm alone, and of the workload."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from collector.contract import acceptance_collapsed, not_modelled, read_sampler
from engine_adapter.engines import Request, sampling
from engine_adapter.preflight.arms import ArmFacts
from engine_adapter.preflight.findings import PreflightFinding, error, note, warning
from engine_adapter.routes import InProcessRoute
from engine_adapter.run.requests import request_of
from engine_adapter.run.rollout_file import Rollout
from engine_adapter.workload import Prompt

_SHORT_TOKENS = 32
_WITHOUT_PREFIX_CACHE = {
    "vllm": "start it with --no-enable-prefix-caching",
    "sglang": "start it with --disable-radix-cache",
    "llamacpp": "start it with --no-cache-prompt, or set extra_body: {cache_prompt: false}",
}


def of_arm(arm: ArmFacts, longest_answer: int) -> Iterator[PreflightFinding]:
    """Yield the findings on one arm; `longest_answer` is in tokens."""
    yield from _engine(arm)
    yield from _refusal(arm)
    yield from _context(arm, longest_answer)
    yield from _acceptance(arm)
    yield from _drafts(arm)
    yield from _prefix_cache(arm)
    yield from _draft(arm)
    yield from _memory(arm)
    for sentence in arm.probe.advice:
        yield note("advice", sentence, evidence=arm.where, fix="as it says")


def of_sampling(arm: ArmFacts, requests: Sequence[Request]) -> Iterator[PreflightFinding]:
    """Yield notes on the server's sampling defaults, and on steps that no audit can compute."""
    bodies = (request.body("", arm.extra_body) for request in requests)
    sampled = [body for body in bodies if body.get("temperature")]
    defaults = arm.probe.sampling_defaults
    filled = [name for name in defaults if any(name not in body for body in sampled)]
    if filled:
        values = ", ".join(f"{name} {defaults[name]:g}" for name in filled)
        yield note(
            "sampler_defaults",
            f"the {arm.name}'s server samples by {values} if a request does not set them",
            evidence=arm.where,
            fix="set them under `sampling`; top_p: 1 and min_p: 0 turn them off, and top_k: 0 in "
            "the routes' `extra_body`",
        )
    order = arm.probe.sampling_order or sampling.USUAL
    samplers = {sampling.written(body, defaults, order) for body in sampled}
    steps = tuple(step for one in samplers for step in read_sampler(one or ""))
    if unknown := not_modelled(steps):
        yield note(
            "sampler_not_modelled",
            f"the {arm.name} also samples by {', '.join(unknown)}: an audit of sampled answers "
            "cannot compute these, and will be inconclusive",
            evidence=arm.where,
            fix="leave them out of the requests to audit",
        )


def of_workload(rollout: Rollout, prompts: Sequence[Prompt]) -> Iterator[PreflightFinding]:
    """Yield the findings on the workload."""
    limits = [request_of(prompt, rollout.sampling, None).limit for prompt in prompts]
    short = sum(limit < _SHORT_TOKENS for limit in limits)
    if short:
        yield warning(
            "max_tokens",
            f"{short} of {len(limits)} prompts may answer with fewer than {_SHORT_TOKENS} tokens: "
            "the time to first token dominates such answers, and speculation can save little",
            evidence=f"max_tokens from {min(limits)} to {max(limits)}",
            fix="raise `sampling.max_tokens`, unless answers are as short in production",
        )


def _engine(arm: ArmFacts) -> Iterator[PreflightFinding]:
    found, named = arm.probe.served_by, arm.route.engine
    if found not in (None, named) and named != "openai":
        yield error(
            "engine",
            f"the {arm.name} is configured as {named}, but {found} answers: its counts and times "
            "would be read by the wrong engine's rules",
            evidence=f"{arm.where}: its list of models names {found}",
            fix=f"write `engine: {found}`, or check the address",
        )


def _refusal(arm: ArmFacts) -> Iterator[PreflightFinding]:
    if arm.refusal is not None:
        yield error(
            "trial",
            f"the {arm.name} does not answer the workload's longest prompt under the rollout's "
            "own parameters",
            evidence=f"{arm.refusal.error_type}: {arm.refusal}",
            fix="read the error; the request's parameters are from `sampling` and `extra_body`",
        )


def _context(arm: ArmFacts, longest_answer: int) -> Iterator[PreflightFinding]:
    length = arm.probe.context_length
    used = arm.trial.input_tokens if arm.trial else None
    if length is not None and used is not None and used + longest_answer > length:
        yield error(
            "context_length",
            f"the longest prompt and answer do not fit into the {arm.name}'s context",
            evidence=f"{used} + {longest_answer} tokens, and a context of {length}",
            fix="lower max_tokens, shorten the prompt, or serve a longer context",
        )


def _acceptance(arm: ArmFacts) -> Iterator[PreflightFinding]:
    if arm.probe.synthetic_acceptance:
        yield error(
            "synthetic_acceptance",
            f"the {arm.name} simulates acceptance: its answers are worthless",
            evidence=arm.where,
            fix="start the server without its benchmark option for synthetic acceptance",
        )
    elif arm.probe.setup.configured.lossless is False:
        yield warning(
            "lossy",
            f"the {arm.name} accepts draft tokens that the target would not have produced",
            evidence=f"{arm.where}: relaxed acceptance is on",
            fix="turn it off, or let the gate judge quality with a `prove` rule on a score",
        )


def _drafts(arm: ArmFacts) -> Iterator[PreflightFinding]:
    spec = arm.drafted
    if spec is None or spec.accepted_tokens is None or spec.draft_tokens is None:
        return
    if acceptance_collapsed(spec.accepted_tokens, spec.draft_tokens):
        share = spec.accepted_tokens / spec.draft_tokens
        yield warning(
            "acceptance_collapsed",
            f"almost none of the {arm.name}'s draft tokens are accepted: drafting costs time and "
            "saves none",
            evidence=f"{share:.1%} of {spec.draft_tokens:,} in one answer under the rollout's "
            "sampling",
            fix="send the same request at temperature 0: if draft tokens are accepted then, the "
            "engine's sampled verification is broken; else the draft does not fit the model or "
            "the text",
        )


def _prefix_cache(arm: ArmFacts) -> Iterator[PreflightFinding]:
    if arm.probe.prefix_cache:
        yield warning(
            "prefix_cache",
            f"the {arm.name} reuses the prefixes of earlier requests: the second time a prompt "
            "is sent, its prefill is skipped",
            evidence=arm.where,
            fix=_WITHOUT_PREFIX_CACHE.get(arm.route.engine, "turn the cache off for the run"),
        )


def _draft(arm: ArmFacts) -> Iterator[PreflightFinding]:
    if arm.files is None or arm.draft_files is None:
        return
    differing = arm.files.differing_parts(arm.draft_files)
    if differing:
        yield error(
            "draft_tokenizer",
            f"the {arm.name}'s draft has another tokenizer than its target",
            evidence=f"{', '.join(differing)} of {arm.draft_files.folder} differ",
            fix="choose a draft of the target's family",
        )
    if arm.files.family != arm.draft_files.family:
        yield warning(
            "draft_family",
            f"the {arm.name}'s draft has another architecture than its target",
            evidence=f"{arm.draft_files.family} drafts for {arm.files.family}",
            fix="a draft of the same family and training is accepted more often",
        )


def _memory(arm: ArmFacts) -> Iterator[PreflightFinding]:
    route = arm.route
    if not isinstance(route, InProcessRoute) or arm.draft_files is None or arm.files is None:
        return
    target = arm.files.weight_bytes(route.dtype)
    draft = arm.draft_files.weight_bytes(route.dtype)
    left = arm.probe.free_memory_bytes or _available_bytes(route.device)
    if target is not None and draft is not None and draft > target:
        yield warning(
            "draft_size",
            f"the {arm.name}'s draft is larger than its target: it cannot be faster",
            evidence=f"{draft / 1e6:.0f} MB and {target / 1e6:.0f} MB",
            fix="choose a smaller draft",
        )
    # Both models are loaded by now, so the free memory is for the caches.
    if draft is not None and left is not None and left < draft:
        yield warning(
            "memory",
            f"little memory is left beside the {arm.name}'s target and draft",
            evidence=f"{left / 1e6:.0f} MB free; the draft alone takes {draft / 1e6:.0f} MB",
            fix="choose a smaller draft, or another device",
        )


def _available_bytes(device: str) -> int | None:
    """Return Linux's `MemAvailable` for the device `cpu`; `None` otherwise."""
    path = Path("/proc/meminfo")
    if device != "cpu" or not path.is_file():
        return None
    for line in path.read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return None

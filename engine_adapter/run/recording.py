"""Conversion of an observed answer to a turn into the contract's `Generation`."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collector.contract import Arm, Content, Generation
from engine_adapter.engines import EngineInfo
from engine_adapter.engines.observation import ObservedAnswer
from engine_adapter.recording import content_of, generation_of
from engine_adapter.run.journal import SpanIds
from engine_adapter.run.schedule import Turn
from engine_adapter.workload import Prompt


def record(
    turn: Turn,
    asked: Mapping[str, Any],  # Any: JSON values
    observed: ObservedAnswer,
    *,
    ids: SpanIds,
    info: EngineInfo,
    rollout: str,
) -> Generation:
    """Return the generation; values that were not measured stay `None`."""
    generation = generation_of(
        observed, asked, trace_id=ids.trace_id, span_id=ids.span_id, provider=info.provider
    )
    return replace(
        generation,
        rollout=rollout,
        arm=Arm.BASELINE if turn.arm == Arm.BASELINE else Arm.CANDIDATE,
        cohort=turn.prompt.cohort,
        prompt_id=turn.prompt.id if turn.is_end else None,
        repeat=turn.repeat if turn.is_end or turn.sentinel is not None else None,
        conversation_id=None if turn.sentinel is not None else turn.session,
        turn=None if turn.session is None else turn.prompt.turn,
        sentinel=turn.sentinel,
        sentinel_after=turn.after,
        sentinel_answer=None if turn.sentinel is None else _digest(observed),
        own_history=turn.own_history or None,
        route=str(turn.arm),
        look=turn.look,
        looks=turn.looks,
        dims=_dimensions(turn.prompt, generation.request_model),
        content=_content(turn.prompt, content_of(asked, observed.answer)),
        fingerprint=info.fingerprint,
        engine_version=info.version,
    )


def _digest(observed: ObservedAnswer) -> str | None:
    """Return the digest of an answer, equal for equal ones; `None` if the request failed."""
    answer = observed.answer
    if answer is None or observed.error is not None:
        return None
    calls = [[call.name, call.arguments] for call in answer.tool_calls]
    said = json.dumps([answer.reasoning, answer.text, calls, answer.finish_reason])
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def _dimensions(prompt: Prompt, model: str | None) -> Mapping[str, str]:
    """Return the prompt's dimensions and the requested model, such as a LoRA adapter."""
    return ({} if model is None else {"model": model}) | dict(prompt.dimensions)


def _content(prompt: Prompt, content: Content) -> Content:
    """Return the content with the prompt's context and reference, and its schema if it has one."""
    reference, schema = prompt.reference, prompt.output_schema
    return replace(
        content,
        context=prompt.context,
        reference=reference
        if reference is None or isinstance(reference, str)
        else _json(reference),
        output_schema=_json(schema) if schema is not None else content.output_schema,
    )


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, sort_keys=True)

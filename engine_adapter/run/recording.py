"""An observed answer to a turn as the contract's record of a generation."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collector.contract import Content, Generation
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
    """Return the generation; what nobody measured stays absent."""
    said = generation_of(
        observed, asked, trace_id=ids.trace_id, span_id=ids.span_id, provider=info.provider
    )
    return replace(
        said,
        rollout=rollout,
        arm=turn.arm,
        cohort=turn.prompt.cohort,
        prompt_id=turn.prompt.id,
        repeat=turn.repeat,
        route=turn.arm.value,
        dims=turn.prompt.dimensions,
        content=_content(turn.prompt, content_of(asked, observed.answer)),
        fingerprint=info.fingerprint,
    )


def _content(prompt: Prompt, said: Content) -> Content:
    """Return the content, with what the answer is judged against."""
    reference, schema = prompt.reference, prompt.judged_schema
    return replace(
        said,
        context=prompt.context,
        reference=reference
        if reference is None or isinstance(reference, str)
        else _json(reference),
        output_schema=_json(schema) if schema is not None else None,
    )


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, sort_keys=True)

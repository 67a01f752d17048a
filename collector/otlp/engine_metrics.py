"""The metrics that are an engine's and stored; all others are accepted and ignored."""

PREFIXES = {
    "vllm:": "vLLM, as its /metrics has it",
    "vllm.": "vLLM, through a pipeline that takes no colon",
    "sglang:": "SGLang",
    "sglang.": "SGLang, through a pipeline that takes no colon",
    "tgi_": "Text Generation Inference",
    "llamacpp:": "llama.cpp",
    "llamacpp.": "llama.cpp, through a pipeline that takes no colon",
    "DCGM_FI_": "NVIDIA's GPU exporter",
    "gen_ai.server.": "the GenAI conventions' server metrics",
    "draftgate.engine.": "Draftgate's own",
}
"""Prefixes of metric names, and the source of such metrics."""

_PREFIXES = tuple(PREFIXES)


def is_engine_metric(name: str) -> bool:
    """Return whether the metric with this name is an engine's."""
    return name.startswith(_PREFIXES)

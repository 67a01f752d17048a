"""Which metrics are an engine's: these are stored, every other is accepted and ignored."""

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
"""Beginning of the name to whose it is."""

_PREFIXES = tuple(PREFIXES)


def is_engine_metric(name: str) -> bool:
    """Say whether the metric of this name is an engine's."""
    return name.startswith(_PREFIXES)

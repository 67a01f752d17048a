"""The demo's three candidates, as rollout files on the shipped models and prompts."""

from pathlib import Path
from typing import Any

from demo.candidate import Candidate

HERE = Path(__file__).parent
WORKLOAD = HERE / "workload.jsonl"
TARGET = HERE / "models" / "target"
DRAFT = HERE / "models" / "draft"

POLICY = "demo"
IDENTITY_LAYERS = 8
"""Layers that do not change the output, appended so that the target costs more than the draft."""
FULL_PAIRS = 160
"""40 a cohort."""
THIN_PAIRS = 20


def candidates(pairs: int | None = None) -> tuple[Candidate, ...]:
    """Return the candidates; with `pairs`, the first two at that size and no third."""
    full = pairs or FULL_PAIRS
    good = Candidate(
        name="good",
        claim="drafts 4 tokens per step and keeps only what the target would have said",
        rollout=_rollout(full),
    )
    broken = Candidate(
        name="broken",
        claim="keeps every draft token that the target ranks in its top 10: lossy",
        rollout=_rollout(full, relaxed_top_k=10),
    )
    thin = Candidate(
        name="thin",
        claim=f"is the good one, judged on {THIN_PAIRS} pairs",
        rollout=_rollout(THIN_PAIRS),
    )
    return (good, broken) if pairs else (good, broken, thin)


def _rollout(pairs: int, **lossy: int) -> dict[str, Any]:  # Any: YAML
    target = {"engine": "transformers", "model": str(TARGET), "identity_layers": IDENTITY_LAYERS}
    draft = {"draft_model": str(DRAFT), "num_speculative_tokens": 4}
    return {
        "workload": str(WORKLOAD),
        "baseline": target,
        "candidate": target | draft | lossy,
        "sampling": {"temperature": 0, "max_tokens": 64, "seed": 7},
        "load": {"concurrency": 1, "order": "abba", "warmup": 4, "max_prompts": pairs},
    }

"""The demo's three candidates, as rollout files on the shipped models and prompts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
WORKLOAD = HERE / "workload.jsonl"
TARGET = HERE / "models" / "target"
DRAFT = HERE / "models" / "draft"

IDENTITY_LAYERS = 8
"""Layers that do not change the output, appended so that the target costs more than the draft."""
FULL_PAIRS = 160
"""40 a cohort."""
THIN_PAIRS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One release under test."""

    name: str
    claim: str
    """Its distinguishing property, in one sentence."""
    pairs: int
    relaxed_top_k: int | None = None

    @property
    def rollout(self) -> str:
        """The name under which its generations are stored."""
        return f"demo-{self.name}"

    def document(self, collector_url: str) -> dict[str, Any]:  # Any: YAML
        """Return the rollout file's content."""
        target = {
            "engine": "transformers",
            "model": str(TARGET),
            "identity_layers": IDENTITY_LAYERS,
        }
        draft = {"draft_model": str(DRAFT), "num_speculative_tokens": 4}
        lossy = {} if self.relaxed_top_k is None else {"relaxed_top_k": self.relaxed_top_k}
        return {
            "rollout": self.rollout,
            "workload": str(WORKLOAD),
            "baseline": target,
            "candidate": target | draft | lossy,
            "sampling": {"temperature": 0, "max_tokens": 64, "seed": 7},
            "load": {"concurrency": 1, "order": "abba", "warmup": 4, "max_prompts": self.pairs},
            "collector": {"url": collector_url},
        }

    def write(self, folder: Path, collector_url: str) -> Path:
        """Write the rollout file into the folder and return its path."""
        path = folder / f"{self.name}.yaml"
        path.write_text(yaml.safe_dump(self.document(collector_url), sort_keys=False))
        return path


def candidates(pairs: int | None = None) -> tuple[Candidate, ...]:
    """Return the candidates; with `pairs`, the first two at that size and no third."""
    full = pairs or FULL_PAIRS
    good = Candidate(
        name="good",
        claim="drafts 4 tokens a step and keeps only what the target would have said",
        pairs=full,
    )
    broken = Candidate(
        name="broken",
        claim="keeps every draft token that the target ranks in its top 10: lossy",
        pairs=full,
        relaxed_top_k=10,
    )
    thin = Candidate(
        name="thin", claim=f"is the good one, judged on {THIN_PAIRS} pairs", pairs=THIN_PAIRS
    )
    return (good, broken) if pairs else (good, broken, thin)

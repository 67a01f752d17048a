"""The candidate of the demo on a real model, as a rollout file that starts its own servers."""

import shlex
import sys
from pathlib import Path
from typing import Any

from demo.candidate import Candidate

POLICY = "demo-real"
WORKLOAD = Path(__file__).parent / "workload.jsonl"
PAIRS = 128
"""32 a cohort."""
_MATCHING_TOKENS = 3
_DRAFT_TOKENS = 6
_THREADS = 2


def candidates(model: Path, pairs: int | None = None) -> tuple[Candidate, ...]:
    """Return the one candidate, over the GGUF file."""
    serve = shlex.join([sys.executable, "-m", "demo.real.llamacpp_server", str(model)])
    route = {"engine": "llamacpp", "model": "served", "url": "http://127.0.0.1:{port}/v1"}
    baseline = f"{serve} --threads {_THREADS} --port {{port}}"
    candidate = f"{baseline} --ngram {_MATCHING_TOKENS} --draft-tokens {_DRAFT_TOKENS}"
    rollout: dict[str, Any] = {  # Any: YAML
        "workload": str(WORKLOAD),
        "baseline": route | {"start": baseline},
        "candidate": route | {"start": candidate},
        "sampling": {"temperature": 0, "seed": 7},
        "load": {"concurrency": 1, "order": "abba", "warmup": 4, "max_prompts": pairs or PAIRS},
    }
    claim = (
        f"drafts the {_DRAFT_TOKENS} tokens that followed the last {_MATCHING_TOKENS} "
        "where the text had them before"
    )
    return (Candidate(name="ngram", claim=claim, rollout=rollout),)

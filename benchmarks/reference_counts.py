"""Speculation counts of the local loop against llama.cpp and vLLM: same prompts, pair, k, greedy.

Each engine serves the demo's target model on the CPU in float32 and answers the demo's first twenty
prompts. The local loop answers them too, and again by that engine's rules
(`tests/support/engine_rules.py`): then every answer's counts, also by position, must be equal. vLLM
runs from the environment created by `make engines`, and is skipped without it.

    python -m benchmarks.reference_counts
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import engine_environments
import engine_rules
import gguf_model
import llamacpp_server
import vllm_server
from twenty_prompts import MODELS, Answers

from engine_adapter.engines.acceptance_counts import SpeculationCounts
from engine_adapter.engines.local import Drafter
from engine_adapter.engines.model_folder import ModelShelf
from engine_adapter.routes import HttpEngineName, HttpRoute, LocalRoute

TARGET, DRAFT = MODELS / "target", MODELS / "draft"
K = llamacpp_server.DRAFT_TOKENS


class EngineSetup(NamedTuple):
    """An engine's drafting configuration, and the corresponding one of the loop."""

    engine: HttpEngineName
    method: str
    serve: Callable[[], AbstractContextManager[str]]
    drafting: Callable[[ModelShelf], Drafter]
    own: dict[str, Any]
    """Fields of the loop's route besides target and k."""


def setups(folder: Path) -> Iterator[EngineSetup]:
    """Write llama.cpp's model files, and yield the setups that can run here."""
    draft = {"method": "draft_model", "draft_model": str(DRAFT)}
    lookup = {"method": "prompt_lookup"}
    for name in ("target", "draft"):
        gguf_model.write(MODELS / name, folder / f"{name}.gguf")
    serve = partial(llamacpp_server.serving, folder / "target.gguf")
    drafted = partial(serve, draft=folder / "draft.gguf")
    yield EngineSetup("llamacpp", "draft-simple", drafted, engine_rules.by_draft_model, draft)
    looked_up = partial(serve, ngram=True)
    yield EngineSetup("llamacpp", "ngram-simple", looked_up, engine_rules.by_latest_pair, lookup)
    if engine_environments.python_of("vllm") is None:
        print("vLLM is not installed for this; run `make engines`", file=sys.stderr)
        return
    asked = {"method": "draft_model", "model": str(DRAFT), "num_speculative_tokens": K}
    serve_vllm = partial(vllm_server.serving, TARGET)
    drafted = partial(serve_vllm, speculation=asked)
    yield EngineSetup("vllm", "draft_model", drafted, engine_rules.by_draft_model, draft)
    lengths = {"prompt_lookup_min": 1, "prompt_lookup_max": 2}
    asked = {"method": "ngram", "num_speculative_tokens": K} | lengths
    looked_up = partial(serve_vllm, speculation=asked)
    yield EngineSetup("vllm", "ngram", looked_up, engine_rules.by_earliest_match, lookup)


def compared(setup: EngineSetup) -> dict[str, Any]:
    """Return the sums, and how many answers have equal text and equal counts."""
    with setup.serve() as root:
        theirs = Answers(HttpRoute(engine=setup.engine, url=f"{root}/v1", model="served"))
    route = {"engine": "local", "model": str(TARGET), "num_speculative_tokens": K} | setup.own
    ours = Answers(LocalRoute.model_validate(route))
    ruled = engine_rules.counted(setup.drafting, K)
    counts: list[SpeculationCounts] = [getattr(one, setup.engine) for one in ruled]
    said = [completion.speculation for completion in theirs.completions]
    pairs = list(zip(said, counts, strict=True))
    return {
        "engine": setup.engine,
        "version": theirs.probe.version,
        "method": setup.method,
        "said": theirs.totals,
        "by_its_rules": tuple(sum(one[i] for one in counts) for i in range(3)),
        "as_it_is": ours.totals,
        "equal_texts": sum(a == b for a, b in zip(theirs.texts, ours.texts, strict=True)),
        "equal_counts": sum(not engine_rules.differing(*pair) for pair in pairs),
        "answers": len(said),
    }


def main() -> int:
    """Print a row per setup, and one JSON document last; exit 1 if a count differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for setup in setups(Path(folder)):
            rows.append(compared(setup))
            print(json.dumps(rows[-1]), flush=True)
    same = all(row["equal_counts"] == row["equal_texts"] == row["answers"] for row in rows)
    print(json.dumps({"benchmark": "reference_counts", "k": K, "same": same, "rows": rows}))
    return int(not same)


if __name__ == "__main__":
    raise SystemExit(main())

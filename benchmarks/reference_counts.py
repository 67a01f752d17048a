"""The loop's counts beside those of llama.cpp and vLLM: the same prompts, pair and k, greedy.

Each engine serves the demo's target on the CPU in 32 bits and answers the demo's first twenty
prompts; the loop answers them as it is, and by that engine's rules
(`tests/support/engine_rules.py`), where each answer's counts, also those by position, are to be
equal. vLLM runs from the environment that `make engines` makes, and is left out without it.

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


class Way(NamedTuple):
    """An engine's way to draft, and the loop's."""

    engine: HttpEngineName
    method: str
    serve: Callable[[], AbstractContextManager[str]]
    drafting: Callable[[ModelShelf], Drafter]
    own: dict[str, Any]
    """The loop's route, beside target and k."""


def ways(folder: Path) -> Iterator[Way]:
    """Write what llama.cpp reads, and yield what can run here."""
    draft = {"method": "draft_model", "draft_model": str(DRAFT)}
    lookup = {"method": "prompt_lookup"}
    for name in ("target", "draft"):
        gguf_model.write(MODELS / name, folder / f"{name}.gguf")
    serve = partial(llamacpp_server.serving, folder / "target.gguf")
    drafted = partial(serve, draft=folder / "draft.gguf")
    yield Way("llamacpp", "draft-simple", drafted, engine_rules.by_draft_model, draft)
    looked_up = partial(serve, ngram=True)
    yield Way("llamacpp", "ngram-simple", looked_up, engine_rules.by_latest_pair, lookup)
    if engine_environments.python_of("vllm") is None:
        print("vLLM is not installed for this; run `make engines`", file=sys.stderr)
        return
    asked = {"method": "draft_model", "model": str(DRAFT), "num_speculative_tokens": K}
    serve_vllm = partial(vllm_server.serving, TARGET)
    drafted = partial(serve_vllm, speculation=asked)
    yield Way("vllm", "draft_model", drafted, engine_rules.by_draft_model, draft)
    lengths = {"prompt_lookup_min": 1, "prompt_lookup_max": 2}
    asked = {"method": "ngram", "num_speculative_tokens": K} | lengths
    looked_up = partial(serve_vllm, speculation=asked)
    yield Way("vllm", "ngram", looked_up, engine_rules.by_earliest_match, lookup)


def compared(way: Way) -> dict[str, Any]:
    """Return the sums, and how many of the answers are the same in text and in counts."""
    with way.serve() as root:
        theirs = Answers(HttpRoute(engine=way.engine, url=f"{root}/v1", model="served"))
    route = {"engine": "local", "model": str(TARGET), "num_speculative_tokens": K} | way.own
    ours = Answers(LocalRoute.model_validate(route))
    ruled = engine_rules.counted(way.drafting, K)
    counts: list[SpeculationCounts] = [getattr(one, way.engine) for one in ruled]
    said = [completion.speculation for completion in theirs.completions]
    pairs = list(zip(said, counts, strict=True))
    return {
        "engine": way.engine,
        "version": theirs.probe.version,
        "method": way.method,
        "said": theirs.totals,
        "by_its_rules": tuple(sum(one[i] for one in counts) for i in range(3)),
        "as_it_is": ours.totals,
        "equal_texts": sum(a == b for a, b in zip(theirs.texts, ours.texts, strict=True)),
        "equal_counts": sum(not engine_rules.differing(*pair) for pair in pairs),
        "answers": len(said),
    }


def main() -> int:
    """Print a row a way, and one JSON document last; exit 1 where a count differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for way in ways(Path(folder)):
            rows.append(compared(way))
            print(json.dumps(rows[-1]), flush=True)
    same = all(row["equal_counts"] == row["equal_texts"] == row["answers"] for row in rows)
    print(json.dumps({"benchmark": "reference_counts", "k": K, "same": same, "rows": rows}))
    return int(not same)


if __name__ == "__main__":
    raise SystemExit(main())

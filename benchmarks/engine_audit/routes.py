"""The routes of a cell's arms, with the commands that start their servers."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import vllm_server

from benchmarks.engine_audit.cells import DRAFT_TOKENS, TINY, Cell
from benchmarks.engine_audit.models import Pair
from demo.story import DRAFT, IDENTITY_LAYERS
from demo.story import TARGET as SHIPPED_TARGET

_HERE: Final = Path(__file__).parent
_URL: Final = "http://127.0.0.1:{port}/v1"
_MATCHING_TOKENS: Final = 2
_START_TIMEOUT_S: Final = 1800
"""A server takes long to start beside other work."""
_ONE_THREAD: Final = {"NUMBA_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
"""Threads that wait for each other by spinning take a shared machine's time from each other."""


def route(cell: Cell, models: Pair, python: Path, *, speculates: bool) -> dict[str, Any]:
    """Return the route of an arm, as a rollout file has it."""
    if cell.engine == "transformers":
        return _transformers(cell, models, speculates=speculates)
    start = _STARTS[cell.engine](cell, models, python, speculates=speculates)
    return {"engine": cell.engine, "model": "served", "url": _URL, "start": start,
            "start_timeout_s": _START_TIMEOUT_S}  # fmt: skip


def _transformers(cell: Cell, models: Pair, *, speculates: bool) -> dict[str, Any]:
    target: dict[str, Any] = {"engine": "transformers", "model": str(models.target)}
    draft = models.draft
    if cell.model == TINY:
        target |= {"model": str(SHIPPED_TARGET), "identity_layers": IDENTITY_LAYERS}
        draft = DRAFT
    if not speculates:
        return target
    if cell.method == "prompt_lookup":
        return target | {"prompt_lookup_num_tokens": DRAFT_TOKENS}
    return target | {"draft_model": str(draft), "num_speculative_tokens": DRAFT_TOKENS}


def _llamacpp(cell: Cell, models: Pair, python: Path, *, speculates: bool) -> str:
    command = [str(python), str(_HERE / "llamacpp_release.py"), str(models.target_gguf)]
    command += ["--port", "{port}"]
    drafts = {"draft_model": ["--draft", str(models.draft_gguf)],
              "ngram": ["--ngram", str(_MATCHING_TOKENS)]}  # fmt: skip
    if speculates:
        command += [*drafts[cell.method], "--draft-tokens", str(DRAFT_TOKENS)]
    return shlex.join(command)


def _vllm(cell: Cell, models: Pair, python: Path, *, speculates: bool) -> str:
    drafts: Mapping[str, Mapping[str, Any]] = {
        "draft_model": {"model": str(models.draft)},
        "ngram": {"prompt_lookup_min": _MATCHING_TOKENS, "prompt_lookup_max": 4},
        "suffix": {},
    }
    speculation = {"method": cell.method, "num_speculative_tokens": DRAFT_TOKENS}
    command = vllm_server.command_of(
        python,
        models.target,
        "{port}",
        speculation=speculation | dict(drafts[cell.method]) if speculates else None,
    )
    if cell.decoding == "tools":
        command += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    settings = [f"{name}={value}" for name, value in (vllm_server.SETTINGS | _ONE_THREAD).items()]
    return shlex.join(["env", *settings, *command])


_STARTS: Final = {"llamacpp": _llamacpp, "vllm": _vllm}

"""Facts about one arm, gathered for the checks from its files, its engine and trial answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collector.contract import Speculation
from engine_adapter.engines import Answer, Engine, Probe, Request
from engine_adapter.engines.http_engine import HttpEngine
from engine_adapter.engines.observation import observe
from engine_adapter.engines.self_description import server_root
from engine_adapter.errors import GenerationError
from engine_adapter.preflight.model_files import ModelFiles
from engine_adapter.preflight.refusals import Refusal, limited, refusals, shortened
from engine_adapter.routes import HttpRoute, InProcessRoute, Route

_DRAFTING = 128
"""Most tokens of the trial answer that shows whether draft tokens are accepted at all."""
_TEXTS = (
    "The quick brown fox: 12,345.67 — naïve café, Straße, 東京, 🙂!",
    'def f(x):\n\treturn {"a": [x, None]}  # comment\n\n',
    "  leading, trailing and   inner spaces  ",
    "<|im_start|>user<|im_end|></s><s>[INST]",
)
"""Texts that tokenizers of different families split differently: digits, accents, scripts, spaces,
markers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFacts:
    """One arm's route, its engine's description, its model files, and its trial answers."""

    name: str
    route: Route
    probe: Probe
    files: ModelFiles | None
    draft_files: ModelFiles | None
    token_ids: tuple[tuple[int, ...], ...] | None
    """The server's tokens of fixed texts; `None` if it has no tokenize route."""
    trial: Answer | None
    """The answer to the longest prompt, with the rollout's sampling; `None` if it failed."""
    drafted: Speculation | None
    """Draft token counts of a longer answer; `None` if unknown."""
    refusal: GenerationError | None
    """Why the trial failed."""
    refused: tuple[Refusal, ...]
    """The workload's parameters that the server refuses."""

    @property
    def extra_body(self) -> Mapping[str, object]:
        """Parameters that the route adds to each request."""
        return self.route.extra_body if isinstance(self.route, HttpRoute) else {}

    @property
    def where(self) -> str:
        """The arm's name, engine and URL, for messages."""
        at = self.route.url if isinstance(self.route, HttpRoute) else "in this process"
        return f"{self.name} ({self.route.engine}, {at})"


async def gather_facts(
    name: str, route: Route, engine: Engine, longest: Request, requests: Sequence[Request]
) -> ArmFacts:
    """Gather an arm's facts; sends it trial requests, one with each set of parameters."""
    observed = await observe(engine, shortened(longest), concurrency=1, due_s=None)
    probe = await engine.probe()
    draft = route.draft_model if isinstance(route, InProcessRoute) else None
    return ArmFacts(
        name=name,
        route=route,
        probe=probe,
        files=_files(probe.model_folder or route.model),
        draft_files=_files(draft),
        token_ids=await _token_ids(engine),
        trial=observed.answer if observed.error is None else None,
        drafted=await _drafted(engine, longest) if probe.speculates else None,
        refusal=observed.error,
        refused=await refusals(engine, requests),
    )


async def _drafted(engine: Engine, request: Request) -> Speculation | None:
    """Return the draft token counts of an answer of up to `_DRAFTING` tokens."""
    observed = await observe(engine, limited(request, _DRAFTING), concurrency=1, due_s=None)
    if observed.error is not None or observed.answer is None:
        return None
    return observed.answer.speculation


def _files(folder: str | None) -> ModelFiles | None:
    if folder is None or not (Path(folder) / "config.json").is_file():
        return None
    return ModelFiles(Path(folder))


async def _token_ids(engine: Engine) -> tuple[tuple[int, ...], ...] | None:
    """Return the server's tokens of `_TEXTS`; `None` if it has no tokenize route."""
    if not isinstance(engine, HttpEngine):
        return None
    found = []
    for text in _TEXTS:
        body = {
            "model": engine.route.model,
            "prompt": text,  # vLLM, SGLang
            "content": text,  # llama.cpp
            "add_special_tokens": False,
            "add_special": False,
        }
        try:
            reply = await engine.client.post(server_root(engine.client.url) + "/tokenize", body)
            tokens = reply.json()["tokens"]
        except (GenerationError, KeyError, TypeError):
            return None
        if not isinstance(tokens, list) or not all(isinstance(token, int) for token in tokens):
            return None
        found.append(tuple(tokens))
    return tuple(found)

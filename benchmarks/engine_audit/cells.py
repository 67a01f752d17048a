"""The audit's cells: a release, a drafting method, a way of decoding, and requests in flight."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

RELEASES: Final[Mapping[str, tuple[str, ...]]] = {
    "llamacpp": ("2026.10.11549", "2026.4.8929", "2026.7.10068"),
    "vllm": ("0.32.0", "0.29.0", "0.31.0", "0.30.0"),
    "transformers": ("5.23.0", "5.0.0", "5.12.1"),
}
"""Newest, oldest, then those between: the order of the audit."""
METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "llamacpp": ("draft_model", "ngram"),
    "vllm": ("draft_model", "ngram", "suffix"),
    "transformers": ("draft_model", "prompt_lookup"),
}
IN_FLIGHT: Final = (1, 8)
DRAFT_TOKENS: Final = 4


class Decoding(NamedTuple):
    """A way of decoding, and the requests that show it."""

    words: str
    sampling: Mapping[str, Any]  # Any: parameters of the API
    workload: str
    """`demo`, or a cohort of the shipped workload `structured`."""


_SAMPLED: Final = {"temperature": 0.7}
DECODINGS: Final[Mapping[str, Decoding]] = {
    "greedy": Decoding("greedy", {"temperature": 0}, "demo"),
    "sampled": Decoding("T 0.7", _SAMPLED, "demo"),
    "json": Decoding("greedy, JSON by schema", {"temperature": 0}, "json"),
    "tools": Decoding("greedy, tools", {"temperature": 0}, "tool_call"),
    "top_p": Decoding("T 0.7, top-p 0.9", _SAMPLED | {"top_p": 0.9}, "demo"),
    "unit": Decoding("T 1", {"temperature": 1}, "demo"),
    "hot": Decoding("T 1.5", {"temperature": 1.5}, "demo"),
    "top_k": Decoding("T 0.7, top-k 20", _SAMPLED | {"top_k": 20}, "demo"),
}
"""In the order of the audit: what may end a server comes last."""
GRID: Final = tuple(name for name in DECODINGS if name not in ("unit", "hot"))
"""The cells of every release; the others show the effect of a patch."""
_TELLING: Final = ((1, "greedy"), (1, "sampled"), (8, "greedy"), (8, "json"), (1, "top_k"))
_PROMPTS: Final = {"demo": 32, "json": 32, "tool_call": 32}
_SAMPLED_PROMPTS: Final = 150
"""About 4,400 tokens; llama.cpp and vLLM show gross faults in fewer."""
TINY, REAL = "tiny", "smollm2"
"""The demo's pair, and SmolLM2-135M-Instruct."""
_REAL_PROMPTS: Final = {"llamacpp": 40, "transformers": 16}
"""Of the demo on a real model; transformers answers ten tokens a second."""
_GRAMMAR: Final = ("json", "tools")


class Cell(NamedTuple):
    """One rollout of the audit."""

    engine: str
    release: str
    method: str
    decoding: str
    in_flight: int
    patch: str | None = None
    """The patch of the candidate's code, which plants a fault or mends one."""
    model: str = TINY

    @property
    def name(self) -> str:
        """The rollout's name."""
        parts = [self.engine, self.release, self.method, self.decoding, f"c{self.in_flight}"]
        parts += [self.model] if self.model != TINY else []
        return "-".join([*parts, self.patch] if self.patch else parts)

    @property
    def prompts(self) -> int:
        """How many prompts it asks of each arm: a fault shows itself in far fewer than a pass."""
        if self.model == REAL:
            return _REAL_PROMPTS[self.engine]
        found = DECODINGS[self.decoding]
        if self.engine == "transformers" and found.sampling["temperature"] > 0:
            return _SAMPLED_PROMPTS
        return _PROMPTS[found.workload]

    @property
    def unavailable(self) -> str | None:
        """Why it cannot be run; `None` if it can."""
        if self.engine == "transformers" and self.decoding in _GRAMMAR:
            return "in the client's process it takes no grammar and no tools"
        if self.engine == "transformers" and self.in_flight > 1:
            return "in the client's process it answers one request at a time"
        if self[:2] == ("vllm", "0.30.0"):
            return "its worker ends at the first draft token that it verifies"
        return None


PATCHED: Final = (
    Cell("transformers", "5.23.0", "draft_model", "greedy", 1, "untested-draft"),
    Cell("transformers", "5.23.0", "draft_model", "greedy", 1, "one-more-accepted"),
    Cell("transformers", "5.23.0", "draft_model", "greedy", 1, "wrong-bonus"),
    Cell("transformers", "5.23.0", "draft_model", "sampled", 1, "generous"),
    Cell("transformers", "5.23.0", "draft_model", "sampled", 1, "no-residual"),
    Cell("transformers", "5.23.0", "draft_model", "hot", 1, "generous"),
    Cell("transformers", "5.23.0", "draft_model", "hot", 1, "no-residual"),
    Cell("vllm", "0.32.0", "draft_model", "sampled", 1, "mended-expand"),
)
"""Patches of releases, each in a copy of its environment."""
ON_REAL_MODEL: Final = (
    *(Cell("transformers", "5.23.0", "draft_model", decoding, 1, patch, REAL)
      for decoding in ("unit", "sampled") for patch in (None, "no-residual", "generous")),
    *(Cell("llamacpp", "2026.10.11549", "ngram", decoding, 1, None, REAL)
      for decoding in ("greedy", "sampled", "top_p")),
)  # fmt: skip
"""Sampled answers of many likely tokens, which the tiny target does not give."""


def cells() -> Iterator[Cell]:
    """Yield all cells, the most telling first: those of the newest and the oldest releases."""
    yield from telling_cells()
    yield from _wave(first=False)


def telling_cells() -> Iterator[Cell]:
    """Yield the first of these: what shows most faults in least time."""
    yield from _wave(first=True)
    yield from PATCHED
    yield from ON_REAL_MODEL


def _wave(*, first: bool) -> Iterator[Cell]:
    for number in range(max(map(len, RELEASES.values()))):
        for engine, releases in RELEASES.items():
            for release in releases[number : number + 1]:
                yield from _of_release(engine, release, first=first)


def _of_release(engine: str, release: str, *, first: bool) -> Iterator[Cell]:
    for method in METHODS[engine]:
        telling = _TELLING if method == METHODS[engine][0] else _TELLING[:2]
        others = [(n, name) for n in IN_FLIGHT for name in GRID if (n, name) not in telling]
        for in_flight, decoding in telling if first else others:
            yield Cell(engine, release, method, decoding, in_flight)

"""The in-process engine: real (random) models, real `generate`, counts checked against the text."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from recorded_runs import items_of, request

from collector.contract import Generation, Speculation, violations
from engine_adapter.engines import Answer, Chunk, Engine, EngineOpener, Item, Request
from engine_adapter.engines.model_folder import ModelKey, ModelShelf, deepen
from engine_adapter.engines.relaxed_acceptance import relax
from engine_adapter.errors import EngineSetupError, GenerationError
from engine_adapter.routes import TransformersRoute

PROMPTS = ["the order was shipped on monday", "will arrive soon", "by north way and by north way"]


def opened(opener: EngineOpener, route: TransformersRoute) -> Engine:
    return asyncio.run(opener.open(route))


def items(engine: Engine, asked: Request) -> list[Item]:
    async def collect() -> list[Item]:
        return [item async for item in engine.generate(asked)]

    return asyncio.run(collect())


Answered = tuple[list[Chunk], Answer]
Ask = Callable[..., list[Answered]]


@pytest.fixture(scope="session")
def ask() -> Ask:
    """Return a route's answers to all prompts."""
    opener = EngineOpener()

    def answers(max_tokens: int = 24, temperature: float = 0.0, **route: object) -> list[Answered]:
        engine = opened(opener, TransformersRoute.model_validate(route))
        found = []
        for prompt in PROMPTS:
            asked = request(prompt, max_tokens=max_tokens, temperature=temperature)
            *chunks, completion = items(engine, asked)
            assert isinstance(completion, Answer)
            assert all(isinstance(chunk, Chunk) for chunk in chunks)
            found.append((chunks, completion))
        return found

    return answers


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("method", ["draft_model", "prompt_lookup"])
def test_greedy_speculation_changes_no_token(
    ask: Ask, random_pair: dict[str, Path], method: str, k: int
) -> None:
    """Greedy answers in fp32 are the baseline's, whichever way the route speculates."""
    route: dict[str, object] = {"model": str(random_pair["target"])}
    plain = [completion.text for _, completion in ask(**route)]
    if method == "draft_model":
        route |= {"draft_model": str(random_pair["draft"]), "num_speculative_tokens": k}
    else:
        route |= {"prompt_lookup_num_tokens": k}
    assert [completion.text for _, completion in ask(**route)] == plain


def test_baseline_streams_one_token_a_chunk_and_speaks_of_no_speculation(
    ask: Ask, random_pair: dict[str, Path]
) -> None:
    """Without speculation each forward pass emits one token, and the counts are absent, not 0."""
    for chunks, completion in ask(model=str(random_pair["target"])):
        assert [chunk.tokens for chunk in chunks] == [1] * len(chunks)
        assert completion.output_tokens == len(chunks)
        assert completion.speculation is None


def test_counts_of_a_draft_model_obey_every_law_and_explain_the_output(
    ask: Ask, random_pair: dict[str, Path]
) -> None:
    """Counts break no conservation law, and output tokens = accepted + one bonus token a pass.

    The last pass may lack its bonus token, where the text ended inside an accepted run.
    """
    accepted = 0
    for chunks, completion in ask(
        model=str(random_pair["target"]),
        draft_model=str(random_pair["draft"]),
        num_speculative_tokens=4,
    ):
        spec = completion.speculation
        assert (spec.method, spec.draft_model, spec.num_speculative_tokens) == (
            "draft_model",
            "draft",
            4,
        )
        assert (spec.source, spec.lossless) == ("request", True)
        assert violations(generation_with(spec)) == ()
        bonus = completion.output_tokens - spec.accepted_tokens
        assert bonus in {len(chunks), len(chunks) - 1}
        assert [chunk.at_s for chunk in chunks] == sorted(chunk.at_s for chunk in chunks)
        accepted += spec.accepted_tokens
    assert accepted > 0


def test_prompt_lookup_counts_only_the_passes_that_verified_a_draft(
    ask: Ask, random_pair: dict[str, Path]
) -> None:
    """A forward pass for which prompt lookup found no match is no verify step."""
    answers = ask(model=str(random_pair["target"]), prompt_lookup_num_tokens=3)
    for chunks, completion in answers:
        assert completion.speculation.steps < len(chunks)
        assert violations(generation_with(completion.speculation)) == ()


def test_a_relaxed_route_says_that_it_is_lossy_and_changes_answers(
    ask: Ask, random_pair: dict[str, Path]
) -> None:
    """Accepting what the target merely finds likely changes the text, and the span says so."""
    target = str(random_pair["target"])
    plain = [completion.text for _, completion in ask(model=target)]
    relaxed = [
        completion
        for _, completion in ask(
            model=target, draft_model=str(random_pair["draft"]), relaxed_top_k=8
        )
    ]
    assert [completion.text for completion in relaxed] != plain
    assert all(c.speculation is not None and c.speculation.lossless is False for c in relaxed)


def test_relax_moves_only_positions_whose_draft_the_target_ranks_high() -> None:
    """A top-k draft token leads its position; other drafts and the bonus row stay as they are."""
    logits = torch.tensor([[[9.0, 5.0, 1.0], [9.0, 5.0, 1.0], [9.0, 5.0, 1.0]]])
    relaxed = relax(logits, (1, 2), top_k=2)
    assert relaxed.tolist() == [[[9.0, 10.0, 1.0], [9.0, 5.0, 1.0], [9.0, 5.0, 1.0]]]


def test_identity_layers_change_no_logit(random_pair: dict[str, Path]) -> None:
    """A deepened target computes the same logits to the bit."""
    model = ModelShelf().load(ModelKey(str(random_pair["target"]), "cpu", "float32")).model
    ids = torch.arange(4, 16)[None]
    with torch.no_grad():
        assert torch.equal(deepen(model, 3)(ids).logits, model(ids).logits)
    assert deepen(model, 3).config.num_hidden_layers == 5


def test_sampling_is_reproducible_by_seed(ask: Ask, random_pair: dict[str, Path]) -> None:
    """The same seed draws the same answer on the same route."""
    route = {"model": str(random_pair["target"])}
    first, second = ask(temperature=1.0, **route), ask(temperature=1.0, **route)
    assert [c.text for _, c in first] == [c.text for _, c in second]
    assert [c.text for _, c in first] != [c.text for _, c in ask(**route)]


def test_an_answer_cut_by_max_tokens_says_length(ask: Ask, random_pair: dict[str, Path]) -> None:
    """The finish reason tells a complete answer from a cut one."""
    for _, completion in ask(model=str(random_pair["target"]), max_tokens=2):
        assert (completion.finish_reason, completion.output_tokens) == ("length", 2)


def test_a_prompt_longer_than_the_model_fails_that_request(random_pair: dict[str, Path]) -> None:
    """Too many tokens are a failed generation with a type, not a crash of the run."""
    route = TransformersRoute(model=str(random_pair["target"]))
    with pytest.raises(GenerationError, match="exceed the model's 128 positions") as caught:
        items_of(route, request("soon", max_tokens=200))
    assert caught.value.error_type == "context_length_exceeded"


def test_the_fingerprint_tells_routes_apart(random_pair: dict[str, Path]) -> None:
    """Another draft length is another fingerprint; the same route has the same."""
    target, draft = str(random_pair["target"]), str(random_pair["draft"])

    def fingerprint(k: int) -> str:
        route = TransformersRoute(model=target, draft_model=draft, num_speculative_tokens=k)
        return opened(EngineOpener(), route).info.fingerprint

    assert fingerprint(2) == fingerprint(2)
    assert fingerprint(2) != fingerprint(3)


class TestBadFolders:
    def test_no_weights(self, random_pair: dict[str, Path], tmp_path: Path) -> None:
        """A folder without weights is named, with what to do."""
        folder = tmp_path / "empty"
        folder.mkdir()
        (folder / "config.json").write_text((random_pair["target"] / "config.json").read_text())
        with pytest.raises(EngineSetupError, match=r"empty holds no weights .*; copy them there"):
            opened(EngineOpener(), TransformersRoute(model=str(folder)))

    def test_no_configuration(self, tmp_path: Path) -> None:
        """A folder that is no model is named."""
        with pytest.raises(EngineSetupError, match=r"holds no config\.json"):
            opened(EngineOpener(), TransformersRoute(model=str(tmp_path)))

    def test_truncated_weights(self, random_pair: dict[str, Path], tmp_path: Path) -> None:
        """Damaged weights are a one-line error."""
        for file in random_pair["target"].iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        weights = tmp_path / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:100])
        with pytest.raises(EngineSetupError, match="cannot be loaded") as caught:
            opened(EngineOpener(), TransformersRoute(model=str(tmp_path)))
        assert "\n" not in str(caught.value)

    def test_another_tokenizer(self, random_pair: dict[str, Path]) -> None:
        """A draft of another vocabulary is refused before the first request."""
        route = TransformersRoute(
            model=str(random_pair["target"]),
            draft_model=str(random_pair["stranger"]),
        )
        with pytest.raises(EngineSetupError, match="has another tokenizer than"):
            opened(EngineOpener(), route)

    def test_no_such_device(self, random_pair: dict[str, Path]) -> None:
        """A device that torch does not know is named."""
        route = TransformersRoute(model=str(random_pair["target"]), device="tpu9")
        with pytest.raises(EngineSetupError, match="wanted cpu, cuda or cuda:0"):
            opened(EngineOpener(), route)


def generation_with(spec: Speculation) -> Generation:
    return Generation(
        trace_id="a" * 32, span_id="b" * 16, start_unix_ns=0, end_unix_ns=1, speculation=spec
    )

"""Draft trees: the attention of each token, the accepted path, and its record."""

import pytest
import torch
from tiny_heads import BRANCHES, DraftModelTree, branching, places_of
from tiny_models import END, PROMPTS, Pair, job, their_greedy

from engine_adapter.engines import acceptance_counts
from engine_adapter.engines.acceptance_counts import VerifyStep
from engine_adapter.engines.local import Adaptive, Draft, DraftVerify, Fixed, ModelDrafter, generate
from engine_adapter.engines.local.draft_tree import DraftTree
from engine_adapter.engines.local.sampling import SamplerChain

CPU = torch.device("cpu")
TOKENS = 20
ROOM = max(map(len, PROMPTS)) + TOKENS


def test_a_token_sees_the_text_and_those_that_it_follows() -> None:
    """By hand: of 7 slots the text's last token is in slot 2, and the tree begins behind it."""
    tree = DraftTree((-1, -1, 0), CPU)
    seen = tree.seen(torch.arange(7)[None] - 2)[0].int().tolist()
    assert seen == [
        [1, 1, 1, 0, 0, 0, 0],
        [1, 1, 1, 1, 0, 0, 0],
        [1, 1, 1, 0, 1, 0, 0],
        [1, 1, 1, 1, 0, 1, 0],
    ]
    assert (tree.depth, tree.level_of, tree.levels.tolist()) == (2, (1, 1, 2), [0, 1, 1, 2])


@pytest.mark.parametrize(
    ("parents", "told"), [((-1, 1), "1 follows 1"), ((0,), "0 follows 0"), ((-2,), "0 follows -2")]
)
def test_a_token_that_follows_none_before_it_is_refused(
    parents: tuple[int, ...], told: str
) -> None:
    """The tree's own head is told which of its tokens is wrong."""
    with pytest.raises(ValueError, match=f"draft token {told}; wanted an earlier"):
        DraftTree(parents, CPU)


def test_the_path_that_the_target_takes_is_kept() -> None:
    """By hand, greedy: the second guess, what follows it, and the target's own token."""
    tree = DraftTree((-1, -1, 0, 1), CPU)
    draft = Draft(torch.tensor([[4, 7, 5, 2]] * 3), torch.tensor([2, 1, 2]), parents=(-1, -1, 0, 1))
    says = torch.tensor([[7, 1, 2, 1, 9], [7, 1, 2, 1, 9], [6, 1, 2, 1, 9]])
    logits = torch.nn.functional.one_hot(says, 10).float()
    verdict, rows = tree.verify(SamplerChain(), logits, draft, torch.zeros(3, 9))
    assert verdict.accepted.tolist() == [2, 1, 0]  # the second may go one level down, no further
    kept = [row[: n + 1] for row, n in zip(verdict.tokens.tolist(), [2, 1, 0], strict=True)]
    assert kept == [[7, 2, 9], [7, 2], [6]]
    assert rows[0].tolist() == [0, 2, 4]


def test_a_tree_that_was_drawn_is_refused() -> None:
    """Its tokens are judged as certain: distributions would be passed over in silence."""
    draft = Draft(torch.zeros(1, 1, dtype=torch.long), torch.ones(1), torch.ones(1, 1, 10), (-1,))
    with pytest.raises(ValueError, match="distributions: wanted none"):
        DraftTree((-1,), CPU).verify(
            SamplerChain(1.0), torch.ones(1, 2, 10), draft, torch.zeros(1, 3)
        )


def test_a_tree_keeps_at_least_what_its_likeliest_chain_would(llama_pair: Pair) -> None:
    """The same draft model, along the tree's first path and with its branches beside it."""
    steps = {}
    for name, drafter, k in (
        ("chain", ModelDrafter(llama_pair.draft), max(places_of(BRANCHES)[0])),
        ("tree", DraftModelTree(llama_pair.draft), len(BRANCHES)),
    ):
        loop = DraftVerify(
            llama_pair.target, drafter, Fixed(k), capacity=ROOM, end_tokens=(END,), captures=False
        )
        answers = [generate(loop, [job(p, TOKENS)])[0] for p in PROMPTS]
        assert [list(one.token_ids) for one in answers] == [
            their_greedy(llama_pair.target, p, TOKENS) for p in PROMPTS
        ]
        steps[name] = sum(len(one.steps) for one in answers)
    assert steps["tree"] < steps["chain"]


def test_what_is_proposed_has_room_before_the_limit(llama_pair: Pair) -> None:
    """No level of a tree lies beyond the last token that a text may have, less the target's own."""
    levels, _ = places_of(BRANCHES)
    for limit in range(1, 8):
        loop = DraftVerify(
            llama_pair.target,
            DraftModelTree(llama_pair.draft),
            Fixed(8),
            capacity=ROOM,
            captures=False,
        )
        (answer,) = generate(loop, [job(PROMPTS[4], limit, end=-1)])
        left = limit
        for step in answer.steps:
            deepest = min(max(levels), left - 1)
            assert step.levels == deepest
            assert len(step.draft_ids) == sum(level <= deepest for level in levels)
            left -= len(step.token_ids)
        assert left == 0


def test_laws_are_those_along_the_path(llama_pair: Pair) -> None:
    """On request p of every token kept and of the target's own, equal to the model read afresh."""
    loop = DraftVerify(llama_pair.target, branching(llama_pair.target), Fixed(8), capacity=40)
    asked, sampling, accepted = job(PROMPTS[4], 30, end=-1), SamplerChain(1.0, top_k=9), 0
    text = list(asked.prompt)
    with torch.inference_mode():
        for step in loop.steps([asked], sampling, keep_distributions=True):
            (one,) = step.texts
            assert one.distributions.q is None
            accepted += one.accepted
            ids = torch.tensor([[*text, *one.token_ids]], device=llama_pair.target.device)
            p = sampling.distribution(llama_pair.target(ids).logits[0, len(text) - 1 : -1])
            torch.testing.assert_close(
                one.distributions.p[: len(p)], p, rtol=1e-4, atol=1e-6, check_device=False
            )
            text += one.token_ids
    assert accepted > 0


def test_counts_of_trees_have_no_drafts_by_position() -> None:
    """Several tokens stand at one position; what was accepted there is known."""
    steps = [VerifyStep(8, 2, 4), VerifyStep(8, 0, 4), VerifyStep(3, 1, 1)]
    counts = acceptance_counts.count(steps)
    assert (counts.steps, counts.draft_tokens, counts.accepted_tokens) == (3, 19, 3)
    assert counts.draft_tokens_per_pos is None
    assert counts.accepted_tokens_per_pos == (2, 1, 0, 0)
    assert counts.acceptance_histogram == (1, 1, 1, 0, 0)


def test_an_adaptive_k_is_refused_for_trees(llama_pair: Pair) -> None:
    """Its sum over a chain of k would be of something else."""
    loop = DraftVerify(
        llama_pair.target,
        DraftModelTree(llama_pair.draft),
        Adaptive(6, 0.1),
        capacity=ROOM,
        captures=False,
    )
    with pytest.raises(ValueError, match="wanted drafts that are chains"):
        generate(loop, [job(PROMPTS[1], 8)])

"""Greedy answers in 32 bits are transformers' own, token for token, whatever drafts for them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import DEVICE, END, METHODS, PROMPTS, READS, Pair, job, their_greedy
from transformers import AutoModelForCausalLM, AutoTokenizer

from demo.story import DRAFT, TARGET, WORKLOAD
from engine_adapter.engines.local import (
    Adaptive,
    ByBatch,
    DraftLength,
    DraftVerify,
    Ending,
    Fixed,
    Job,
    generate,
)
from engine_adapter.engines.local.records import Generated

TOKENS = 20
ROOM = max(map(len, PROMPTS)) + TOKENS
LENGTHS: dict[str, DraftLength] = {
    "k=1": Fixed(1),
    "k=5": Fixed(5),
    "by batch": ByBatch({1: 4, 3: 2, 6: 0}),
    "adaptive": Adaptive(6, draft_cost=0.3),
}


@pytest.fixture(scope="module")
def expected(pair: Pair) -> list[list[int]]:
    return [their_greedy(pair.target, prompt, TOKENS) for prompt in PROMPTS]


def loop_of(pair: Pair, method: str, length: DraftLength | None = None, **more: Any) -> DraftVerify:
    """Return a loop with a method's drafts; `none` drafts nothing."""
    drafter = None if method == "none" else METHODS[method](pair)
    given = {"capacity": ROOM, "end_tokens": (END,), "captures": method != READS} | more
    return DraftVerify(pair.target, drafter, None if drafter is None else length, **given)


def answers_of(loop: DraftVerify, batch: int) -> list[Generated]:
    """Return the answers to all prompts, batch after batch."""
    return [
        one
        for at in range(0, len(PROMPTS), batch)
        for one in generate(loop, [job(p, TOKENS) for p in PROMPTS[at : at + batch]])
    ]


@pytest.mark.parametrize("batch", [1, 4, 8])
def test_the_baseline_says_what_transformers_says(
    pair: Pair, expected: list[list[int]], batch: int
) -> None:
    """Without drafts, in batches of ragged prompts, full or not."""
    answers = answers_of(loop_of(pair, "none", batch=batch), batch)
    assert [list(one.token_ids) for one in answers] == expected


@pytest.mark.parametrize("method", METHODS)
def test_no_method_changes_a_token(pair: Pair, expected: list[list[int]], method: str) -> None:
    """Each text accepts what is its own, and one loop serves batch after batch."""
    check(pair, expected, method, "k=5", batch=4)


@pytest.mark.parametrize(
    ("length", "batch", "method"),
    [
        (length, batch, method)
        for length, batch in (("k=1", 4), ("k=5", 1), ("by batch", 4), ("adaptive", 6))
        for method in METHODS
        if (length, method) != ("adaptive", "tree")
    ],
)
@pytest.mark.parametrize("pair", ["llama"], indirect=True)
def test_no_length_changes_a_token(
    pair: Pair, expected: list[list[int]], method: str, length: str, batch: int
) -> None:
    """However many tokens are drafted, and for however many texts at once."""
    check(pair, expected, method, length, batch)


def check(pair: Pair, expected: list[list[int]], method: str, length: str, batch: int) -> None:
    """Answer all prompts with a method's drafts, and compare."""
    answers = answers_of(loop_of(pair, method, LENGTHS[length], batch=batch), batch)
    assert [list(one.token_ids) for one in answers] == expected
    for one in answers:
        assert sum(len(step.token_ids) for step in one.steps) == len(one.token_ids)
        assert all(step.accepted <= len(step.draft_ids) for step in one.steps)


def test_the_random_pairs_accept_some_drafts_and_end_now_and_then(
    pair: Pair, expected: list[list[int]]
) -> None:
    """What the other tests rest on: accepted and rejected drafts, and ends inside a run."""
    loop = loop_of(pair, "draft_model", Fixed(4))
    steps = [step for p in PROMPTS for step in generate(loop, [job(p, TOKENS)])[0].steps]
    accepted = sum(step.accepted for step in steps)
    assert 0 < accepted < sum(len(step.draft_ids) for step in steps)
    assert any(len(tokens) == TOKENS for tokens in expected)


def test_texts_with_limits_of_their_own_are_cut_there(llama_pair: Pair) -> None:
    """One text's end takes nothing from the others, and nothing is drafted that has no room."""
    limits = [1, 2, 3, 7, 12, 20]
    loop = loop_of(llama_pair, "draft_model", Fixed(4), batch=6)
    jobs = [job(p, limit) for p, limit in zip(PROMPTS, limits, strict=True)]
    answers = generate(loop, jobs)
    for prompt, limit, answer in zip(PROMPTS, limits, answers, strict=True):
        assert list(answer.token_ids) == their_greedy(llama_pair.target, prompt, limit)
        left = limit
        for step in answer.steps:
            assert len(step.draft_ids) <= left - 1
            left -= len(step.token_ids)


@pytest.mark.parametrize("method", ["none", *METHODS])
def test_any_token_may_be_the_end(llama_pair: Pair, method: str) -> None:
    """An end inside an accepted run cuts it there, wherever in the run it falls."""
    prompt = PROMPTS[4]
    free = their_greedy(llama_pair.target, prompt, TOKENS, eos_token_id=-1)
    for end in sorted(set(free)):
        loop = loop_of(llama_pair, method, Fixed(5), end_tokens=(end,))
        ending = Ending(max_tokens=TOKENS, end_tokens=frozenset({end}))
        (answer,) = generate(loop, [Job(prompt=prompt, ending=ending)])
        assert list(answer.token_ids) == free[: free.index(end) + 1]
        assert answer.finish_reason == "stop"


@pytest.mark.parametrize("method", ["none", *METHODS])
def test_a_stop_string_ends_the_text_at_the_token_that_completes_it(
    llama_pair: Pair, method: str
) -> None:
    """Across tokens, inside an accepted run, with two texts beside each other."""

    def decode(tokens: list[int]) -> str:
        return "".join(f"{token:02d}" for token in tokens)

    free = [their_greedy(llama_pair.target, p, TOKENS, eos_token_id=-1) for p in PROMPTS[:2]]
    for at in (1, 2, 4, 7):
        stops = tuple(decode(tokens[at - 1 : at + 1])[1:] for tokens in free)
        loop = loop_of(llama_pair, method, Fixed(5), batch=2, end_tokens=())
        jobs = [
            Job(
                prompt=prompt,
                ending=Ending(
                    max_tokens=TOKENS, end_tokens=frozenset(), stop_strings=(stop,), decode=decode
                ),
            )
            for prompt, stop in zip(PROMPTS, stops, strict=False)
        ]
        for answer, tokens, stop in zip(generate(loop, jobs), free, stops, strict=True):
            first = next(n for n in range(1, TOKENS + 1) if stop in decode(tokens[:n]))
            assert (list(answer.token_ids), answer.finish_reason) == (tokens[:first], "stop")


@pytest.mark.parametrize("method", ["none", "draft_model", "prompt_lookup", "early_exit"])
def test_the_demos_target_says_the_same_of_real_prompts(method: str) -> None:
    """Every cohort, in one batch of ragged prompts."""
    models = {
        folder: AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval().to(DEVICE)
        for folder in (TARGET, DRAFT)
    }
    demo = Pair(models[TARGET], models[DRAFT])
    tokenizer = AutoTokenizer.from_pretrained(TARGET)
    prompts = [_chat(tokenizer, line) for line in Path(WORKLOAD).read_text().splitlines()[:4]]
    room = max(map(len, prompts)) + 32
    loop = loop_of(demo, method, Fixed(4), batch=4, capacity=room)
    made = [list(one.token_ids) for one in generate(loop, [job(p, 32) for p in prompts])]
    assert made == [their_greedy(demo.target, prompt, 32) for prompt in prompts]


def _chat(tokenizer: object, line: str) -> list[int]:
    document = json.loads(line)
    messages = document.get("messages") or [{"role": "user", "content": document["prompt"]}]
    encoded = tokenizer.apply_chat_template(  # type: ignore[attr-defined]
        messages, add_generation_prompt=True, return_dict=True
    )
    return [int(token) for token in encoded["input_ids"]]

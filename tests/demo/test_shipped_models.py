"""The shipped pair: small, one tokenizer, and answers that are right."""

import json
from pathlib import Path
from typing import Any

import pytest

import demo
from training.desk import COHORTS

MODELS = Path(demo.__file__).parent / "models"
WORKLOAD = MODELS.parent / "workload.jsonl"
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def tokenizer() -> Any:  # Any: transformers ships no types
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(MODELS / "target")


@pytest.fixture(scope="module")
def target() -> Any:
    return loaded("target")


def loaded(name: str) -> Any:
    from training.pair.pair import load

    return load(MODELS / name)


@pytest.fixture(scope="module")
def prompts() -> dict[str, dict[str, Any]]:
    lines = WORKLOAD.read_text().splitlines()
    return {record["id"]: record for record in map(json.loads, lines)}


def answer(
    model: Any, tokenizer: Any, messages: list[dict[str, str]], assistant: Any = None
) -> str:
    inputs = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    output = model.generate(**inputs, max_new_tokens=64, assistant_model=assistant)
    text: str = tokenizer.decode(
        output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True
    )
    return text


def test_the_pair_is_small_enough_for_git() -> None:
    """Everything shipped beside the models comes to 20 MB at most."""
    sizes = [path.stat().st_size for path in MODELS.rglob("*") if path.is_file()]
    assert sum(sizes) <= 20 * MEGABYTE


def test_draft_and_target_share_one_tokenizer_byte_for_byte() -> None:
    """Draft token ids mean the same to the target."""
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert (MODELS / "draft" / name).read_bytes() == (MODELS / "target" / name).read_bytes()


def test_generation_defaults_name_the_special_tokens() -> None:
    """An engine that reads the defaults stops at the end token and decodes greedily."""
    for name in ("draft", "target"):
        defaults = json.loads((MODELS / name / "generation_config.json").read_text())
        wanted = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 1, "do_sample": False}
        assert {key: defaults[key] for key in wanted} == wanted


def test_text_survives_the_tokenizer(tokenizer: Any, prompts: dict[str, dict[str, Any]]) -> None:
    """Indentation, quotes and punctuation come back as they went in."""
    for record in prompts.values():
        text = record["messages"][0]["content"]
        assert tokenizer.decode(tokenizer(text).input_ids) == text


def test_the_chat_template_marks_the_turns(tokenizer: Any) -> None:
    """A conversation is user and assistant turns; the prompt ends where an answer starts."""
    turns = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Bye"},
    ]
    text = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    assert text == "<|user|>Hi<|assistant|>Hello<|end|><|user|>Bye<|assistant|>"


def test_the_report_measures_every_cohort() -> None:
    """The target is right far oftener than the draft, and the draft agrees unequally."""
    heldout = json.loads((MODELS / "report.json").read_text())["heldout"]
    assert set(heldout) == set(COHORTS)
    agreement = [heldout[cohort]["argmax_agreement"] for cohort in COHORTS]
    assert max(agreement) - min(agreement) > 0.05
    for cohort in COHORTS:
        assert heldout[cohort]["target_exact"] >= 0.8, cohort
        assert heldout[cohort]["draft_exact"] <= heldout[cohort]["target_exact"], cohort


@pytest.mark.parametrize(
    ("prompt_id", "text"),
    [
        (
            "rag-0001",
            (
                "The Harbor kettle costs EUR 68. It comes with Falcon within 8 days, and you may "
                "return it for 17 days."
            ),
        ),
        (
            "tool_call-0001",
            (
                '{"name": "update_address", "arguments": {"order": "#HP-85", '
                '"street": "Elm Road 29", "city": "Ghent"}}'
            ),
        ),
        (
            "code-0001",
            (
                "    fee = miles * 66 + zone * 76 + 2\n"
                "    if fee < 57:\n"
                "        return 57\n"
                "    return fee"
            ),
        ),
        (
            "chat-0001",
            (
                "Hello Sami, we are sorry to see you go. Your Velvet scale plan ends at the close "
                "of this month, and you will not be charged again. Regards, Rosa"
            ),
        ),
    ],
)
def test_the_target_says_exactly_this(
    prompt_id: str, text: str, target: Any, tokenizer: Any, prompts: dict[str, dict[str, Any]]
) -> None:
    """A held-out prompt of each cohort is answered to the letter."""
    assert answer(target, tokenizer, prompts[prompt_id]["messages"]) == text


@pytest.mark.parametrize("cohort", COHORTS)
def test_the_target_answers_held_out_prompts(
    cohort: str, target: Any, tokenizer: Any, prompts: dict[str, dict[str, Any]]
) -> None:
    """Of the first five prompts, greedy answers are wholly right in at least three."""
    asked = [prompts[f"{cohort}-{number:04d}"] for number in range(1, 6)]
    right = [correct(record, answer(target, tokenizer, record["messages"])) for record in asked]
    assert sum(right) >= 3


def correct(record: dict[str, Any], text: str) -> bool:
    reference = record["reference"]
    if reference["kind"] == "exact":
        return bool(text == reference["text"])
    if reference["kind"] == "json":
        return bool(json.loads(text) == reference["value"])
    exec(f"{reference['prelude']}{text}\n{reference['tests']}", {})  # noqa: S102
    return True


def test_assisted_answers_are_the_targets_own(
    target: Any, tokenizer: Any, prompts: dict[str, dict[str, Any]]
) -> None:
    """With the draft, greedy answers are the same to the letter."""
    draft = loaded("draft")
    for cohort in COHORTS:
        messages = prompts[f"{cohort}-0001"]["messages"]
        alone = answer(target, tokenizer, messages)
        assert answer(target, tokenizer, messages, assistant=draft) == alone

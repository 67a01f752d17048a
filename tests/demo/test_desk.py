"""The support desk's text: repeatable, held out by construction, and right about itself."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import demo
from training.desk import COHORTS, MAX_TOKENS, Example, examples, workload_lines
from training.desk.__main__ import main

WORKLOAD = Path(demo.__file__).parent / "workload.jsonl"


@pytest.fixture(scope="module")
def heldout() -> list[Example]:
    return list(examples("heldout", 0, 200))


def of(cohort: str, many: list[Example]) -> list[Example]:
    return [example for example in many if example.cohort == cohort]


def test_the_same_seed_gives_the_same_examples() -> None:
    """A stream is a function of split and seed; a longer one continues a shorter one."""
    first = list(examples("train", 3, 20))
    assert list(examples("train", 3, 50))[: len(first)] == first
    assert list(examples("train", 4, 20)) != first


def test_cohorts_take_turns() -> None:
    """The first 4n examples have n of each cohort."""
    assert [example.cohort for example in examples("heldout", 0, 3)] == [*COHORTS] * 3


def test_held_out_slots_and_answers_never_occur_in_training(heldout: list[Example]) -> None:
    """Splits share no combination of slots, whatever the seeds, and so no answer."""
    seen = [example for seed in (0, 1) for example in examples("train", seed, 1000)]
    assert {example.split for example in seen} == {"train"}
    assert {example.split for example in heldout} == {"heldout"}
    assert {(e.topic, e.slots) for e in seen}.isdisjoint((e.topic, e.slots) for e in heldout)
    assert {e.answer for e in seen}.isdisjoint(e.answer for e in heldout)


def test_held_out_examples_differ_from_one_another(heldout: list[Example]) -> None:
    """No combination of slots is asked twice."""
    assert len({(e.cohort, e.topic, e.slots) for e in heldout}) == len(heldout)


def test_every_word_and_number_of_a_held_out_answer_is_known_from_training(
    heldout: list[Example],
) -> None:
    """Held-out answers recombine what training showed; they hold nothing that it did not."""
    known = {w for e in examples("train", 0, 2000) for w in re.findall(r"\w+", e.answer)}
    assert {w for e in heldout for w in re.findall(r"\w+", e.answer)} <= known


def test_rag_answers_state_facts_of_one_passage_that_the_others_do_not_settle(
    heldout: list[Example],
) -> None:
    """One passage holds every fact of the answer, and it stands in the prompt beside others."""
    for example in of("rag", heldout):
        assert len(example.context) in (2, 3)
        assert all(passage in example.prompt for passage in example.context)
        holding = [p for p in example.context if all(fact in p for fact in example.slots)]
        assert len(holding) == 1
        numbers = re.findall(r"\d+", example.answer)
        assert not Counter(numbers) - Counter(re.findall(r"\d+", example.prompt))


def test_tool_calls_fit_their_schema_and_copy_their_arguments(heldout: list[Example]) -> None:
    """The reference is what the answer parses to, and its schema accepts it, and not another."""
    for example in of("tool_call", heldout):
        call: dict[str, Any] = json.loads(example.answer)
        assert example.reference == {"kind": "json", "value": call}
        assert example.schema is not None
        schema = jsonschema_rs.validator_for(dict(example.schema))
        assert schema.is_valid(call)
        assert not schema.is_valid(call | {"arguments": {}})
        assert not schema.is_valid(call | {"name": "close_account"})


def test_function_bodies_pass_their_own_tests(heldout: list[Example]) -> None:
    """Prelude and answer together satisfy the asserts."""
    for example in of("code", heldout):
        run(example, example.answer)


def test_function_tests_notice_a_wrong_number(heldout: list[Example]) -> None:
    """Copying a number wrong fails the asserts, but for the few that no argument can reveal."""
    missed = total = 0
    for example in of("code", heldout):
        for number in re.findall(r"(?<= )\d+(?!\d)", example.answer):
            if number == "100":
                continue
            total += 1
            try:
                run(example, re.sub(rf"\b{number}\b", str(int(number) + 17), example.answer))
            except AssertionError:
                continue
            missed += 1
    assert total > 500
    assert missed / total < 0.1


def run(example: Example, body: str) -> None:
    reference = example.reference
    exec(f"{reference['prelude']}{body}\n{reference['tests']}", {})  # noqa: S102


def test_the_shipped_workload_is_what_the_command_writes(tmp_path: Path) -> None:
    """Regenerating the held-out prompts gives the shipped file, byte for byte."""
    again = tmp_path / "workload.jsonl"
    main(["--split", "heldout", "--per-cohort", "50", "--out", str(again)])
    assert again.read_bytes() == WORKLOAD.read_bytes()


def test_the_workload_has_exactly_the_keys_that_apply() -> None:
    """Two hundred prompts, fifty a cohort, each with an id, and nothing null."""
    records = [json.loads(line) for line in WORKLOAD.read_text().splitlines()]
    common = {"id", "cohort", "messages", "max_tokens", "reference", "dims"}
    extra = {"rag": {"context"}, "tool_call": {"schema"}, "code": set[str](), "chat": set[str]()}
    assert len({record["id"] for record in records}) == len(records) == 200
    assert Counter(record["cohort"] for record in records) == dict.fromkeys(COHORTS, 50)
    for record in records:
        assert set(record) == common | extra[record["cohort"]]
        assert None not in record.values()
        assert record["max_tokens"] == MAX_TOKENS


def test_a_workload_line_stands_as_written() -> None:
    """A whole line, as a reader of the file sees it."""
    chat = [json.loads(line) for line in workload_lines("heldout", 0, 1)][3]
    assert chat == {
        "id": "chat-0001",
        "cohort": "chat",
        "messages": [
            {
                "role": "user",
                "content": "Hello Rosa, my name is Sami. "
                "How can I end the plan for my Velvet scale?",
            }
        ],
        "max_tokens": 64,
        "reference": {
            "kind": "exact",
            "text": "Hello Sami, we are sorry to see you go. Your Velvet scale plan ends at the "
            "close of this month, and you will not be charged again. Regards, Rosa",
        },
        "dims": {"topic": "cancel"},
    }

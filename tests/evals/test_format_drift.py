"""The form of answers: planted faults are found, and clean text raises no alarm."""

import json
from dataclasses import replace

import pytest

from evals.evaluators import FormatDrift, Parity

PROMPT = "Say in two sentences how a kettle works, and give an example in Python."
CLEAN = (
    "A kettle heats water with an element at its bottom. A switch ends it when steam arrives.\n"
    "```python\nboil(litres=1)\n```"
)


def judged(generation_of, answer: str, prompt: str = PROMPT, **fields):
    generation = generation_of(answer=answer)
    asked = [{"role": "user", "parts": [{"type": "text", "content": prompt}]}]
    content = replace(generation.content, input_messages=json.dumps(asked))
    score = FormatDrift().score(replace(generation, content=content, **fields))
    return score.value, score.label, score.explanation


@pytest.mark.parametrize(
    ("answer", "label", "words"),
    [
        ("", "empty", "empty: no text and no tool call"),
        (" \n", "empty", "empty: no text and no tool call"),
        ("It heats the", "truncated", "truncated: ends with 'the'"),
        ("First,", "truncated", "truncated: ends with ','"),
        ("```python\nboil(", "truncated", "truncated: a code fence stays open"),
        ('{"a": [1, 2', "truncated", "truncated: its JSON stays open"),
        ('{"a": "two', "truncated", "truncated: its JSON stays open"),
        (CLEAN + "<|im_end|>", "template_leak", "template_leak: '<|im_end|>' at character"),
        (CLEAN + "</s>", "template_leak", "template_leak: '</s>' at character"),
        (CLEAN + "\nUser: And tea?", "template_leak", "template_leak: 'User:' at character"),
        ("Hot wa\ufffdter.", "broken_characters", "broken_characters: half a character at 6"),
        ("It heats " * 12, "loop", "loop: 'It heats' again and again"),
        ("no" * 40, "loop", "loop: 'no' 40 times"),
        ("A" * 60, "loop", "loop: 'A' 60 times"),
        ("It is hot. これは水です、とても熱い水。", "other_script", "other_script: "),
        ("<|im_end|>" + "It heats " * 12, "template_leak loop", "template_leak: "),
    ],
)
def test_a_planted_fault_is_named(generation_of, answer, label, words) -> None:
    """What an engine's error leaves in an answer is found, with its place."""
    value, found, explanation = judged(generation_of, answer)
    assert (value, found) == (0.0, label)
    assert explanation.startswith(words)


@pytest.mark.parametrize(
    ("answer", "prompt"),
    [
        (CLEAN, PROMPT),
        ("Yes", PROMPT),
        ('{"a": [1, 2]}', PROMPT),
        ("{a set} of words", PROMPT),
        ("[1] says so.", PROMPT),
        ("It ends with <|im_end|>.", "What ends a turn: <|im_end|> or </s>?"),
        ("これは水です、とても熱い水です。", "これは何ですか。"),
        ("Это горячая вода, очень горячая.", "Translate to Russian: hot water, very hot."),
        ("| 1 | 1 | 1 |\n" * 20, PROMPT),
        ("0 1 " * 40, PROMPT),
        ("ha ha ha", PROMPT),
        ("Let α and β be the angles, so that αβγδεζηθ holds.", PROMPT),
        ("", PROMPT),
    ],
)
def test_clean_answers_raise_no_alarm(generation_of, answer, prompt) -> None:
    """Short answers, tables, numbers, JSON, and what the prompt shows or asks for are fine."""
    if not answer:  # a tool call needs no text
        answer_parts = [{"type": "tool_call", "name": "f", "arguments": {}}]
        generation = generation_of(answer="x")
        output = json.dumps([{"role": "assistant", "parts": answer_parts}])
        content = replace(generation.content, output_messages=output)
        assert FormatDrift().score(replace(generation, content=content)).value == 1.0
        return
    assert judged(generation_of, answer, prompt) == (1.0, "intact", None)


def test_the_engines_own_word_counts(generation_of) -> None:
    """A finish reason of length is a cut; a stop sequence in the text is a leak."""
    cut = judged(generation_of, CLEAN, finish_reasons=("length",))
    assert cut == (0.0, "truncated", "truncated: cut at its token limit")
    leaked = judged(generation_of, "Yes.###", stop_sequences=("###",))
    assert leaked == (0.0, "stop_leak", "stop_leak: '###' at character 4")


def test_without_text_there_is_no_score(generation_of) -> None:
    """An answer that was not recorded has no form."""
    assert FormatDrift().score(generation_of(answer=None)) is None


# --- parity


def paired(generation_of, got: str, wanted: str, temperature: float | None = 0.0):
    candidate, baseline = (
        replace(generation_of(n, answer), temperature=temperature)
        for n, answer in ((1, got), (2, wanted))
    )
    return Parity().score_pair(candidate, baseline)


def test_parity_says_where_two_answers_part(generation_of) -> None:
    """Equal texts are 1; else the first divergence, the words before it, and the rest as a span."""
    same = paired(generation_of, "The kettle is hot.", "The kettle is hot.")
    assert (same.value, same.label, same.spans) == (1.0, "identical", None)
    other = paired(generation_of, "The kettle is cold.", "The kettle is hot.")
    assert (other.value, other.label) == (0.0, "diverged")
    assert other.explanation == "at character 14, after 3 words: 'cold.' against 'hot.'"
    assert [(s.start, s.end, s.support) for s in other.spans] == [(14, 19, 0.0)]
    shorter = paired(generation_of, "The", "The kettle")
    assert shorter.explanation == "at character 3, after 1 words: '' against ' kettle'"


def test_parity_is_for_greedy_pairs(generation_of) -> None:
    """With sampling, or where nobody said, equal texts are no promise; lost text is unscored."""
    assert paired(generation_of, "a", "b", temperature=0.7) is None
    assert paired(generation_of, "a", "b", temperature=None) is None
    assert paired(generation_of, "a", None).unscored_reason == (
        "the baseline's text was not recorded"
    )

"""The rules of task completion beyond exact text and whole JSON values."""

import json
from typing import Any

import pytest

from collector.contract import Content
from evals.evaluators import TaskCompletion
from evals.evaluators.written_calls import WrittenCall, calls_in_text

WEATHER = {
    "name": "weather.get",
    "parameters": {
        "type": "dict",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "wind": {"type": "float"},
            "hours": {"type": "array", "items": {"type": "integer"}},
            "where": {"type": "dict"},
        },
        "required": ["city"],
    },
}
CALL = {
    "name": "weather.get",
    "arguments": {
        "city": ["New York", "NYC"],
        "days": [3],
        "wind": [2.0],
        "hours": [[1, 2]],
        "where": [{"$fields": {"lat": [1, 2], "unit": ["deg"]}, "$optional": ["unit"]}],
    },
    "optional": ["days", "wind", "hours", "where"],
}
CALLS = {"kind": "tool_calls", "calls": [CALL], "tools": [WEATHER]}


def judged(generation_of, reference: Any, answer: str) -> tuple[Any, ...]:
    score = TaskCompletion().score(generation_of(answer=answer, reference=json.dumps(reference)))
    return score.value, score.label, score.explanation or score.unscored_reason


def called(name: str = "weather.get", **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


@pytest.mark.parametrize(
    ("reference", "answer", "wanted"),
    [
        ({"answers": ["Paris"]}, "The Paris.", (1.0, "qa exact: correct", None)),
        (
            {"answers": ["Paris", "Lutetia"]},
            "It is Paris",
            (0.0, "qa exact: wrong", "wanted 'Paris' or one of 1 others, got 'It is Paris'"),
        ),
        (
            {"answers": ["May 18, 2018"], "match": "contains"},
            "It is May 18 2018, I think",
            (1.0, "qa contains: correct", None),
        ),
        (
            {"answers": ["art"], "match": "contains"},
            "a party",
            (0.0, "qa contains: wrong", "wanted 'art', got 'a party'"),
        ),
        (
            {"answers": ["red blue"], "match": "f1"},
            "blue green",
            (0.5, "qa f1: partly", "F1 0.50, wanted 'red blue'"),
        ),
        ({"answers": ["x"], "match": "f1"}, "", (0.0, "qa f1: wrong", "F1 0.00, wanted 'x'")),
    ],
)
def test_question_answering(generation_of, reference, answer, wanted) -> None:
    """Case, punctuation and articles aside: exact, contained word by word, or shared words."""
    assert judged(generation_of, {"kind": "qa"} | reference, answer) == wanted


@pytest.mark.parametrize(
    ("reference", "answer", "wanted"),
    [
        ({"value": 1234.5}, "First 3, so it is $1,234.50.", (1.0, "number: correct", None)),
        ({"value": -2}, "It is −2", (1.0, "number: correct", None)),
        ({"value": 10, "rel_tol": 0.05}, "about 10.4", (1.0, "number: correct", None)),
        ({"value": 0, "abs_tol": 0.1}, "0.2", (0.0, "number: wrong", "wanted 0, got 0.2")),
        ({"value": 1}, "one", (0.0, "number: wrong", "wanted 1, got no number")),
        ({"value": 3e8}, "3e8 m/s", (1.0, "number: correct", None)),
    ],
)
def test_numbers(generation_of, reference, answer, wanted) -> None:
    """The last number counts, within the tolerances."""
    assert judged(generation_of, {"kind": "number"} | reference, answer) == wanted


@pytest.mark.parametrize(
    ("reference", "answer", "wanted"),
    [
        ({"required": {"/a/0/b": 1}}, '{"a": [{"b": 1, "c": 2}]}', (1.0, None)),
        ({"required": {"/a~1b": 1}}, '{"a/b": 2}', (0.0, "/a~1b: wanted 1, got 2")),
        ({"required": {"/a/3": 1}}, '{"a": []}', (0.0, "/a/3: missing")),
        ({"schema": {"type": "object"}}, "[1]", (0.0, 'answer: [1] is not of type "object"')),
        ({"schema": {"type": "object"}, "required": {"/a": 1}}, '{"a": 1}', (1.0, None)),
        ({"schema": {"type": 3}}, "{}", (None, "the schema is not usable")),
    ],
)
def test_parts_of_json(generation_of, reference, answer, wanted) -> None:
    """A schema, and the values that must stand at these places."""
    value, _, words = judged(generation_of, {"kind": "json"} | reference, answer)
    assert value == wanted[0]
    assert words == wanted[1] or str(words).startswith(str(wanted[1]))


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (called(city="nyc"), None),
        (called("weather_get", city="new-york", days=3, wind=2, hours=[1, 2]), None),
        ('[weather.get(city="New York", where={"lat": 2})]', None),
        (f"```json\n{json.dumps([{'function': json.loads(called(city='NYC'))}])}\n```", None),
        (json.dumps({"name": "weather.get", "arguments": '{"city": "NYC"}'}), None),
        (called(), "weather.get: city is missing"),
        (called(city="Rome"), "weather.get: city is 'Rome', wanted 'New York' or 'NYC'"),
        (called(city="NYC", days="3"), "weather.get: days is '3', wanted integer"),
        (called(city="NYC", days=True), "weather.get: days is True, wanted integer"),
        (called(city="NYC", days=3.0), "weather.get: days is 3.0, wanted integer"),
        (called(city="NYC", hours=[2, 1]), "weather.get: hours is [2, 1], wanted [1, 2]"),
        (called(city="NYC", hours=[1, "2"]), "weather.get: hours is [1, '2'], wanted array"),
        (called(city="NYC", zip=1), "weather.get: zip is not wanted"),
        (called(city="NYC", where={"lat": 1, "x": 1}), "weather.get: where is {'lat': 1, 'x': 1}"),
        (called(city="NYC", where={"unit": "deg"}), "weather.get: where is {'unit': 'deg'}"),
        (called("weather.set", city="NYC"), "wanted a call of weather.get, got weather.set"),
        ("Sunny.", "wanted 1 tool calls, got 0 (none)"),
        (f"[{called(city='NYC')}, {called(city='NYC')}]", "wanted 1 tool calls, got 2"),
        ("weather.get(*x)", "wanted 1 tool calls, got 0 (none)"),
    ],
)  # fmt: skip
def test_a_tool_call_is_matched_by_name_types_and_accepted_values(
    generation_of, answer, problem
) -> None:
    """Types by the schema, accepted values, optional arguments; what differs is named."""
    value, label, words = judged(generation_of, CALLS, answer)
    if problem is None:
        assert (value, label, words) == (1.0, "tool calls: correct", None)
    else:
        assert (value, label) == (0.0, "tool calls: wrong")
        assert words.startswith(problem)


def test_parallel_calls_match_in_any_order(generation_of) -> None:
    """Also where the first wanted call would take what the second needs."""
    loose = {"name": "f", "arguments": {"a": [1, 2]}}
    tight = {"name": "f", "arguments": {"a": [1]}}
    reference = {"kind": "tool_calls", "calls": [loose, tight]}
    both = f"[{called('f', a=1)}, {called('f', a=2)}]"
    assert judged(generation_of, reference, both)[0] == 1.0
    twice = f"[{called('f', a=2)}, {called('f', a=2)}]"
    assert judged(generation_of, reference, twice)[0] == 0.0


def test_no_call_wanted_and_any_call_wanted(generation_of) -> None:
    """An empty list asks for an answer without calls, `any` for one with a call."""
    none, some = {"kind": "tool_calls", "calls": []}, {"kind": "tool_calls", "calls": "any"}
    for answer, wanted in (("I cannot.", (1.0, 0.0)), (called("f"), (0.0, 1.0))):
        found = tuple(judged(generation_of, reference, answer)[0] for reference in (none, some))
        assert found == wanted


_WRITTEN = json.dumps({"name": "f", "arguments": {"a": 1}})


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (f"<tool_call>\n{_WRITTEN}\n</tool_call>\n<tool_call>{_WRITTEN}</tool_call>", 2),
        (f"Sure, I will look it up:\n```json\n{_WRITTEN}\n```\nOne moment.", 1),
        (f"[TOOL_CALLS] [{_WRITTEN}]", 1),
        ('Let me look.[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]f[CALL_ID]x1y2[ARGS]{"a": 1}</s>', 2),
        ('<function=f>{"a": 1}</function>', 1),
        ('<|python_tag|>{"name": "f", "parameters": {"a": 1}}', 1),
        ("<tool_call>\n{'name': 'f', 'arguments': {'a': 1}}\n</tool_call>", 1),
        ("<tool_call><function=f>\n<parameter=a>\n1\n</parameter>\n</function></tool_call>", 1),
        ("<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>", 1),
        ('Thought: I look.\nAction: f\nAction Input: {"a": 1}\nObservation: none', 1),
        ('**Action:** f\n**Action Input:**\n```json\n{"a": 1}\n```', 1),
        (f'{{"tool_calls": [{_WRITTEN}, {_WRITTEN}]}}', 2),
        (f'I call {{"function_call": {_WRITTEN}}} now.', 1),
        ('{"action": "f", "action_input": {"a": 1}}', 1),
        ('{"action": "open"}', 0),
        ("Action: we met. Action Input: none.", 0),
        ("To answer, I call:\n```python\nf(a=1)\n```", 1),
        ("I will use [f(a=1), f(a=1)] to find it.", 2),
        ("f(a=1)\nf(a=1)", 2),
        ("<|python_tag|>f.call(a=1)", 1),
        ('The record {"name": "Bob"} is no call.', 0),
        ("The function f(a=1) is fast, as f(1) is.", 0),
        ("```python\nx = f(a=1)\n```", 0),
        ("{" * 100_000, 0),
    ],
)
def test_calls_are_found_between_markers_and_in_prose(text, calls) -> None:
    """As models and agents write them; an object without arguments is none."""
    assert calls_in_text(text) == (WrittenCall("f", {"a": 1}),) * calls


@pytest.mark.parametrize(
    ("text", "reference", "value"),
    [
        ("Action: search\nAction Input: weather in Paris\nObservation: none", "string", 1.0),
        ('Action: search\nAction Input: "weather in Paris"', "string", 1.0),
        ("Action: search\nAction Input: weather in Rome", "string", 0.0),
        ("Action: search\nAction Input: 42", "integer", 1.0),
        ("Action: search\nAction Input: forty", "integer", 0.0),
    ],
)
def test_an_agents_plain_input_is_the_only_argument(generation_of, text, reference, value) -> None:
    """Of the tool's schema, or of the wanted call without one."""
    wanted = 42 if reference == "integer" else "weather in Paris"
    parameters = {"type": "object", "properties": {"query": {"type": reference}}}
    tool = {"name": "search", "parameters": parameters}
    for tools in ([tool], []):
        call = {"name": "search", "arguments": {"query": [wanted]}}
        rule = {"kind": "tool_calls", "calls": [call], "tools": tools}
        assert judged(generation_of, rule, text)[0] == value


@pytest.mark.parametrize(
    "given", ["Action: None\nAction Input: None", "Action: f\nAction Input: {a"]
)
def test_no_action_is_no_call(given) -> None:
    """Neither is one with broken JSON."""
    assert calls_in_text(given) == ()


def test_calls_come_from_the_answers_parts(generation_of) -> None:
    """`tool_call` parts of the output messages are the calls, whatever the text says."""
    parts = [
        {"type": "text", "content": "Let me see."},
        {"type": "tool_call", "id": "1", "name": "weather.get", "arguments": {"city": "NYC"}},
    ]
    output = json.dumps([{"role": "assistant", "parts": parts}])
    content = Content(output_messages=output, reference=json.dumps(CALLS))
    assert TaskCompletion().score(generation_of(content=content)).value == 1.0


def conversation(*turns: tuple[str, dict[str, Any], Any], state: Any = None) -> tuple[str, str]:
    """Return the input and output messages of an agent that made these calls."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "parts": [{"type": "text", "content": "Go."}]}
    ]
    for number, (name, arguments, result) in enumerate(turns):
        call = {"type": "tool_call", "id": str(number), "name": name, "arguments": arguments}
        messages.append({"role": "assistant", "parts": [call]})
        answer = {"type": "tool_call_response", "id": str(number), "response": result}
        messages.append({"role": "tool", "parts": [answer]})
    del state
    last = [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]
    return json.dumps(messages), json.dumps(last)


ORDER = ("order", {"item": 1}, "ok")
PAY = ("pay", {"eur": 5}, "ok")
LOOK = ("look", {}, {"items": [1]})


@pytest.mark.parametrize(
    ("turns", "reference", "wanted"),
    [
        ([LOOK, PAY, ORDER], {}, (1.0, "actions: correct", None)),
        ([ORDER], {}, (0.0, "actions: wrong", "pay was not called")),
        ([ORDER, PAY, PAY], {}, (0.0, "actions: wrong", "pay was not wanted")),
        (
            [ORDER, ("pay", {"eur": 6}, "ok")],
            {},
            (0.0, "actions: wrong", "pay.eur: wanted 5, got 6"),
        ),
        ([ORDER, ("pay", {"eur": 5}, "Error: no money"), PAY], {}, (1.0, "actions: correct", None)),
        (
            [ORDER, ("pay", {"eur": 5}, {"error": "no money"})],
            {},
            (0.0, "actions: wrong", "pay was not called"),
        ),
        (
            [ORDER, PAY, ("cancel", {}, "ok")],
            {"state_changing": ["order", "pay", "cancel"]},
            (0.0, "actions: wrong", "cancel was not wanted"),
        ),
        ([ORDER, LOOK, PAY], {"order": "sequence"}, (1.0, "action sequence: correct", None)),
        (
            [PAY, ORDER],
            {"order": "sequence"},
            (0.0, "action sequence: wrong", "step 2, pay, was not reached in its turn"),
        ),
    ],
)
def test_an_agents_actions(generation_of, turns, reference, wanted) -> None:
    """The state-changing calls that succeeded, as a set of equals or in their order."""
    calls = [{"name": name, "arguments": arguments} for name, arguments, _ in (ORDER, PAY)]
    asked, answered = conversation(*turns)
    content = Content(
        input_messages=asked,
        output_messages=answered,
        reference=json.dumps({"kind": "actions", "calls": calls} | reference),
    )
    score = TaskCompletion().score(generation_of(content=content))
    assert (score.value, score.label, score.explanation) == wanted


@pytest.mark.parametrize(
    ("turns", "wanted"),
    [
        ([("state", {}, "{}"), ("state", {}, '{"paid": true}')], (1.0, None)),
        ([("state", {}, {"paid": False})], (0.0, "state.paid: wanted True, got False")),
        ([PAY], (0.0, "state answered nothing in this conversation")),
    ],
)
def test_an_agents_end_state(generation_of, turns, wanted) -> None:
    """The last answer of the tool that says the state decides."""
    asked, answered = conversation(*turns)
    reference = json.dumps({"kind": "end_state", "tool": "state", "value": {"paid": True}})
    content = Content(input_messages=asked, output_messages=answered, reference=reference)
    score = TaskCompletion().score(generation_of(content=content))
    assert (score.value, score.explanation) == wanted


def test_scripts_are_judged_by_what_they_print(generation_of) -> None:
    """A script reads each case's input and must print its output; white space aside."""
    reference = {
        "kind": "stdio",
        "cases": [{"stdin": "1 2\n", "stdout": "3\n"}, {"stdin": "2 2", "stdout": "4"}],
    }
    right = "```python\nimport sys\nprint(sum(map(int, input().split())), ' ')\nsys.exit()\n```"
    assert judged(generation_of, reference, right) == (1.0, "stdio cases: correct", None)
    wrong = "a, b = map(int, input().split())\nprint(3)"
    assert judged(generation_of, reference, wrong) == (
        0.0,
        "stdio cases: wrong",
        "tests: AssertionError: case 2: wanted '4', got '3\\n'",
    )


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ({"kind": "qa", "answers": []}, "the reference's answers are not a list of texts"),
        ({"kind": "qa", "answers": ["a"], "match": "near"}, "the reference's match is 'near'"),
        ({"kind": "number", "value": "3"}, "the reference's value is not a number"),
        ({"kind": "number", "value": 3, "abs_tol": -1}, "the reference's tolerance is below 0"),
        ({"kind": "json"}, "the reference has no value, no schema and nothing required"),
        ({"kind": "json", "required": {"a": 1}}, "the reference's required is not an object of"),
        ({"kind": "tool_calls", "calls": {}}, "the reference's calls is not a list of objects"),
        (
            {"kind": "tool_calls", "calls": [{"name": "f", "arguments": {"a": 1}}]},
            "a call's arguments are not an object of lists",
        ),
        (
            {"kind": "tool_calls", "calls": [{"name": "f", "optional": ["a"]}]},
            "a call's optional names an argument",
        ),
        ({"kind": "actions", "calls": [], "order": "x"}, "the reference's order is 'x'"),
        ({"kind": "end_state", "tool": "t"}, "the reference has no value"),
        ({"kind": "stdio", "cases": []}, "the reference has no cases"),
        ({"kind": "rubric", "criteria": []}, "the reference's criteria are not a list of texts"),
        ({"kind": "rubric", "criteria": ["polite"]}, "the reference is a rubric, which needs"),
    ],
)
def test_an_unusable_reference_is_unscored(generation_of, reference, reason) -> None:
    """A reference that does not keep to its kind judges nothing, and says why."""
    value, label, words = judged(generation_of, reference, "3")
    assert (value, label) == (None, None)
    assert words.startswith(reason)

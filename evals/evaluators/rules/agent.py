"""Rules for agents: the state-changing calls, and the final state."""

from collections.abc import Iterable, Sequence

from evals.evaluators.answers import NotJsonError, json_value
from evals.evaluators.conversation import ToolResponse
from evals.evaluators.reference import Actions, EndState
from evals.evaluators.rules.json_values import difference
from evals.evaluators.rules.outcome import RuleResult
from evals.evaluators.written_calls import WrittenCall


def actions(history: Iterable[WrittenCall | ToolResponse], reference: Actions) -> RuleResult:
    """Compare the calls that changed state with the wanted ones.

    By default as a multiset: the same calls, each equally often, in any order. As a sequence: the
    wanted calls occur in their order. A call whose tool returned an error does not count.
    """
    counting = reference.state_changing or frozenset(name for name, _ in reference.calls)
    made = [call for call in _succeeded(history) if call.name in counting]
    wanted = [
        WrittenCall(name, arguments) for name, arguments in reference.calls if name in counting
    ]
    return (
        _compare_sequence(made, wanted) if reference.sequence else _compare_multiset(made, wanted)
    )


def end_state(history: Iterable[WrittenCall | ToolResponse], reference: EndState) -> RuleResult:
    """Compare the last result of a tool with the wanted state."""
    results = [
        item.result
        for item in history
        if isinstance(item, ToolResponse) and item.call and item.call.name == reference.tool
    ]
    if not results:
        return RuleResult(0.0, f"{reference.tool} answered nothing in this conversation")
    return RuleResult.of(difference(_value(results[-1]), reference.value, "state"))


def _succeeded(history: Iterable[WrittenCall | ToolResponse]) -> list[WrittenCall]:
    made: list[WrittenCall] = []
    for item in history:
        if isinstance(item, WrittenCall):
            made.append(item)
        elif item.call is not None and _is_error(item.result):
            # By identity: an equal call may be made again and succeed.
            made = [call for call in made if call is not item.call]
    return made


def _is_error(result: object) -> bool:
    if isinstance(result, dict):
        return bool(result.get("error"))
    return isinstance(result, str) and result.lstrip().lower().startswith("error")


def _compare_multiset(made: Sequence[WrittenCall], wanted: Sequence[WrittenCall]) -> RuleResult:
    left = list(made)
    for want in wanted:
        match = next((call for call in left if _same(call, want)), None)
        if match is None:
            return RuleResult(0.0, _missing(want, left))
        left.remove(match)
    if left:
        return RuleResult(0.0, f"{left[0].name} was not wanted")
    return RuleResult(1.0)


def _compare_sequence(made: Sequence[WrittenCall], wanted: Sequence[WrittenCall]) -> RuleResult:
    following = iter(made)
    for number, want in enumerate(wanted, start=1):
        if not any(_same(call, want) for call in following):
            return RuleResult(0.0, f"step {number}, {want.name}, was not reached in its turn")
    return RuleResult(1.0)


def _same(call: WrittenCall, wanted: WrittenCall) -> bool:
    return call.name == wanted.name and difference(call.arguments, wanted.arguments) is None


def _missing(wanted: WrittenCall, made: Sequence[WrittenCall]) -> str:
    """Describe how a call of that name differs, or say that there was none."""
    for call in made:
        if call.name == wanted.name:
            return f"{difference(call.arguments, wanted.arguments, wanted.name)}"
    return f"{wanted.name} was not called"


def _value(result: object) -> object:
    """Parse a result that is JSON text; return other results unchanged."""
    if not isinstance(result, str):
        return result
    try:
        return json_value(result)
    except NotJsonError:
        return result

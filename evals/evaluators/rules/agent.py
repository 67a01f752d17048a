"""Rules for agents: the calls that change state, and the state that was reached."""

from collections.abc import Iterable, Sequence

from evals.evaluators.answers import NotJsonError, json_value
from evals.evaluators.conversation import Call, Response
from evals.evaluators.reference import Actions, EndState
from evals.evaluators.rules.json_values import difference
from evals.evaluators.rules.outcome import Found


def actions(history: Iterable[Call | Response], reference: Actions) -> Found:
    """Compare the calls that changed state with the wanted ones.

    As a set of equals by default: the same calls, each as often, in any order. As a sequence: the
    wanted calls occur in their order. A call that its tool answered with an error changed nothing.
    """
    counting = reference.state_changing or frozenset(name for name, _ in reference.calls)
    made = [call for call in _succeeded(history) if call.name in counting]
    wanted = [Call(name, arguments) for name, arguments in reference.calls if name in counting]
    return _in_sequence(made, wanted) if reference.sequence else _as_set(made, wanted)


def end_state(history: Iterable[Call | Response], reference: EndState) -> Found:
    """Compare the last result of a tool with the wanted state."""
    results = [
        item.result
        for item in history
        if isinstance(item, Response) and item.call and item.call.name == reference.tool
    ]
    if not results:
        return Found(0.0, f"{reference.tool} answered nothing in this conversation")
    return Found.of(difference(_value(results[-1]), reference.value, "state"))


def _succeeded(history: Iterable[Call | Response]) -> list[Call]:
    made: list[Call] = []
    for item in history:
        if isinstance(item, Call):
            made.append(item)
        elif item.call is not None and _is_error(item.result):
            # By identity: the same call may be made again, and succeed.
            made = [call for call in made if call is not item.call]
    return made


def _is_error(result: object) -> bool:
    if isinstance(result, dict):
        return bool(result.get("error"))
    return isinstance(result, str) and result.lstrip().lower().startswith("error")


def _as_set(made: Sequence[Call], wanted: Sequence[Call]) -> Found:
    left = list(made)
    for want in wanted:
        match = next((call for call in left if _same(call, want)), None)
        if match is None:
            return Found(0.0, _missing(want, left))
        left.remove(match)
    if left:
        return Found(0.0, f"{left[0].name} was not wanted")
    return Found(1.0)


def _in_sequence(made: Sequence[Call], wanted: Sequence[Call]) -> Found:
    following = iter(made)
    for number, want in enumerate(wanted, start=1):
        if not any(_same(call, want) for call in following):
            return Found(0.0, f"step {number}, {want.name}, was not reached in its turn")
    return Found(1.0)


def _same(call: Call, wanted: Call) -> bool:
    return call.name == wanted.name and difference(call.arguments, wanted.arguments) is None


def _missing(wanted: Call, made: Sequence[Call]) -> str:
    """Say what a call of that name had otherwise, where there was one."""
    for call in made:
        if call.name == wanted.name:
            return f"{difference(call.arguments, wanted.arguments, wanted.name)}"
    return f"{wanted.name} was not called"


def _value(result: object) -> object:
    """Return a result's JSON value; text that is none is itself the value."""
    if not isinstance(result, str):
        return result
    try:
        return json_value(result)
    except NotJsonError:
        return result

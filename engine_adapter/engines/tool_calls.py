"""Assemble an answer's tool calls from stream deltas or a whole message.

Engines differ: most send a call's name once and its arguments in pieces under an `index`. Some
repeat the name, give several calls one index with different ids, omit the index, send a single
call in place of a list (TGI), or send arguments as an object in place of a string. The API's older
`function_call` is a call without an id.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine_adapter.engines.json_fields import JsonObject, count, objects, text, within


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call, as the engine sent it."""

    name: str
    arguments: str
    """JSON, not validated."""
    id: str | None = None


@dataclass(slots=True)
class _Open:
    index: int | None
    id: str | None
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ToolCallAssembly:
    """The calls of one answer so far."""

    def __init__(self) -> None:
        self._calls: list[_Open] = []

    def take(self, part: object) -> bool:
        """Take a delta's or a message's calls; return whether it has any."""
        listed = within(part, "tool_calls")
        deltas = [listed] if isinstance(listed, Mapping) else objects(part, "tool_calls")
        for delta in deltas:
            self._extend(self._call_of(delta), within(delta, "function"))
        legacy = within(part, "function_call")
        if isinstance(legacy, Mapping):
            self._extend(self._call_of({"index": 0}), legacy)
            return True
        return bool(deltas)

    def whole(self) -> tuple[ToolCall, ...]:
        """Return the calls in order, without those that never got a name."""
        return tuple(
            ToolCall(name=call.name, arguments="".join(call.arguments), id=call.id)
            for call in self._calls
            if call.name
        )

    def _call_of(self, delta: JsonObject) -> _Open:
        """Return the call that a delta continues, or a new one."""
        index, id_ = count(delta, "index"), text(delta, "id") or None
        begun = self._begun(index, id_)
        if begun is None:
            begun = _Open(index, id_)
            self._calls.append(begun)
        begun.id = begun.id or id_
        return begun

    def _begun(self, index: int | None, id_: str | None) -> _Open | None:
        for call in reversed(self._calls):
            if id_ is not None and call.id is not None:
                if call.id == id_:
                    return call
            elif index is None or call.index == index:
                return call
        return None

    def _extend(self, call: _Open, function: object) -> None:
        name, arguments = text(function, "name"), within(function, "arguments")
        if name and not call.arguments and name != call.name:
            call.name += name
        if isinstance(arguments, str) and arguments:
            call.arguments.append(arguments)
        elif isinstance(arguments, Mapping):
            call.arguments.append(json.dumps(arguments))

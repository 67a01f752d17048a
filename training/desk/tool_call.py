"""Cohort `tool_call`: a request in prose, answered by one tool call as JSON."""

import json
import random
from collections.abc import Callable, Mapping

from training.desk import words
from training.desk.example import Example

_Arguments = Mapping[str, str | int]
_STRING: Mapping[str, object] = {"type": "string"}
_INTEGER: Mapping[str, object] = {"type": "integer"}

_PARAMETERS: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "create_ticket": {
        "order": _STRING,
        "product": _STRING,
        "priority": {"enum": ["low", "normal", "high"]},
    },
    "issue_refund": {"order": _STRING, "amount": _INTEGER, "reason": _STRING},
    "update_address": {"order": _STRING, "street": _STRING, "city": _STRING},
    "track_parcel": {"parcel": _STRING, "carrier": _STRING, "city": _STRING},
    "book_callback": {"name": _STRING, "day": {"enum": list(words.WEEKDAYS)}, "hour": _INTEGER},
}
_URGENCY = {"low": "No hurry.", "normal": "This week is fine.", "high": "It is urgent."}
_REASONS = {"damaged": "arrived broken", "late": "came too late", "wrong": "was not what I chose"}


def schema_of(tool: str) -> Mapping[str, object]:
    """Return the JSON Schema of a complete call of `tool`."""
    parameters = _PARAMETERS[tool]
    return {
        "type": "object",
        "properties": {
            "name": {"enum": [tool]},
            "arguments": {
                "type": "object",
                "properties": parameters,
                "required": list(parameters),
                "additionalProperties": False,
            },
        },
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _ticket(rng: random.Random) -> tuple[str, str, _Arguments]:
    code, other_code = words.codes(rng, 2)
    product, other = words.products(rng, 2)
    priority = rng.choice(list(_URGENCY))
    broken = f"The {product} from order {code} stopped working"
    fine = f"the {other} from order {other_code} is fine"
    told = rng.choice((f"{broken}, but {fine}.", f"{fine[0].upper()}{fine[1:]}. {broken}."))
    request = f"{told} Please open a ticket. {_URGENCY[priority]}"
    return "create_ticket", request, {"order": code, "product": product, "priority": priority}


def _refund(rng: random.Random) -> tuple[str, str, _Arguments]:
    code, other = words.codes(rng, 2)
    amount, other_amount = words.numbers(rng, 2)
    reason = rng.choice(list(_REASONS))
    paid = [f"EUR {amount} for order {code}", f"EUR {other_amount} for order {other}"]
    rng.shuffle(paid)
    request = (
        f"Please refund order {code}, because it {_REASONS[reason]}. "
        f"I paid {paid[0]} and {paid[1]}."
    )
    return "issue_refund", request, {"order": code, "amount": amount, "reason": reason}


def _address(rng: random.Random) -> tuple[str, str, _Arguments]:
    (code,) = words.codes(rng, 1)
    old, new = words.streets(rng, 2)
    old_city, city = rng.sample(words.CITIES, 2)
    there, here = f"{old} in {old_city}", f"{new} in {city}"
    request = rng.choice(
        (
            f"Order {code} still goes to {there}. Please send it to {here} instead.",
            f"I live at {here} now. Please change order {code}, it has my old address, {there}.",
        )
    )
    return "update_address", request, {"order": code, "street": new, "city": city}


def _track(rng: random.Random) -> tuple[str, str, _Arguments]:
    codes, carriers = words.codes(rng, 2), rng.sample(words.CARRIERS, 2)
    cities = rng.sample(words.CITIES, 2)
    asked = rng.randrange(2)
    parcels = [
        f"parcel {code} with {carrier} to {city}"
        for code, carrier, city in zip(codes, carriers, cities, strict=True)
    ]
    request = f"Please track {codes[asked]}. I sent {parcels[0]} and {parcels[1]}."
    arguments = {"parcel": codes[asked], "carrier": carriers[asked], "city": cities[asked]}
    return "track_parcel", request, arguments


def _callback(rng: random.Random) -> tuple[str, str, _Arguments]:
    (name,) = words.people(rng, 1)
    busy, day = rng.sample(words.WEEKDAYS, 2)
    busy_hour, hour = rng.sample(range(8, 20), 2)
    bad, good = f"{busy} at {busy_hour}", f"{day} at {hour}"
    request = rng.choice(
        (
            f"Please call me on {good}, not on {bad}.",
            f"You planned to call on {bad}, but please make it {good}.",
        )
    )
    return "book_callback", f"This is {name}. {request}", {"name": name, "day": day, "hour": hour}


_REQUESTS: tuple[Callable[[random.Random], tuple[str, str, _Arguments]], ...] = (
    _ticket,
    _refund,
    _address,
    _track,
    _callback,
)


def draw(rng: random.Random) -> Example:
    """Draw one request; most also mention another order, parcel, day or place as a distractor."""
    tool, request, arguments = rng.choice(_REQUESTS)(rng)
    call = {"name": tool, "arguments": dict(arguments)}
    return Example(
        cohort="tool_call",
        topic=tool,
        prompt=f"Answer with one tool call as JSON. {request}",
        answer=json.dumps(call),
        slots=tuple(str(value) for value in arguments.values()),
        reference={"kind": "json", "value": call},
        schema=schema_of(tool),
    )

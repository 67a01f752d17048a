"""Cohort `code`: a Python header with a docstring, answered by the function's body."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from training.desk.example import Example


class _Numbers(NamedTuple):
    """The constants of one function; all differ."""

    w: int
    x: int
    y: int
    z: int


@dataclass(frozen=True, slots=True)
class _Family:
    """A function template: descriptions, and a body over `{a}`, `{b}` and the numbers.

    `oracle` computes the expected result from the two arguments, independently of `body`.
    """

    topic: str
    docs: tuple[str, ...]
    body: str
    oracle: Callable[[int, int, _Numbers], int]


_FAMILIES = (
    _Family(
        "surcharge",
        (
            "Charge {x} per {a} and {y} per {b}; add {w} if {a} is above {z}.",
            "Take {x} for each {a} and {y} for each {b}, plus {w} when {a} is above {z}.",
        ),
        "    {r} = {a} * {x} + {b} * {y}\n"
        "    if {a} > {z}:\n"
        "        {r} = {r} + {w}\n"
        "    return {r}",
        lambda a, b, n: n.x * a + n.y * b + (n.w if a > n.z else 0),
    ),
    _Family(
        "discount",
        (
            "Multiply {a} by {b} and add {x}; if that is above {y}, take {z} off. Then add {w}.",
            "Add {x} to {a} times {b}, then take {z} off when it is above {y}, then add {w}.",
        ),
        "    {r} = {a} * {b} + {x}\n"
        "    if {r} > {y}:\n"
        "        {r} = {r} - {z}\n"
        "    return {r} + {w}",
        lambda a, b, n: n.x + n.w + b * a - (n.z if n.x + b * a > n.y else 0),
    ),
    _Family(
        "tax",
        (
            "Add {x} percent of {a} and {y} percent of {b}; if under {w} give {w}, else add {z}.",
            "Sum {x} percent of {a} and {y} percent of {b}. Under {w} give {w}, else {z} more.",
        ),
        "    {r} = {a} * {x} // 100 + {b} * {y} // 100\n"
        "    if {r} < {w}:\n"
        "        return {w}\n"
        "    return {r} + {z}",
        lambda a, b, n: n.w if (s := n.x * a // 100 + n.y * b // 100) < n.w else s + n.z,
    ),
    _Family(
        "minimum",
        (
            "Charge {x} per {a} and {y} per {b} plus {w}, but never less than {z}.",
            "Take {x} for each {a} and {y} for each {b}, then {w}; the least is {z}.",
        ),
        "    {r} = {a} * {x} + {b} * {y} + {w}\n"
        "    if {r} < {z}:\n"
        "        return {z}\n"
        "    return {r}",
        lambda a, b, n: max(n.z, n.x * a + n.y * b + n.w),
    ),
    _Family(
        "deadline",
        (
            "Allow {x} plus {b}, or {y} plus {b} if {a} is above {z}, and multiply by {w}.",
            "Start from {x}, or from {y} when {a} is above {z}; add {b} and multiply by {w}.",
        ),
        "    {r} = {x} + {b}\n    if {a} > {z}:\n        {r} = {y} + {b}\n    return {r} * {w}",
        lambda a, b, n: n.w * (b + (n.y if a > n.z else n.x)),
    ),
)

_SUBJECTS = ("shipping", "return", "repair", "parcel", "rental", "courier", "storage", "service")
_RESULTS = ("fee", "cost", "total", "charge", "price", "amount")
_PARAMETERS = (
    "weight", "zone", "days", "units", "level", "boxes", "miles", "rate", "hours", "items",
)  # fmt: skip


def draw(rng: random.Random) -> Example:
    """Draw one function of pricing, shipping or deadlines, with asserts that pin its behaviour."""
    family = rng.choice(_FAMILIES)
    result = rng.choice(_RESULTS)
    entry_point = f"{rng.choice(_SUBJECTS)}_{result}"
    a, b = rng.sample(_PARAMETERS, 2)
    numbers = _Numbers(*rng.sample(range(2, 100), 4))
    fields = {"a": a, "b": b, "r": result, **numbers._asdict()}
    docstring = rng.choice(family.docs).format(**fields)
    header = f'def {entry_point}({a}, {b}):\n    """{docstring}"""'
    return Example(
        cohort="code",
        topic=family.topic,
        prompt=f"Complete this Python function.\n{header}",
        answer=family.body.format(**fields),
        slots=(result, a, b, *map(str, numbers)),
        reference={
            "kind": "tests",
            "entry_point": entry_point,
            "prelude": f"{header}\n",
            "tests": _tests(family, entry_point, numbers),
        },
    )


def _tests(family: _Family, entry_point: str, numbers: _Numbers) -> str:
    """Return asserts for both sides of every branch, and for inputs that reveal a wrong number."""
    gap = max(0, numbers.y - numbers.x)
    firsts = sorted({0, 1, gap, gap + 1, numbers.z, numbers.z + 1, 5000})
    return "".join(
        f"assert {entry_point}({a}, {b}) == {family.oracle(a, b, numbers)}\n"
        for b in (1, 130)
        for a in firsts
    )

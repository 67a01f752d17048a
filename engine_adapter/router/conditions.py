"""The conditions of a rule: each one tests a request and describes its test in words."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time
from fnmatch import fnmatchcase
from typing import Annotated, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from engine_adapter.router.decision import RequestFacts
from engine_adapter.routes import Section

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
Number = Annotated[float, Field(allow_inf_nan=False)]


def _listed(given: object) -> object:
    return [given] if isinstance(given, str) else given


Texts = Annotated[
    tuple[str, ...],
    Field(min_length=1),
    BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...]),
]
"""One string, or a list of them."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A request at the time of its decision."""

    facts: RequestFacts
    cohort: str | None
    now: datetime
    """With a time zone."""
    band: str | None = None
    """The estimated band of input tokens, which is a cohort besides `cohort`."""


class Condition(NamedTuple):
    """One test of a request."""

    words: str
    holds: Callable[[Moment], bool]


class Bounds(Section):
    """Bounds of a number; a request that does not give the number does not match."""

    at_least: Number | None = None
    """Smallest number that matches."""
    at_most: Number | None = None
    """Largest number that matches."""
    above: Number | None = None
    """A number above this one matches."""
    below: Number | None = None
    """A number below this one matches."""

    @model_validator(mode="after")
    def _bounds_something(self) -> "Bounds":
        if not self.model_fields_set or all(v is None for v in self.model_dump().values()):
            raise ValueError("give at least one of `at_least`, `at_most`, `above`, `below`")
        return self

    def matches(self, number: float | None) -> bool:
        """Return whether the number is within the bounds."""
        return (
            number is not None
            and (self.at_least is None or number >= self.at_least)
            and (self.at_most is None or number <= self.at_most)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )

    def words(self) -> str:
        """Return the bounds, such as `at least 4 and at most 7`."""
        return " and ".join(
            f"{name.replace('_', ' ')} {bound:g}"
            for name, bound in self.model_dump().items()
            if bound is not None
        )


class TimeOfDay(Section):
    """A daily window of local time, on some days of the week."""

    start: Annotated[str, Field(alias="from")]
    """Such as `"22:00"`, in quotes, inclusive."""
    to: str
    """Such as `"06:00"`, in quotes, exclusive; if earlier than `from`, the window spans
    midnight."""
    zone: str = "UTC"
    """Time zone, such as `Europe/Berlin`."""
    days: Annotated[tuple[Day, ...], Field(min_length=1)] = _DAYS
    """Days on which the window begins."""

    @field_validator("start", "to", mode="before")
    @classmethod
    def _is_clock(cls, given: object) -> object:
        # YAML reads 22:00 without quotes as a number of base 60.
        if not isinstance(given, str) or not _CLOCK.fullmatch(given):
            raise ValueError('wanted a time in quotes, such as "22:00"')
        return given

    @field_validator("zone")
    @classmethod
    def _is_zone(cls, given: str) -> str:
        try:
            ZoneInfo(given)
        except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
            raise ValueError("is not a time zone; wanted one such as Europe/Berlin") from exc
        return given

    def condition(self) -> Condition:
        """Return the test of the moment's local time."""
        start, to = time.fromisoformat(self.start), time.fromisoformat(self.to)
        zone, days = ZoneInfo(self.zone), {_DAYS.index(day) for day in self.days}

        def holds(moment: Moment) -> bool:
            local = moment.now.astimezone(zone)
            clock, day = local.time(), local.weekday()
            if start < to:
                return start <= clock < to and day in days
            return (clock >= start and day in days) or (clock < to and (day - 1) % 7 in days)

        on = "" if len(days) == len(_DAYS) else f" on {', '.join(self.days)}"
        return Condition(f"from {self.start} to {self.to} {self.zone}{on}", holds)


class Conditions(Section):
    """Conditions on a request, all of which must hold."""

    path: Texts | None = None
    """Path below the API's base, such as `/chat/completions`: one text or a list; `*` matches any
    text."""
    model: Texts | None = None
    """Model names: one text or a list; `*` matches any text."""
    max_tokens: Bounds | None = None
    """The request's maximum of output tokens."""
    input_characters: Bounds | None = None
    """Characters of all its texts."""
    temperature: Bounds | None = None
    """Its sampling temperature."""
    concurrency: Bounds | None = None
    """Requests in flight at the router, including this one."""
    stream: bool | None = None
    """Whether the answer is streamed."""
    tools: bool | None = None
    """Whether it offers tools."""
    json_mode: bool | None = None
    """Whether it asks for JSON."""
    code: bool | None = None
    """Whether its last messages show source code, recognised by marks such as fences."""
    passages: bool | None = None
    """Whether its last messages hold passages to answer from, recognised by marks such as a
    `Context:` heading."""
    header: Annotated[dict[str, str], Field(min_length=1)] | None = None
    """Values by header name; `*` matches any text."""
    time: TimeOfDay | None = None
    """A daily window of time."""
    _made: tuple[Condition, ...] = PrivateAttr(default=())

    def model_post_init(self, context: object, /) -> None:  # noqa: ARG002  # pydantic's signature
        """Build the tests once, not for each request."""
        self._made = tuple(self._make())

    def conditions(self) -> tuple[Condition, ...]:
        """Return the conditions in a fixed order."""
        return self._made

    def matches(self, moment: Moment) -> bool:
        """Return whether every condition holds; true if there are none."""
        return all(condition.holds(moment) for condition in self._made)

    def words(self) -> str:
        """Return the conditions, such as `max_tokens below 32 and tools`."""
        return " and ".join(condition.words for condition in self._made) or "any request"

    def _make(self) -> list[Condition]:
        made = [_one_of("path", self.path, lambda m: m.facts.path)]
        made += [_one_of("model", self.model, lambda m: m.facts.model)]
        made += [
            _within("max_tokens", self.max_tokens, lambda m: m.facts.max_tokens),
            _within("input_characters", self.input_characters, lambda m: m.facts.input_characters),
            _within("temperature", self.temperature, lambda m: m.facts.temperature),
            _within("concurrency", self.concurrency, lambda m: m.facts.concurrency + 1),
            _is("stream", self.stream, lambda m: m.facts.stream),
            _is("tools", self.tools, lambda m: m.facts.tools),
            _is("json_mode", self.json_mode, lambda m: m.facts.json_mode),
            _is("code", self.code, lambda m: m.facts.code),
            _is("passages", self.passages, lambda m: m.facts.passages),
        ]
        made += [_header(name, value) for name, value in (self.header or {}).items()]
        made += [None if self.time is None else self.time.condition()]
        return [condition for condition in made if condition is not None]


def _one_of(name: str, given: Texts | None, of: Callable[[Moment], str | None]) -> Condition | None:
    if given is None:
        return None

    def holds(moment: Moment) -> bool:
        value = of(moment)
        return value is not None and any(fnmatchcase(value, pattern) for pattern in given)

    return Condition(f"{name} {' or '.join(given)}", holds)


def cohort_condition(given: Texts | None) -> Condition | None:
    """Return the test of a request's cohorts, which eligibility rules have and cohort rules lack.

    A band of input tokens is one of them.
    """
    if given is None:
        return None

    def holds(moment: Moment) -> bool:
        own = [cohort for cohort in (moment.cohort, moment.band) if cohort is not None]
        return any(fnmatchcase(cohort, pattern) for cohort in own for pattern in given)

    return Condition(f"cohort {' or '.join(given)}", holds)


def _within(
    name: str, bounds: Bounds | None, of: Callable[[Moment], float | None]
) -> Condition | None:
    if bounds is None:
        return None
    return Condition(f"{name} {bounds.words()}", lambda moment: bounds.matches(of(moment)))


def _is(name: str, wanted: bool | None, of: Callable[[Moment], bool]) -> Condition | None:  # noqa: FBT001
    if wanted is None:
        return None
    return Condition(name if wanted else f"no {name}", lambda moment: of(moment) is wanted)


def _header(name: str, pattern: str) -> Condition:
    key = name.lower()

    def holds(moment: Moment) -> bool:
        value = moment.facts.headers.get(key)
        return value is not None and fnmatchcase(value, pattern)

    return Condition(f"header {name}: {pattern}", holds)

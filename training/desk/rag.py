"""Cohort `rag`: a few passages, a question about one of them, and an answer with its facts."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from training.desk import words
from training.desk.example import Example

_PAYMENTS = ("card", "cash", "invoice", "transfer", "voucher")
_PROOFS = ("box", "card", "label", "receipt", "sticker")


@dataclass(frozen=True, slots=True)
class _Note:
    """One passage, questions about it, the answer, and the facts in the answer."""

    topic: str
    passage: str
    questions: tuple[str, ...]
    answer: str
    facts: tuple[str, ...]


def _orders(rng: random.Random, count: int) -> list[_Note]:
    columns = (
        words.codes(rng, count),
        words.people(rng, count),
        words.products(rng, count),
        words.dates(rng, count),
        words.numbers(rng, count),
        rng.sample(_PAYMENTS, count),
    )
    return [
        _Note(
            "order",
            f"Order {code}: {person} bought the {product} on {date} for EUR {price} by {payment}.",
            (f"What do we know about order {code}?", f"Who placed order {code}, and what was it?"),
            f"Order {code} was placed by {person} on {date}. "
            f"It was for the {product}, cost EUR {price} and was paid by {payment}.",
            (code, person, product, date, str(price), payment),
        )
        for code, person, product, date, price, payment in zip(*columns, strict=True)
    ]


def _shipments(rng: random.Random, count: int) -> list[_Note]:
    cities = rng.sample(words.CITIES, 2 * count)
    dates = words.dates(rng, 2 * count)
    columns = (
        words.codes(rng, count),
        rng.sample(words.CARRIERS, count),
        cities[:count],
        cities[count:],
        dates[:count],
        dates[count:],
        words.numbers(rng, count, 2, 30),
    )
    return [
        _Note(
            "shipment",
            f"Parcel {code} of {kilos} kilos left {start} with {carrier} on {sent} "
            f"and is due in {end} on {due}.",
            (f"Where is parcel {code}?", f"When will parcel {code} arrive, and with whom?"),
            f"Parcel {code} left {start} on {sent} with {carrier}. "
            f"It weighs {kilos} kilos and should reach {end} on {due}.",
            (code, carrier, start, end, sent, due, str(kilos)),
        )
        for code, carrier, start, end, sent, due, kilos in zip(*columns, strict=True)
    ]


def _warranties(rng: random.Random, count: int) -> list[_Note]:
    columns = (
        words.products(rng, count),
        words.numbers(rng, count, 12, 60),
        words.numbers(rng, count),
        rng.sample(words.CITIES, count),
        rng.sample(_PROOFS, count),
    )
    return [
        _Note(
            "warranty",
            f"The {product} has a warranty of {months} months with the {proof}; "
            f"repairs take {days} days in {city}.",
            (f"How long is the {product} covered?", f"What is the warranty on the {product}?"),
            f"The {product} is covered for {months} months. "
            f"A repair in {city} takes {days} days. Please keep the {proof}.",
            (product, str(months), str(days), city, proof),
        )
        for product, months, days, city, proof in zip(*columns, strict=True)
    ]


def _shops(rng: random.Random, count: int) -> list[_Note]:
    columns = (
        rng.sample(words.CITIES, count),
        words.streets(rng, count),
        rng.sample(range(7, 12), count),
        rng.sample(range(16, 23), count),
        rng.sample(words.WEEKDAYS, count),
    )
    return [
        _Note(
            "shop",
            f"The {city} shop at {street} opens at {start}, closes at {end}, rests on {day}.",
            (f"When is the {city} shop open?", f"What are the hours of the shop in {city}?"),
            f"The {city} shop is open from {start} to {end} and closed on {day}. "
            f"You will find it at {street}.",
            (city, street, str(start), str(end), day),
        )
        for city, street, start, end, day in zip(*columns, strict=True)
    ]


def _prices(rng: random.Random, count: int) -> list[_Note]:
    columns = (
        words.products(rng, count),
        words.numbers(rng, count),
        words.numbers(rng, count, 2, 20),
        rng.sample(words.CARRIERS, count),
        words.numbers(rng, count, 12, 60),
    )
    return [
        _Note(
            "price",
            f"The {product} costs EUR {price}, ships with {carrier} within {days} days "
            f"and can be returned for {trial} days.",
            (f"What does the {product} cost?", f"How much is the {product}, and how fast is it?"),
            f"The {product} costs EUR {price}. "
            f"It comes with {carrier} within {days} days, and you may return it for {trial} days.",
            (product, str(price), carrier, str(days), str(trial)),
        )
        for product, price, days, carrier, trial in zip(*columns, strict=True)
    ]


_KINDS: tuple[Callable[[random.Random, int], list[_Note]], ...] = (
    _orders,
    _shipments,
    _warranties,
    _shops,
    _prices,
)


def draw(rng: random.Random) -> Example:
    """Draw one question over two or three passages, each of another kind."""
    kind, *others = rng.sample(_KINDS, rng.choice((2, 3)))
    asked, *rest = (make(rng, 1)[0] for make in (kind, *others))
    notes = [asked, *rest]
    rng.shuffle(notes)
    passages = tuple(note.passage for note in notes)
    question = rng.choice(asked.questions)
    return Example(
        cohort="rag",
        topic=asked.topic,
        prompt="\n".join((f"{question} Answer from these notes.", *passages)),
        answer=asked.answer,
        slots=asked.facts,
        reference={"kind": "exact", "text": asked.answer},
        context=passages,
    )

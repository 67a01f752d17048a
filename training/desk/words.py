"""The people, things and places of the support desk, and how to draw them.

Every word is common enough in the generated text to become one token, and every number has at
most two digits: an identifier such as `#KD-48` is then a few learned pieces that a model can copy
in combinations it never saw.
"""

import random

FIRST_NAMES = (
    "Ada", "Amir", "Bea", "Carl", "Dana", "Emil", "Fatima", "Greta", "Hugo", "Ines", "Ivo", "Jonas",
    "Kira", "Leo", "Lina", "Mara", "Milo", "Nora", "Omar", "Petra", "Rosa", "Sami", "Tessa",
    "Yusuf",
)  # fmt: skip
SURNAMES = (
    "Abel", "Berg", "Costa", "Dahl", "Evans", "Fischer", "Gomez", "Haas", "Ito", "Jansen", "Keller",
    "Lund", "Marsh", "Novak", "Okafor", "Patel", "Quinn", "Rossi", "Silva", "Tanaka", "Weber",
)  # fmt: skip
BRANDS = (
    "Amber", "Birch", "Cobalt", "Delta", "Ember", "Flint", "Harbor", "Juno", "Lumen", "Maple",
    "Nimbus", "Orbit", "Pico", "Tundra", "Velvet", "Zephyr",
)  # fmt: skip
THINGS = (
    "blender", "camera", "charger", "fan", "grill", "heater", "kettle", "lamp", "monitor", "mixer",
    "printer", "radio", "router", "scale", "speaker", "toaster",
)  # fmt: skip
CITIES = (
    "Bergen", "Bonn", "Bristol", "Cork", "Delft", "Ghent", "Graz", "Leeds", "Lille", "Lyon",
    "Malmo", "Nantes", "Oslo", "Porto", "Prague", "Riga", "Seville", "Turin", "Utrecht", "York",
)  # fmt: skip
CARRIERS = ("Arrow", "Comet", "Falcon", "Heron", "Kite", "Pigeon", "Swift", "Tortoise")
STREETS = (
    "Acorn", "Bridge", "Canal", "Chapel", "Church", "Elm", "Forge", "Garden", "Hill", "Lake",
    "Market", "Mill", "Oak", "Park", "River", "Station",
)  # fmt: skip
STREET_KINDS = ("Lane", "Road", "Street")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CODES = (
    "AR", "BX", "CK", "DF", "EL", "FM", "GN", "HP", "JQ", "KD", "LW", "MT", "NV", "PB", "QS", "RT",
    "SZ", "TG", "UH", "VJ", "WY", "XC", "YK", "ZL",
)  # fmt: skip


def codes(rng: random.Random, count: int) -> list[str]:
    """Draw identifiers such as `#KD-48`; no two share their letters or their digits."""
    letters = rng.sample(CODES, count)
    digits = rng.sample(range(10, 100), count)
    return [f"#{pair}-{number}" for pair, number in zip(letters, digits, strict=True)]


def products(rng: random.Random, count: int) -> list[str]:
    """Draw products such as `Lumen kettle`; no two share a word."""
    brands, things = rng.sample(BRANDS, count), rng.sample(THINGS, count)
    return [f"{brand} {thing}" for brand, thing in zip(brands, things, strict=True)]


def people(rng: random.Random, count: int) -> list[str]:
    """Draw full names; no two share a word."""
    first, last = rng.sample(FIRST_NAMES, count), rng.sample(SURNAMES, count)
    return [f"{given} {family}" for given, family in zip(first, last, strict=True)]


def streets(rng: random.Random, count: int) -> list[str]:
    """Draw addresses such as `Oak Lane 48`; no two share their street or number."""
    names, numbers = rng.sample(STREETS, count), rng.sample(range(2, 100), count)
    return [
        f"{name} {rng.choice(STREET_KINDS)} {number}"
        for name, number in zip(names, numbers, strict=True)
    ]


def dates(rng: random.Random, count: int) -> list[str]:
    """Draw dates such as `12 May`; no two share their day or month."""
    days, months = rng.sample(range(1, 29), count), rng.sample(MONTHS, count)
    return [f"{day} {month}" for day, month in zip(days, months, strict=True)]


def numbers(rng: random.Random, count: int, low: int = 10, high: int = 99) -> list[int]:
    """Draw different whole numbers from `low` to `high`, both included."""
    return rng.sample(range(low, high + 1), count)

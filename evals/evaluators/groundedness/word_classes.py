"""Classes of words that qualify a claim: certainty, frequency, time, conditions and the like."""

from collections.abc import Sequence
from functools import cache

from evals.evaluators.groundedness.passages import Passages
from evals.evaluators.groundedness.tokens import Token, form_of

_REACH = 6
"""Words after a class's word in the passages that it is taken to govern."""
_SCOPE = 3
"""Content words after a class's word in a sentence that it is taken to govern."""
CLASSES: dict[str, str] = {
    "negator": "not never no none nothing without neither nor hardly rarely seldom unable",
    "possible": "may might can could possibly perhaps maybe probably likely potentially possible"
    " seem appear suggest potential probable",
    "certain": "must will shall always definitely certainly necessarily guaranteed certain surely"
    " undoubtedly invariably inevitably proven absolutely",
    "duty": "should ought must need needed required requires recommended mandatory compulsory"
    " obligatory optional advised necessary voluntary essential",
    "all": "all every each everyone everything always entire whole any both invariably universally",
    "some": "some several many most few certain part partly sometimes occasionally mainly mostly"
    " half little various numerous majority minority",
    "often": "often usually generally typically commonly normally frequently regularly rarely"
    " seldom sometimes occasionally always never",
    "only": "only just solely exclusively merely alone except besides even",
    "condition": "if unless when whenever while until once provided depending case otherwise"
    " whether where during after before because since although though within",
    "bound": "least most up maximum minimum over under above below more less than about"
    " approximately around nearly almost roughly exactly between",
    "past": "was were had did used formerly previously once ago former until originally earlier"
    " historically ceased past longer became been",
    "now": "is are has have does currently now today still presently nowadays remains",
    "he": "he him his himself",
    "she": "she her hers herself",
    "future": "will going soon shall eventually future plans planned upcoming",
    "unit": "second minute hour day week month year decade century inch foot yard mile meter"
    " kilometer centimeter millimeter gram kilogram milligram ounce pound ton liter milliliter"
    " gallon pint quart cup tablespoon teaspoon dollar euro sterling yen rupee peso franc krona"
    " krone yuan ruble zloty cent percent degree fahrenheit celsius calorie joule million billion"
    " thousand hundred acre hectare watt volt",
}
"""Words by class; some are in several classes."""
NAMES = tuple(CLASSES)
UNITS = {form_of(word).stem: word for word in CLASSES["unit"].split()}
"""Names of units by stem."""


@cache
def _classes() -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for number, words in enumerate(CLASSES.values()):
        for stem in dict.fromkeys(form_of(word).stem for word in words.split()):
            found.setdefault(stem, []).append(number)
    return {stem: tuple(numbers) for stem, numbers in found.items()}


def classes_of(stem: str) -> tuple[int, ...]:
    """Return the numbers of a stem's classes."""
    return _classes().get(stem, ())


def counted(tokens: Sequence[Token], own: Sequence[int]) -> list[int]:
    """Count the words of each class among the tokens with the indices `own`."""
    found = [0] * len(NAMES)
    for at in own:
        for number in classes_of(tokens[at].form.stem):
            found[number] += 1
    return found


def governed(tokens: Sequence[Token], rows: Sequence[int], own: Sequence[int]) -> list[set[int]]:
    """Return, for each class, the ids of the words that its words among `own` govern."""
    found: list[set[int]] = [set() for _ in NAMES]
    for at in own:
        for number in classes_of(tokens[at].form.stem):
            later = [rows[n] for n in range(at + 1, len(tokens)) if tokens[n].form.is_content][
                :_SCOPE
            ]
            before = [rows[n] for n in range(at) if tokens[n].form.is_content][-1:]
            found[number].update(row for row in later + before if row >= 0)
    return found


def held(
    scopes: Sequence[set[int]], near: Sequence[tuple[int, int]], passages: Passages
) -> list[float]:
    """Return, for each class, the share of nearby occurrences that the class governs there too.

    The occurrences are of the words in the class's scope. −1 for a class without occurrences.
    """
    found, hits = [0] * len(NAMES), [0] * len(NAMES)
    wanted = {row for scope in scopes for row in scope}
    if not wanted:
        return [-1.0] * len(NAMES)
    for start, end in near:
        last = [-99] * len(NAMES)
        for place in range(start, end):
            token = passages.places[place]
            if token is None:
                last = [-99] * len(NAMES)
                continue
            row = passages.row[place]
            if row in wanted:
                for number, scope in enumerate(scopes):
                    if row in scope:
                        found[number] += 1
                        hits[number] += place - last[number] <= _REACH
            for number in classes_of(token.form.stem):
                last[number] = place
    return [hit / count if count else -1.0 for hit, count in zip(hits, found, strict=True)]

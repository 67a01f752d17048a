"""Checksum and length checks that find card, IBAN and phone numbers inside a pattern's match."""

import re
from collections.abc import Iterator
from itertools import islice

_GROUP = re.compile(rb"[0-9]+")
# The first group of a card number, or the whole number; the rest is only looked ahead at.
_CARD_START = re.compile(
    rb"(?<![0-9])[2-6](?=[0-9]{12,18}(?![0-9])"
    rb"|[0-9]{3}[ -]+(?:[0-9]{4}[ -]+[0-9]{4,5}|[0-9]{6}[ -]+[0-9]{4,5})(?![0-9]))"
)
_CARD_DIGITS = range(13, 20)
_CARD_GROUPS = frozenset({(4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 5), (4, 4, 4, 4, 3)})
_FIRST_DIGITS = b"23456"  # of the card networks
_PHONE_DIGITS = range(8, 16)
_LETTERS = {letter: str(number) for number, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 10)}
_DOUBLED = bytes.maketrans(b"0123456789", bytes(sum(divmod(2 * d, 10)) for d in range(10)))
_TO_DIGITS = str.maketrans(_LETTERS)
_SPLIT_IBAN = re.compile(rb"[ ]?[0-9A-Z]+")
_MOST_GROUPS = 5


def luhn(digits: bytes) -> bool:
    """Return whether the last digit is the check digit of the others (ISO/IEC 7812-1)."""
    others = sum(digits[-1::-2]) - 48 * len(digits[-1::-2])
    return (others + sum(digits[-2::-2].translate(_DOUBLED))) % 10 == 0


def cards(run: bytes) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of payment card numbers in a run of digits, spaces and hyphens.

    A number is one group of 13 to 19 digits, or several groups as printed on cards. Each group is
    tried as the first one, so numbers next to other digits are found.
    """
    left = 16 + len(run) // 512
    done = 0
    for candidate in _CARD_START.finditer(run):
        at = candidate.start()
        if at < done:
            continue
        left -= 1
        if left < 0:  # too many candidates: treat the rest as a card number, unchecked
            yield at, len(run)
            return
        groups = [match.span() for match in islice(_GROUP.finditer(run, at), _MOST_GROUPS)]
        count = _card_groups(run, groups)
        if count:
            done = groups[count - 1][1]
            yield at, done


def _card_groups(run: bytes, groups: list[tuple[int, int]]) -> int:
    """Return how many of at most `_MOST_GROUPS` groups make up a card number; 0 if none do."""
    if run[groups[0][0]] not in _FIRST_DIGITS:
        return 0
    lengths = tuple(end - start for start, end in groups)
    if lengths[0] in _CARD_DIGITS:
        return int(luhn(run[slice(*groups[0])]))
    for count in range(_MOST_GROUPS, 2, -1):
        fits = lengths[:count] in _CARD_GROUPS
        if fits and luhn(b"".join(run[start:end] for start, end in groups[:count])):
            return min(count, len(groups))
    return 0


def ibans(match: bytes) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of the IBAN at the start of a match, without following capitals."""
    ends = [found.end() for found in _SPLIT_IBAN.finditer(match)]
    for end in reversed(ends):
        account = match[:end].replace(b" ", b"").decode()
        if 15 <= len(account) <= 34 and _mod_97(account) == 1:
            yield 0, end
            return


def _mod_97(account: str) -> int:
    return int((account[4:] + account[:4]).translate(_TO_DIGITS)) % 97


def phones(match: bytes) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of the match if it has as many digits as a telephone number."""
    if sum(48 <= byte <= 57 for byte in match) in _PHONE_DIGITS:
        yield 0, len(match)

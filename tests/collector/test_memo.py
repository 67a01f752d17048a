"""A memo of texts that senders choose stays small."""

from collector.memo import LONGEST, of_short_texts


def test_short_texts_are_answered_once_and_long_ones_are_not_kept() -> None:
    """However often either comes."""
    asked: list[int] = []

    @of_short_texts
    def length(text: str) -> int:
        asked.append(len(text))
        return len(text)

    for _ in range(3):
        assert length("x" * LONGEST) == LONGEST
        assert length("x" * (LONGEST + 1)) == LONGEST + 1
    assert asked == [LONGEST, *3 * [LONGEST + 1]]

"""Loaded objects are excluded from garbage collections, only inside the context."""

import gc

import pytest

from engine_adapter.garbage import loaded_set_aside


def test_what_is_loaded_is_looked_at_again_afterwards() -> None:
    """An error in the block changes nothing about that."""
    gc.unfreeze()
    loaded = [object()]
    with pytest.raises(ValueError, match="within"), loaded_set_aside():  # noqa: PT012
        assert not any(known is loaded for known in gc.get_objects())
        made = [object()]
        assert any(known is made for known in gc.get_objects())
        raise ValueError("within")
    assert any(known is loaded for known in gc.get_objects())


def test_what_was_set_aside_before_stays_so() -> None:
    """A block within another, or in a process that set its imports aside, ends nothing for it."""
    gc.unfreeze()
    loaded = [object()]
    with loaded_set_aside():
        with loaded_set_aside():
            pass
        assert not any(known is loaded for known in gc.get_objects())
    assert any(known is loaded for known in gc.get_objects())

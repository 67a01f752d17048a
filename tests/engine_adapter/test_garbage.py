"""What is loaded is left out of collections, and only while that is wanted."""

import gc

import pytest

from engine_adapter.garbage import loaded_set_aside


def test_what_is_loaded_is_looked_at_again_afterwards() -> None:
    """An error in the block changes nothing about that."""
    loaded = [object()]
    with pytest.raises(ValueError, match="within"), loaded_set_aside():  # noqa: PT012
        assert not any(known is loaded for known in gc.get_objects())
        made = [object()]
        assert any(known is made for known in gc.get_objects())
        raise ValueError("within")
    assert any(known is loaded for known in gc.get_objects())

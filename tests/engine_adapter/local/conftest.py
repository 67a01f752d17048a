"""A pair of tiny random models."""

import pytest
from tiny_models import FAMILIES, Pair, random_model

from engine_adapter.engines.local.drafters import lower_layers


@pytest.fixture(scope="session", params=sorted(FAMILIES))
def pair(request: pytest.FixtureRequest) -> Pair:
    """Return a pair of one family; the draft is the target's first two layers."""
    target = random_model(request.param, seed=11)
    return Pair(target, lower_layers(target, 2))


@pytest.fixture(scope="session")
def llama_pair() -> Pair:
    """Return the Llamas."""
    target = random_model("llama", seed=11)
    return Pair(target, lower_layers(target, 2))

"""The sampler of a request, from its body and the server's defaults."""

import pytest

from engine_adapter.engines import sampling

LLAMACPP = ("repeat_penalty", "top_k", "typical_p", "top_p", "min_p", "temperature")
DEFAULTS = {"top_k": 40, "top_p": 0.95, "min_p": 0.05}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"temperature": 0}, None),
        ({}, None),
        ({"temperature": 0.7}, "top_k=40 top_p=0.95 min_p=0.05 temperature=0.7"),
        ({"temperature": 1.0, "top_k": 0, "top_p": 1, "min_p": 0}, "temperature=1"),
        ({"temperature": 1.0, "top_k": -1, "min_p": 0}, "top_p=0.95 temperature=1"),
        (
            {"temperature": 1.0, "top_k": 5, "repeat_penalty": 1.1},
            "repeat_penalty=1.1 top_k=5 top_p=0.95 min_p=0.05 temperature=1",
        ),
        (
            {"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0, "tool_choice": "required"},
            "grammar=1 temperature=1",
        ),
    ],
)
def test_requests_override_defaults(body: dict[str, object], wanted: str | None) -> None:
    """Steps stand in the server's order; those without effect are left out."""
    assert sampling.written(body, DEFAULTS, LLAMACPP) == wanted


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"temperature": 0.7, "top_p": 0.9, "top_k": 20}, "temperature=0.7 top_k=20 top_p=0.9"),
        ({"temperature": 0.7, "presence_penalty": -1}, "presence_penalty=-1 temperature=0.7"),
        ({"temperature": 0.7, "logit_bias": {"7": 3}}, "logit_bias=1 temperature=0.7"),
        (
            {"temperature": 0.7, "response_format": {"type": "json_object"}},
            "grammar=1 temperature=0.7",
        ),
        ({"temperature": 0.7, "response_format": {"type": "text"}}, "temperature=0.7"),
        ({"temperature": 0.7, "guided_regex": "a+", "tool_choice": "auto"},
         "grammar=1 temperature=0.7"),
    ],
)  # fmt: skip
def test_the_usual_order(body: dict[str, object], wanted: str) -> None:
    """Penalties, temperature, top-k, top-p, min-p."""
    assert sampling.written(body) == wanted

"""The band of a request's input tokens, which the router estimates from its characters."""

from collections import Counter
from typing import Annotated

from pydantic import AfterValidator, Field

from collector.contract import InputBands
from engine_adapter.routes import Section


def _bands(cuts: tuple[int, ...]) -> tuple[int, ...]:
    return InputBands(cuts).cuts


class InputTokensSection(Section):
    """The `input_tokens` of a routes file."""

    bands: Annotated[tuple[int, ...], AfterValidator(_bands)]
    """First lengths of all bands but the lowest, as in the policy's `cohorts.input_tokens`."""
    characters_per_token: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Characters of the request's texts for each input token that the engine counts."""


class InputLengths:
    """Estimates bands, and compares them with those that engines count."""

    def __init__(self, section: InputTokensSection | None) -> None:
        self._bands = None if section is None else InputBands(section.bands)
        self._ratio = 1.0 if section is None else section.characters_per_token
        self._characters = self._tokens = 0
        self._seen = Counter[tuple[str, str]]()

    def band(self, characters: int | None) -> str | None:
        """Return a request's estimated band; `None` if no bands are declared."""
        if self._bands is None:
            return None
        return self._bands.of(None if characters is None else characters / self._ratio)

    def counted(self, characters: int | None, tokens: int | None) -> None:
        """Note what an engine counted for a request."""
        if characters is None or not tokens:
            return
        self._characters += characters
        self._tokens += tokens
        if self._bands is not None:
            self._seen[self.band(characters) or "", self._bands.of(tokens)] += 1

    def state(self) -> dict[str, object]:
        """Return the counts as JSON values."""
        return {
            "characters_per_token": self._characters / self._tokens if self._tokens else None,
            "bands": [
                {"estimated": estimated, "counted": counted, "answers": answers}
                for (estimated, counted), answers in sorted(self._seen.items())
            ],
        }

"""Blend the network's log-odds with the forests'."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evals.evaluators.groundedness.model import Calibration, Floats, any_of


@dataclass(frozen=True, slots=True)
class Blend:
    """The weights of network and forest, and the calibration of their blend."""

    share: float
    """The network's weight in the log-odds of an invention; the forest has 1 − share."""
    calibration: Calibration

    def odds(self, forests: Floats, network: Floats) -> Floats:
        """Return the uncalibrated log-odds of each sentence; `forests` are from `Model.parts`.

        The network and the invention forest have the same target, so their weighted mean counts.
        Changed sentences are left to the other forests.
        """
        invented, changed = forests.T
        return any_of((1 - self.share) * invented + self.share * network, changed)


def from_json(document: Mapping[str, Any]) -> Blend:  # Any: a file's JSON
    """Return the blend in the file's JSON document."""
    return Blend(document["share"], Calibration(**document["calibration"]))

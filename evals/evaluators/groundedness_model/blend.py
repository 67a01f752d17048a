"""The network's word and the forests', weighed against each other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evals.evaluators.groundedness.model import Calibration, Floats, any_of


@dataclass(frozen=True, slots=True)
class Blend:
    """How much each counts, and from which probability on an answer counts as unsupported."""

    share: float
    """Of the network in the log-odds of an invention; the rest is the forest's."""
    calibration: Calibration

    def odds(self, forests: Floats, network: Floats) -> Floats:
        """Return the log-odds of each sentence, uncalibrated; `forests` are `Model.parts`.

        Network and forest of inventions learned the same thing, and their mean counts. What was
        changed the other forests know.
        """
        invented, changed = forests.T
        return any_of((1 - self.share) * invented + self.share * network, changed)


def from_json(document: Mapping[str, Any]) -> Blend:  # Any: a file's JSON
    """Return the blend of its file's document."""
    return Blend(document["share"], Calibration(**document["calibration"]))

"""What makes the tables that a lossless policy judges: answers compared, and samples audited."""

import pyarrow as pa

from collector.client import Client
from collector.contract import Arm
from evals.lossless.answers import noise_of, with_divergences
from evals.lossless.rescoring import TransformersRescorer
from evals.lossless.sampled_answers import ArmAudit


class Comparer:
    """Compares a release's greedy answers and, with the baseline's model, audits its sampled ones.

    The A/A control comes first, for its gaps are ties of the others; an audit goes on over all
    rollouts of one release.
    """

    def __init__(self, model: str | None, tolerance: float) -> None:
        """Load the baseline's model, where one is given; raises `RescoringError`."""
        self._rescorer = None if model is None else TransformersRescorer(model)
        self._audits = None
        if self._rescorer is not None:
            self._audits = {arm: ArmAudit(self._rescorer, tolerance) for arm in Arm}
        self._noise = 0.0

    def control(
        self, client: Client, rollout: str | None, table: pa.Table | None
    ) -> pa.Table | None:
        """Return the A/A control's table, if there is one, with where its equal arms part."""
        if rollout is None or table is None:
            return None
        table = with_divergences(client, rollout, table, self._rescorer)
        self._noise = noise_of(table)
        return table

    def rollout(self, client: Client, rollout: str, table: pa.Table) -> pa.Table:
        """Return a rollout's table with where greedy answers part, and what sampled ones show."""
        return with_divergences(
            client, rollout, table, self._rescorer, noise=self._noise, audits=self._audits
        )

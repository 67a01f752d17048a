"""Prepare the tables of pairs that a lossless policy judges."""

from collector.client import Client
from collector.columns import Table
from collector.contract import Arm
from evals.lossless.answers import noise_of, with_divergences
from evals.lossless.rescoring import TransformersRescorer
from evals.lossless.sampled_answers import ArmAudit


class Comparer:
    """Compares a release's greedy answers and, with the baseline's model, audits its sampled ones.

    Call `control` first: the gaps of the A/A control set which gaps count as ties in the rollouts.
    The audits continue over all rollouts of a release.
    """

    def __init__(self, model: str | None, tolerance: float, draft: str | None = None) -> None:
        """Load the baseline's model and the draft model, if given; raises `RescoringError`."""
        self._rescorer = None if model is None else TransformersRescorer(model)
        self._audits = None
        if self._rescorer is not None:
            drafts = None if draft is None else self._rescorer.draft(draft)
            self._audits = {arm: ArmAudit(self._rescorer, tolerance, draft=drafts) for arm in Arm}
        self._noise = 0.0

    def control(self, client: Client, rollout: str, table: Table) -> Table:
        """Return the A/A control's table with the divergences of its equal arms."""
        table = with_divergences(client, rollout, table, self._rescorer)
        self._noise = noise_of(table)
        return table

    def rollout(self, client: Client, rollout: str, table: Table) -> Table:
        """Return a rollout's table with the greedy divergences and the audits' evidence."""
        return with_divergences(
            client, rollout, table, self._rescorer, noise=self._noise, audits=self._audits
        )

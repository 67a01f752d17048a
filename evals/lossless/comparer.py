"""Prepare the tables of pairs that a lossless policy judges."""

from collections.abc import Mapping

from collector.client import Client
from collector.columns import Table
from collector.contract import Arm
from evals.evidence.parts import pooled
from evals.lossless.answers import noise_of, with_divergences
from evals.lossless.rescoring import TransformersRescorer
from evals.lossless.sampled_answers import ArmAudit


class Comparer:
    """Compares a release's greedy answers and, with the baseline's model, audits its sampled ones.

    Each call of `compared` begins anew, with the same models.
    """

    def __init__(self, model: str | None, tolerance: float, draft: str | None = None) -> None:
        """Load the baseline's model and the draft model, if given; raises `RescoringError`."""
        self._rescorer = None if model is None else TransformersRescorer(model)
        self._draft, self._tolerance = None, tolerance
        if self._rescorer is not None and draft is not None:
            self._draft = self._rescorer.draft(draft)

    def compared(
        self, client: Client, rollouts: Mapping[str, Table], control: tuple[str, Table] | None
    ) -> tuple[Table, Table | None]:
        """Return the rollouts' pooled table and the A/A control's, with the divergences.

        The gaps of the control's equal arms set which gaps count as ties in the rollouts. The
        audits of sampled answers continue over all rollouts.
        """
        equal, noise = None, 0.0
        if control is not None:
            equal = with_divergences(client, *control, self._rescorer)
            noise = noise_of(equal)
        audits = self._audits()
        found = [
            with_divergences(client, name, table, self._rescorer, noise=noise, audits=audits)
            for name, table in rollouts.items()
        ]
        return pooled(found), equal

    def _audits(self) -> dict[Arm, ArmAudit] | None:
        if self._rescorer is None:
            return None
        return {arm: ArmAudit(self._rescorer, self._tolerance, draft=self._draft) for arm in Arm}

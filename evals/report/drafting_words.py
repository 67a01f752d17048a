"""Describe speculation that adapts to the load in a sentence."""

from collector.contract import LoadAdaptation, LoadAdaptationName
from evals.report.validity_words import load_words


def adaptation_words(found: LoadAdaptation) -> str:
    """Return an adaptation with its values at both loads."""
    low, high = (f"{load_words(load)} in flight" for load in (found.low, found.high))
    if found.name is LoadAdaptationName.OFF_UNDER_LOAD:
        return (
            f"Speculation turns itself off under load: {found.at_high:.0%} of the candidate's "
            f"answers drafted nothing with {high}, {found.at_low:.0%} with {low}."
        )
    return (
        f"The draft length adapts to the load: {found.at_high:.2f} draft tokens per step with "
        f"{high}, {found.at_low:.2f} with {low}; acceptance and k are means over both."
    )

"""States without data: nothing stored, nothing reachable, nothing of that name."""

import streamlit as st

from collector.client import ClientError
from dashboard import markup
from dashboard.source import DATABASE_VARIABLE, URL_VARIABLE, Source


def empty(source: Source) -> None:
    """Say that the collector holds no rollout, and what to run."""
    st.html(
        markup.panel(
            "No rollout yet",
            [
                f"The collector at {source.address} answers, but holds no rollout's generations.",
                "Run the demonstration on this machine, or replay a workload of your own:",
            ],
            ["draftgate demo", "draftgate run rollout.yaml"],
        )
    )


def unreachable(source: Source, error: ClientError) -> None:
    """Say that the collector does not answer, and what to do."""
    elsewhere = f"{URL_VARIABLE} or {DATABASE_VARIABLE}"
    st.html(
        markup.panel(
            "The collector does not answer",
            [
                f"Tried: {source.address}",
                str(error),
                f"Start it, or start the dashboard with another {elsewhere}; then Refresh.",
            ],
            ["draftgate serve"],
        )
    )


def unknown_rollout(name: str, known: list[str]) -> None:
    """Say that there is no rollout of the name, and which there are."""
    st.html(
        markup.panel(
            "No such rollout", [f"The collector holds no rollout named “{name}”. It holds:"]
        )
    )
    st.html(markup.bullets(markup.rollout_link(rollout) for rollout in known))

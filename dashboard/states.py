"""Pages without data: no rollout, collector unreachable, unknown name, key refused."""

from http import HTTPStatus

import streamlit as st

from collector.client import ClientError
from collector.contract import RolloutOverview
from dashboard import markup, words
from dashboard.source import DATABASE_VARIABLE, KEY_VARIABLE, URL_VARIABLE, Source


def empty(source: Source) -> None:
    """Show that the collector holds no rollout, and which commands to run."""
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


def problem(source: Source, error: ClientError) -> None:
    """Show why the collector gave no data: key refused, or not reachable."""
    if error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        refused(source, error)
    else:
        unreachable(source, error)


def refused(source: Source, error: ClientError) -> None:
    """Show that the dashboard's key is refused, and how to create one."""
    st.html(
        markup.panel(
            "The collector refuses this dashboard's key",
            [
                f"Collector: {source.address}",
                str(error),
                (
                    f"Pages need a key with the scope read, in {KEY_VARIABLE}; to show answers, "
                    "also content; to set the switch, also admin. Make one on the machine "
                    "that has the collector's database, and start the dashboard with it:"
                ),
            ],
            [
                "draftgate keys create dashboard --scope read --scope content",
                f"{KEY_VARIABLE}=dgk_… draftgate dashboard --collector {source.address}",
            ],
        )
    )


def without_content() -> None:
    """Show that the key allows numbers but no text."""
    st.html(
        markup.panel(
            "Answers are not shown",
            [
                (
                    f"The key in {KEY_VARIABLE} lacks the scope content: this page shows numbers, "
                    "scores and times, but no prompts, answers or explanations."
                )
            ],
            ["draftgate keys create dashboard --scope read --scope content"],
        )
    )


def unreachable(source: Source, error: ClientError) -> None:
    """Show that the collector does not answer, and what to do."""
    elsewhere = f"{URL_VARIABLE} or {DATABASE_VARIABLE}"
    st.html(
        markup.panel(
            "The collector does not answer",
            [
                f"Collector: {source.address}",
                str(error),
                f"Start it, or start the dashboard with another {elsewhere}; then press Refresh.",
            ],
            ["draftgate serve"],
        )
    )


def one_arm(overview: RolloutOverview) -> None:
    """Show that one arm has no generations, so that nothing can be compared."""
    has, lacks = ("baseline", "candidate")
    if not overview.baseline_generations:
        has, lacks = lacks, has
    generations = overview.baseline_generations + overview.candidate_generations
    st.html(
        markup.panel(
            f"Only the {has} has answered",
            [
                (
                    f"The collector holds {words.counted(generations, 'generation')} of the {has} "
                    f"and none of the {lacks}, so there is no pair to compare yet."
                ),
                f"Send the same prompts to the {lacks}, with the same prompt ids and repeats:",
            ],
            ["draftgate run rollout.yaml"],
        )
    )


def undecided(overview: RolloutOverview) -> None:
    """Show that the page needs a verdict, and how to get one."""
    name = words.argument(overview.rollout)
    st.html(
        markup.panel(
            "No verdict yet",
            ["This page shows what the gate found. Score the answers, then decide:"],
            [f"draftgate evaluate {name}\ndraftgate gate {name}"],
        )
    )


def unknown_rollout(name: str, known: list[str]) -> None:
    """Show that no rollout has this name, and list those that exist."""
    st.html(
        markup.panel(
            "No such rollout", [f"The collector holds no rollout named “{name}”. It holds:"]
        )
    )
    st.html(markup.bullets(markup.rollout_link(rollout) for rollout in known))

"""The verdict in words, with its reasons, counts and hashes."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

import streamlit as st

from collector.contract import Outcome, Role, RolloutOverview, Standing, StoredVerdict, Verdict
from dashboard import markup, words
from evals.report.answers import need_lines, scope_lines
from evals.report.findings_by_margin import worst_first

HASH_SHOWN = 12
"""Number of characters of a hash that are shown; the tooltip has all of it."""

REASONS_SHOWN = 3
_REGISTERED = "Registered"


def show(stored: StoredVerdict, overview: RolloutOverview) -> None:
    """Draw the outcome and the evidence that is missing."""
    verdict = stored.verdict
    first = headline(verdict)
    st.html(markup.banner(verdict.outcome, first, verdict.summary))
    if said := [words.plain(line) for line in need_lines(verdict) if line != first]:
        st.html(markup.bullets(said))
    if overview.last_end_unix_ns > stored.posted_unix_ns:
        st.html(
            markup.note(
                "⚠ Data arrived after this verdict was posted: "
                f"run “draftgate gate {words.argument(verdict.rollout)}” to decide again."
            )
        )


def show_provenance(stored: StoredVerdict, zone: ZoneInfo | None) -> None:
    """Draw what limits the verdict, notes on its history, and its counts and hashes."""
    if said := [*map(words.plain, scope_lines(stored.verdict)), *_history(stored.verdict)]:
        st.html(markup.bullets(said))
    shown = (fact for fact in facts(stored, zone) if fact[0] != _REGISTERED)  # the notes name it
    st.html(markup.facts(shown))


def show_reasons(reasons: Sequence[str]) -> None:
    """Draw the first reasons, worst first, and collapse the rest."""
    reasons = list(map(words.plain, reasons))
    if reasons:
        st.html(markup.heading("Why? Worst first", level=2))
        st.html(markup.bullets(reasons[:REASONS_SHOWN]))
    if rest := reasons[REASONS_SHOWN:]:
        with st.expander(words.counted(len(rest), "more reason")):
            st.html(markup.bullets(rest))


def _history(verdict: Verdict) -> list[str]:
    """Return the verdict's notes on its policy's registration, earlier looks and retries."""
    if verdict.history is None:
        return []
    first, *rest = map(words.plain, verdict.history.notes)
    mark = "✓" if verdict.history.standing is Standing.REGISTERED else "⚠"
    return [f"{mark} {first}", *rest]


def headline(verdict: Verdict) -> str:
    """Say how many more prompts decide, or name the most important finding of this outcome."""
    if verdict.outcome is Outcome.INCONCLUSIVE and verdict.prompts_needed is not None:
        return need_lines(verdict)[0]
    deciding = [
        finding
        for finding in worst_first(verdict.findings)
        if finding.outcome is verdict.outcome and finding.role is not Role.REPORT
    ]
    return words.headline(deciding[0]) if deciding else verdict.summary


def missing(overview: RolloutOverview) -> None:
    """Show that there is no verdict yet, and how to get one."""
    held, name = words.counted(overview.pairs, "pair"), words.argument(overview.rollout)
    st.html(
        markup.panel(
            "No verdict yet",
            [f"The collector holds {held} of this rollout. Score the answers, then decide:"],
            [f"draftgate evaluate {name}\ndraftgate gate {name}"],
        )
    )


def facts(stored: StoredVerdict, zone: ZoneInfo | None) -> list[tuple[str, str]]:
    """Return the counts and hashes behind a verdict."""
    verdict = stored.verdict
    return [
        ("Pairs seen", words.count(verdict.pairs)),
        ("Incomplete pairs", words.count(verdict.incomplete_pairs)),
        ("Failed pairs", words.count(verdict.failed_pairs)),
        ("Duplicates ignored", words.count(verdict.duplicates)),
        ("Policy", verdict.policy_name),
        (_REGISTERED, _standing(verdict)),
        ("Earlier verdicts", _earlier(verdict)),
        ("Posted by", _who(stored)),
        ("Policy SHA-256", markup.shortened(verdict.policy_hash, HASH_SHOWN)),
        ("Data SHA-256", markup.shortened(verdict.data_hash, HASH_SHOWN)),
        ("Decided", words.moment(stored.posted_unix_ns, zone)),
    ]


_STANDINGS = {
    Standing.REGISTERED: "before the first pair",
    Standing.EDITED: "another policy",
    Standing.LATE: "after the first pair",
    Standing.UNREGISTERED: "no",
}


def _standing(verdict: Verdict) -> str:
    return words.ABSENT if verdict.history is None else _STANDINGS[verdict.history.standing]


def _earlier(verdict: Verdict) -> str:
    return words.ABSENT if verdict.history is None else words.count(verdict.history.earlier)


def _who(stored: StoredVerdict) -> str:
    if stored.who is None:
        return words.ABSENT
    return stored.who if stored.key_id is None else f"{stored.who} (key {stored.key_id})"

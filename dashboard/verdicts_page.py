"""Verdicts and policy: the history, changes between verdicts, each cell explained, and files."""

from collections.abc import Sequence
from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client
from collector.contract import Finding, Outcome, RolloutOverview, StoredVerdict
from dashboard import address, markup, rollout_choice, states, verdict_changes, words
from dashboard.markup import TableCell, TableColumn
from dashboard.sections import verdict_files
from dashboard.source import Source
from dashboard.verdict_changes import FindingChange
from evals.report.findings_by_margin import worst_first
from evals.report.groups import VerdictGroup, grouped, serving_of

HISTORY = 50
_DATED = 200
_HASH = 12
_HISTORY = (
    TableColumn("Decided"),
    TableColumn("Verdict"),
    TableColumn("Pairs", number=True),
    TableColumn("Policy", "and its SHA-256"),
    TableColumn("Data SHA-256"),
    TableColumn("Verdict id"),
)
_SERVINGS = (
    TableColumn("Serving", "engine, model, draft"),
    TableColumn("Policy", "and its SHA-256"),
    TableColumn("Judged", "first, last"),
    TableColumn("Pass", number=True),
    TableColumn("Fail", number=True),
    TableColumn("Inconclusive", number=True),
    TableColumn("Newest"),
)
_CHANGES = (
    TableColumn("Finding", "cohort, metric"),
    TableColumn("Outcome", "before → after"),
    TableColumn("Estimate", "before → after", number=True),
    TableColumn("Limits", "before", number=True),
    TableColumn("Limits", "after", number=True),
    TableColumn("n", "before → after", number=True),
)
_CELLS = (
    TableColumn("Cell", "cohort, metric"),
    TableColumn("Role"),
    TableColumn("In words"),
    TableColumn("Method", "and its confidence"),
)


def show(client: Client, source: Source, zone: ZoneInfo | None) -> None:
    """Draw the verdicts of the chosen rollout."""
    overview = rollout_choice.choose(client, source, "verdicts")
    if overview is None:
        return
    st.html(markup.title("Verdicts and policy", overview.rollout))
    history = client.verdicts(overview.rollout, limit=HISTORY)
    if not history:
        states.undecided(overview)
        return
    rows = [_row(stored, zone) for stored in history]
    st.html(markup.table("Newest first", _HISTORY, rows, fit="cards"))
    chosen = _choose("Verdict", "verdict", history, overview, zone)
    st.header("Files", anchor="files")
    verdict_files.show(client, chosen, zone)
    st.header("What changed", anchor="changes")
    _show_changes(chosen, history, overview, zone)
    st.header("By serving and policy", anchor="serving")
    _show_servings(client, overview, zone)
    st.header("The policy, cell by cell", anchor="policy")
    _show_policy(chosen)


def _show_servings(client: Client, overview: RolloutOverview, zone: ZoneInfo | None) -> None:
    dated = client.dated_verdicts(overview.rollout, same_candidate=True, limit=_DATED)
    rows = [_serving(group, zone) for group in grouped(dated)]
    caption = "With earlier rollouts of the same candidate, newest first"
    st.html(markup.table(caption, _SERVINGS, rows, fit="cards"))


def _serving(group: VerdictGroup, zone: ZoneInfo | None) -> list[TableCell]:
    newest, oldest = group.newest, group.oldest
    policy = markup.stacked(newest.policy_name, markup.shortened(newest.policy_hash, _HASH))
    moments = (words.moment(one.posted_unix_ns, zone) for one in (oldest, newest))
    counts = (group.outcomes.get(one, 0) for one in Outcome)
    return [
        TableCell(serving_of(newest.candidate)),
        TableCell(policy),
        TableCell(markup.stacked(*moments)),
        *(markup.numeric(words.count(count), count) for count in counts),
        TableCell(markup.outcome(newest.outcome)),
    ]


def _choose(
    label: str,
    name: str,
    history: Sequence[StoredVerdict],
    overview: RolloutOverview,
    zone: ZoneInfo | None,
) -> StoredVerdict:
    by_id = {stored.id: stored for stored in history}
    titles = [_title(stored, zone) for stored in history]
    return by_id[address.choose(label, name, list(by_id), of=overview.rollout, titles=titles)]


def _title(stored: StoredVerdict, zone: ZoneInfo | None) -> str:
    outcome = words.outcome(stored.verdict.outcome)
    return f"{outcome} · {words.moment(stored.posted_unix_ns, zone)}"


def _row(stored: StoredVerdict, zone: ZoneInfo | None) -> list[TableCell]:
    verdict = stored.verdict
    policy = markup.stacked(verdict.policy_name, markup.shortened(verdict.policy_hash, _HASH))
    return [
        TableCell(words.moment(stored.posted_unix_ns, zone)),
        TableCell(markup.stacked(markup.outcome(verdict.outcome), words.plain(verdict.summary))),
        markup.numeric(words.count(verdict.pairs), verdict.pairs),
        TableCell(policy),
        TableCell(markup.shortened(verdict.data_hash, _HASH)),
        TableCell(markup.shortened(stored.id, _HASH)),
    ]


def _show_changes(
    chosen: StoredVerdict,
    history: Sequence[StoredVerdict],
    overview: RolloutOverview,
    zone: ZoneInfo | None,
) -> None:
    others = [stored for stored in history if stored.id != chosen.id]
    if not others:
        st.html(markup.note("This rollout has only one verdict: nothing to compare."))
        return
    earlier = [s for s in others if s.posted_unix_ns <= chosen.posted_unix_ns]
    later = [s for s in others if s.posted_unix_ns > chosen.posted_unix_ns]
    before = _choose("Compared with", "before", [*earlier, *later], overview, zone)
    for said in verdict_changes.about(before.verdict, chosen.verdict):
        st.html(markup.note(said))
    changed = verdict_changes.changes(before.verdict, chosen.verdict)
    if not changed:
        st.html(markup.note("No finding differs."))
        return
    differing = words.counted(len(changed), "differing finding")
    caption = f"{differing}, changed outcomes first"
    st.html(markup.table(caption, _CHANGES, map(_change, changed), fit="cards"))


def _change(change: FindingChange) -> list[TableCell]:
    before, after = change.before, change.after
    either = after or before
    unit = "ratio" if either is None else words.unit_of(either.unit, either.stat)
    estimates = [None if f is None else f.estimate for f in (before, after)]
    return [
        TableCell(markup.stacked(change.what, words.compared(unit))),
        TableCell(markup.joined((_outcome(before), "→", _outcome(after)))),
        markup.numeric(" → ".join(words.in_unit(value, unit) for value in estimates)),
        markup.numeric("not there" if before is None else words.limits(before)),
        markup.numeric("not there" if after is None else words.limits(after)),
        markup.numeric(
            " → ".join(words.count(None if f is None else f.n) for f in (before, after))
        ),
    ]


def _outcome(finding: Finding | None) -> str:
    return "not there" if finding is None else markup.outcome(finding.outcome)


def _show_policy(stored: StoredVerdict) -> None:
    verdict = stored.verdict
    st.html(
        markup.facts(
            [
                ("Policy", verdict.policy_name),
                ("SHA-256", markup.shortened(verdict.policy_hash, _HASH)),
                *((name, version) for name, version in sorted(verdict.versions.items())),
            ]
        )
    )
    st.html(
        markup.note(
            "The release passes if every cell that must pass passes and no cell that must not fail "
            "fails. Limits are one-sided: a cell passes if the limit on its bad side is within the "
            "margin, fails if the other limit is beyond it, and is inconclusive otherwise."
        )
    )
    rows = [_cell(finding) for finding in worst_first(verdict.findings)]
    st.html(markup.table("Cells of this verdict", _CELLS, rows, fit="cards"))


def _cell(finding: Finding) -> list[TableCell]:
    about = f"{finding.method}, {words.confidence(finding)}"
    return [
        TableCell(words.cell(finding)),
        TableCell(words.ROLE_WORDS[finding.role]),
        TableCell(words.hypothesis(finding)),
        TableCell(about),
    ]

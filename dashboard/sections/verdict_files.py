"""Files of a verdict: its JSON, a one-page report, and the bundle that re-derives it."""

import tempfile
from pathlib import Path
from zoneinfo import ZoneInfo

import streamlit as st

from collector.client import Client
from collector.contract import StoredVerdict, Verdict
from dashboard import markup, words
from dashboard.sections import static_report
from evals import bundle as bundles
from evals import policy as policies
from evals.errors import EvalsError
from evals.report.terminal import to_json

_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


def show(client: Client, stored: StoredVerdict, zone: ZoneInfo | None) -> None:
    """Draw the downloads."""
    verdict = stored.verdict
    name = file_name(verdict.rollout, stored.id)
    columns = st.columns([1, 1, 2])
    columns[0].download_button(
        "Report (HTML, one file)",
        static_report.page(stored, zone),
        f"{name}.html",
        "text/html",
        on_click="ignore",
    )
    columns[1].download_button(
        "Verdict (JSON)", to_json(verdict), f"{name}.json", "application/json", on_click="ignore"
    )
    with columns[2]:
        _show_bundle(client, verdict, name)


def file_name(rollout: str, verdict_id: str) -> str:
    """Return a name without characters that are unsafe in file names or headers."""
    safe = "".join(sign if sign in _SAFE else "_" for sign in rollout)[:80]
    return f"{safe}-{verdict_id[:8]}"


def _show_bundle(client: Client, verdict: Verdict, name: str) -> None:
    """Draw the bundle's download; it needs the policy file, as a verdict only has its hash."""
    given = st.file_uploader(
        "Your policy file (not needed for a shipped policy)", type=["yaml", "yml"]
    )
    if st.button("Make the bundle (policy, pairs, verdict)"):
        try:
            made = _bundle(client, verdict, None if given is None else given.getvalue())
        except (EvalsError, UnicodeDecodeError) as error:
            st.html(markup.note(f"✕ {error}"))
            return
        if isinstance(made, str):
            st.html(markup.note(f"✕ {made}"))
            return
        st.download_button("Bundle (zip)", made, f"{name}.zip", "application/zip")
        st.html(markup.note(f"Check it with: draftgate verify {words.argument(f'{name}.zip')}"))


def _bundle(client: Client, verdict: Verdict, given: bytes | None) -> bytes | str:
    """Return the zip, or why there is none: it must re-derive exactly this verdict."""
    text = given.decode() if given is not None else policies.shipped_text(verdict.policy_name)
    if policies.parse(text, "policy").policy_hash != verdict.policy_hash:
        return f"The policy is not the one of this verdict, {verdict.policy_hash[:12]}."
    inputs = bundles.Inputs(verdict.rollout, text, client.pairs_table(verdict.rollout))
    again = bundles.judge(inputs, "policy")
    if again.data_hash != verdict.data_hash:
        return "The data has changed since: decide again, and take that verdict's bundle."
    if again.outcome is not verdict.outcome:
        return (
            "This verdict used an A/A control, which this page cannot choose: use draftgate gate."
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bundle.zip"
        bundles.write(path, inputs, again)
        return path.read_bytes()

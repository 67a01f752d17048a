"""The watch on a terminal, for an engineer on call: the worst first."""

from datetime import datetime

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from collector.contract import EProcess, Outcome, Reason, Role, SwitchState, Watch, WatchCell
from collector.nouns import counted
from evals.policy import Policy
from evals.report.plain_table import plain_table
from evals.report.terminal import STYLES
from evals.watch.acceptance import drift_words
from evals.watch.judgement import waiting
from evals.watch.plan import EXCEEDANCE
from evals.watch.wording import e_value, next_look, reason_words, stretch_words, value

_ORDER = {Outcome.FAIL: 0, Outcome.INCONCLUSIVE: 1, Outcome.PASS: 2}
_MANY = 0.05
"""If more than this share of the pairs waits for scores, a cell's row says that first."""
_ROLES = {Role.PROVE: 0, Role.GUARD: 1, Role.REPORT: 2}


def screen(
    watch: Watch, policy: Policy, switch: SwitchState | None, note: str | None, now_unix_ns: int
) -> RenderableType:
    """Return the banner and one row per cell; `note` is the current problem, if any."""
    return Group(_banner(watch, policy, switch, note, now_unix_ns), _table(watch))


def line(watch: Watch, policy: Policy, switch: SwitchState | None) -> str:
    """Return the state in one line, for logs."""
    return "; ".join(
        (
            f"{watch.outcome.value}: {watch.summary} {_switch_words(switch)}",
            *drift_words(watch),
            f"valid if {stretch_words(policy)}",
        )
    )


def _banner(
    watch: Watch, policy: Policy, switch: SwitchState | None, note: str | None, now_unix_ns: int
) -> Panel:
    style = STYLES[watch.outcome]
    lines = [Text(watch.summary or "nothing has arrived yet", style="bold")]
    lines.append(Text(_switch_words(switch)))
    if watch.actions:
        last = watch.actions[-1]
        lines.append(Text(f"set off at {_clock(last.time_unix_ns)}: {last.reason}", style="red"))
    lines.extend(Text(words, style="bold yellow") for words in drift_words(watch))
    if watch.repeats:
        lines.append(
            Text(f"{counted(watch.repeats, 'repeat')} of prompts not counted", style="dim")
        )
    lines.append(Text(f"valid at every moment, if {stretch_words(policy)}", style="dim"))
    lines.append(Text(f"policy {watch.policy_name} {watch.policy_hash[:12]}", style="dim"))
    if note is not None:
        lines.append(Text(note, style="bold yellow"))
    title = f"[bold {style}]{watch.outcome.value.upper()}[/] {_clock(now_unix_ns)}"
    return Panel(Group(*lines), title=title, border_style=style)


def _switch_words(switch: SwitchState | None) -> str:
    if switch is None:
        return "switch: never set"
    return f"switch: {switch.state.value}, by {switch.who}"


def _clock(unix_ns: int) -> str:
    return datetime.fromtimestamp(unix_ns / 1e9).astimezone().strftime("%H:%M:%S")


def _table(watch: Watch) -> Table:
    columns = ("Estimate", "Limits", "Margin", "n", "Pass", "Fail")
    title = "\nCells: e-value/threshold for a pass and for a fail"
    table = plain_table(title, ("Scope", "Metric", "Role"), columns)
    table.add_column("Outcome", overflow="fold")
    for cell in sorted(watch.cells, key=_rank):
        table.add_row(*_row(cell, watch), style="dim" if cell.role is Role.REPORT else None)
    return table


def _rank(cell: WatchCell) -> tuple[int, int, str]:
    return (_ORDER[cell.outcome], _ROLES[cell.role], cell.cohort or "")


def _row(cell: WatchCell, watch: Watch) -> tuple[str | Text, ...]:
    stat = "" if cell.stat == "diff" else f" {cell.stat.removesuffix('_ratio')}"
    limits = "–"
    if cell.lower is not None or cell.upper is not None:
        limits = f"{_bare(cell, cell.lower)} … {_bare(cell, cell.upper)}"
    return (
        "all" if cell.cohort is None else escape(cell.cohort),
        f"{cell.metric.replace('_', ' ')}{stat}",
        cell.role.value,
        value(cell, cell.estimate),
        limits,
        f"{'≤' if cell.bound == 'max' else '≥'}{_bare(cell, cell.margin)}",
        f"{cell.n:,}",
        _against(cell.passing, cell.log_e_to_pass),
        _against(cell.failing, cell.log_e_to_fail),
        _outcome(cell, watch),
    )


def _bare(cell: WatchCell, number: float | None) -> str:
    """Return the value without its unit, which the estimate beside it shows."""
    return value(cell, number).removesuffix(" pp")


def _against(process: EProcess | None, wanted: float | None) -> str:
    if process is None:
        return "–"
    return f"{e_value(process.highest_log_e)}/{e_value(wanted or 0.0)}"


def _outcome(cell: WatchCell, watch: Watch) -> Text:
    style = STYLES[cell.outcome]
    if cell.outcome is not Outcome.INCONCLUSIVE:
        return Text(cell.outcome.value, style=f"bold {style}")
    if cell.metric == EXCEEDANCE and watch.threshold_s is None:
        return Text("no threshold yet", style=style)
    if (share := waiting(cell, watch).share) > _MANY:
        return Text(f"{share:.0%} wait for scores", style=style)
    if cell.next_look is not None and cell.reason in (None, Reason.TOO_FEW):
        return Text(next_look(cell), style=style)
    return Text(reason_words(cell), style=style)

"""Start a new epoch if somebody sets the switch on after the watch set it off."""

from dataclasses import replace

from collector.contract import (
    EffectSums,
    Outcome,
    Reason,
    Switch,
    SwitchState,
    Watch,
    WatchCell,
)
from evals.watch.plan import fresh


def begun_anew(watch: Watch, switch: SwitchState | None) -> Watch:
    """Record the switch's newest event; if it was set on again, only new harm sets it off.

    Otherwise a person who disagrees with the watch could never keep the switch on. A pass proved
    before stays proved; its e-process continues, and so do doubts about its pairs.
    """
    if switch is None or switch.id == watch.switch_event:
        return watch
    watch = replace(watch, switch_event=switch.id)
    if switch.state is not Switch.ON or len(watch.actions) <= watch.epoch:
        return watch
    cells = tuple(_without_failure(cell) for cell in watch.cells)
    return replace(
        watch,
        epoch=len(watch.actions),
        outcome=Outcome.INCONCLUSIVE,
        cells=cells,
        acceptance=(),
    )


def _without_failure(cell: WatchCell) -> WatchCell:
    failed = cell.outcome is Outcome.FAIL
    return replace(
        cell,
        outcome=Outcome.INCONCLUSIVE if failed else cell.outcome,
        reason=Reason.TOO_FEW if failed else cell.reason,
        failing=None if cell.failing is None else fresh(cell.failing.limit),
        split=None if cell.split is None else EffectSums(),
        p_fail=None,
        looks=tuple(replace(one, p_fail=None) for one in cell.looks),
    )

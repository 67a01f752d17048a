"""Score and judge a run look by look, and give its verdict, for `draftgate run --until-decided`.

It imports `evals`, which takes a second, so `run` imports this module only if it is asked to.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, NoReturn

import typer
from rich.console import Console

from collector.client import Client, ClientError
from collector.contract import Finding, Outcome, Role, Verdict, to_document
from collector.nouns import counted
from engine_adapter.cli.options import UntilDecidedOptions
from engine_adapter.errors import PolicyRegistrationError, RolloutFileError, TelemetryError
from engine_adapter.run.look_plan import LookPlan, Looks, Step
from engine_adapter.run.phases import Budget, UntilDecided
from engine_adapter.run.rollout_file import Rollout
from evals.arms.grid import Grid, grid
from evals.arms.interaction import Interaction, load_interactions
from evals.arms.report import print_grid, to_json
from evals.errors import EvalsError
from evals.exit_codes import EXIT
from evals.report.terminal import print_verdict
from evals.until_decided import (
    Design,
    NextLooks,
    compared_with,
    judged,
    policy_of,
    scored,
    verdict,
)

_UNITS: Final = {"s": 1, "m": 60, "h": 3600}
_SHOWN: Final = 3
Say = Callable[[str], None]


def budget_of(text: str | None) -> Budget:
    """Return the budget of an option: a time such as 2h, 45m or 30s, or a number of pairs."""
    if text is None:
        return Budget()
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)([smh]?)", text)
    if found is None or (number := float(found[1])) <= 0:
        raise RolloutFileError(f"--budget {text}: wanted a time such as 2h or 45m, or pairs: 4000")
    if found[2]:
        return Budget(seconds=number * _UNITS[found[2]])
    if not number.is_integer():
        raise RolloutFileError(
            f"--budget {text}: wanted a whole number of pairs, or a unit: s, m, h"
        )
    return Budget(pairs=int(number))


class Decided(NamedTuple):
    """The end of a run: the verdict on its candidate, or on each of several by name."""

    verdicts: Mapping[str, Verdict]
    grid: Grid | None = None
    """`None` for one candidate."""
    interactions: tuple[Interaction, ...] = ()

    def document(self) -> dict[str, Any]:  # Any: JSON values
        """Return the verdict, or the family's grid with all verdicts, as JSON values."""
        if self.grid is None:
            return {"verdict": to_document(self._single())}
        return {"family": json.loads(to_json(self.grid, self.interactions, self.verdicts))}

    def end(self, *, budget_reached: bool, quiet: bool) -> NoReturn:
        """Print the verdict as `draftgate gate` does, unless quiet, and exit with its code."""
        if budget_reached:
            typer.echo("the budget is used up; a further one goes on with the same looks", err=True)
        if self.grid is None and not quiet:
            print_verdict(Console(), self._single())
        elif self.grid is not None and not quiet:
            print_grid(Console(), self.grid, self.interactions, self.verdicts)
        raise typer.Exit(EXIT[(self.grid or self._single()).outcome])

    def _single(self) -> Verdict:
        return next(iter(self.verdicts.values()))


class Judge:
    """Scores and judges what the collector has of a run; called after each look."""

    def __init__(
        self, rollout: Rollout, policy: str | None, options: UntilDecidedOptions, say: Say
    ) -> None:
        """Prepare; raises `AdapterError` if load or policy cannot be judged look by look."""
        self._rollout, self._say = rollout, say
        self._plan = LookPlan(rollout)
        self._design = Design(len(self._plan.shares), self._plan.relaunches)
        self._names = {arm: rollout.rollouts_of(arm)[0] for arm in self._plan.arms}
        self.until = UntilDecided(self, budget_of(options.budget))
        self._began_s: float | None = None
        self._asked = 0
        first = next(iter(self._names.values()))
        with self._collector() as client:
            self._policy = policy_of(client, first, policy, rollout.load.launches)
            self._compared = compared_with(
                self._policy, options.control, options.rescore, options.rescore_draft
            )

    def __call__(self) -> Step:
        """Return the looks to answer next; none at the end."""
        pace_s = self._pace_s()
        found = dict[str, NextLooks | None]()
        with self._collector() as client:
            for arm, name in self._names.items():
                tables = scored(client, name, self._compared)
                found[arm] = tables and judged(tables, self._policy, self._design)
        for arm, one in found.items():
            if one is not None:
                self._say(f"{self._prefix(arm)}{_state(one, self._plan)}")
        step = next_step(found, self._plan.first)
        self._began_s, self._asked = time.monotonic(), self._pairs(step)
        if step.looks:
            self._say(self._following(step, pace_s))
        return step

    def decided(self) -> "Decided":
        """Judge what there is, and store each candidate's verdict."""
        family = self._rollout.family
        with self._collector() as client:
            verdicts = {
                arm: verdict(client, name, self._policy, self._compared)
                for arm, name in self._names.items()
            }
            if family is None:
                return Decided(verdicts)
            together = load_interactions(client, family, self._policy)
        return Decided(verdicts, grid(family, list(verdicts.values())), together)

    def _pace_s(self) -> float | None:
        """Return the seconds that a pair of the newest look took; `None` before the first."""
        if self._began_s is None or self._asked == 0:
            return None
        return (time.monotonic() - self._began_s) / self._asked

    def _prefix(self, arm: str) -> str:
        return f"{arm}: " if len(self._names) > 1 else ""

    def _pairs(self, step: Step) -> int:
        return self._plan.pairs(step.looks) * len(step.arms)

    def _following(self, step: Step, pace_s: float | None) -> str:
        """Return the looks that come next, their pairs and, at the newest look's pace, the time."""
        pairs = self._pairs(step)
        arms = "" if len(self._names) == 1 else f" of {_listed(step.arms)}"
        lasts = "" if pace_s is None else f", about {_duration(pairs * pace_s)}"
        return (
            f"next: {_named(step.looks, self._plan, 'to')}, {counted(pairs, 'pair')}{arms}{lasts}"
        )

    @contextmanager
    def _collector(self) -> Iterator[Client]:
        try:
            with Client.from_environment(self._rollout.collector.url) as client:
                yield client
        except ClientError as exc:
            raise TelemetryError(
                f"{exc}; run again: stored answers are not requested again"
            ) from exc
        except EvalsError as exc:
            raise PolicyRegistrationError(f"--until-decided: {exc}") from exc


def next_step(found: Mapping[str, NextLooks | None], first: Step) -> Step:
    """Return the next pairs to answer, given what each candidate wants; nothing at the end.

    Of the undecided candidates, the one that wants the fewest cohorts comes first, with every other
    one that wants these looks too, so that they share the baseline's answers.
    """
    wanted = {arm: first.looks if one is None else one.cohorts for arm, one in found.items()}
    looks = min(filter(None, wanted.values()), key=len, default={})
    arms = [arm for arm, of in wanted.items() if looks and looks.items() <= of.items()]
    return Step(looks, arms)


def _state(found: NextLooks, plan: LookPlan) -> str:
    """Return how far each cohort is, and its proved and undecided cells."""
    reached = {cohort: n for cohort, n in found.taken.items() if n and cohort in plan.sizes}
    pairs = sum(plan.sizes[cohort][n - 1] for cohort, n in reached.items())
    where = (
        f"{_named(reached, plan, 'at')}, {counted(pairs, 'pair')}"
        if reached
        else "no look is complete"
    )
    proofs = [f for f in found.findings if f.role is Role.PROVE]
    waits = {f.cohort for f in proofs if f.outcome is not Outcome.PASS}
    proved = sum(f.outcome is Outcome.PASS for f in proofs)
    done = list(dict.fromkeys(_scope(f) for f in proofs if f.cohort not in waits))
    all_of = f" (all of {_listed(done)})" if done and waits else ""
    words = f"{found.outcome}: {proved} of {len(proofs)} required cells proved{all_of}"
    return f"{where}; {words}{_waiting(found.waiting)}"


def _scope(finding: Finding) -> str:
    return "the pool" if finding.cohort is None else finding.cohort


def _waiting(cells: tuple[Finding, ...]) -> str:
    if not cells:
        return ""
    named = list(dict.fromkeys(cell.message.partition(": ")[0] for cell in cells))
    return f"; waiting for {_listed(named, '; ')}"


def _listed(names: Sequence[str], between: str = ", ") -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{between.join(names[:_SHOWN])}{more}"


def _named(looks: Looks, plan: LookPlan, how: str) -> str:
    """Return cohorts with their looks; `every cohort` if all have the same."""
    if len(set(looks.values())) == 1 and len(looks) == len(plan.sizes) > 1:
        return f"every cohort {how} look {next(iter(looks.values()))} of {len(plan.shares)}"
    return ", ".join(
        f"{cohort} {how} look {n} of {len(plan.shares)}" for cohort, n in sorted(looks.items())
    )


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"

"""Score and judge a run look by look, and give its verdict, for `draftgate run --until-decided`.

It imports `evals`, which takes a second, so `run` imports this module only if it is asked to.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn

import typer
from rich.console import Console

from collector.client import Client, ClientError
from collector.contract import Finding, Outcome, Role, Verdict
from engine_adapter.errors import PolicyRegistrationError, RolloutFileError, TelemetryError
from engine_adapter.run.look_plan import SHARES, LookPlan, Looks
from engine_adapter.run.phases import Budget, UntilDecided
from engine_adapter.run.rollout_file import Rollout
from evals import until_decided
from evals.errors import EvalsError
from evals.exit_codes import EXIT
from evals.report import print_verdict
from evals.until_decided import NextLooks

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


class Judge:
    """Scores and judges what the collector has of a run; called after each look."""

    def __init__(self, rollout: Rollout, policy: str | None, budget: Budget, say: Say) -> None:
        """Prepare; raises `AdapterError` if load or policy cannot be judged look by look."""
        self._url, self._rollout, self._say = rollout.collector.url, rollout.rollout, say
        self._plan = LookPlan(rollout)
        self.until = UntilDecided(self, budget)
        self._began_s: float | None = None
        self._asked = 0
        with self._collector() as client:
            self._policy = until_decided.policy_of(client, rollout.rollout, policy)

    def __call__(self) -> Looks:
        """Return the looks to answer next; none at the end."""
        pace_s = self._pace_s()
        with self._collector() as client:
            found = until_decided.judged(client, self._rollout, self._policy, count=len(SHARES))
        if found is not None:
            self._say(_state(found, self._plan))
        looks = self._plan.first if found is None else found.cohorts
        self._began_s, self._asked = time.monotonic(), self._plan.pairs(looks)
        if looks:
            self._say(_following(looks, self._plan, pace_s))
        return looks

    def verdict(self) -> Verdict:
        """Judge what there is, and store the verdict."""
        with self._collector() as client:
            return until_decided.verdict(client, self._rollout, self._policy)

    def _pace_s(self) -> float | None:
        """Return the seconds that a pair of the newest look took; `None` before the first."""
        if self._began_s is None or self._asked == 0:
            return None
        return (time.monotonic() - self._began_s) / self._asked

    @contextmanager
    def _collector(self) -> Iterator[Client]:
        try:
            with Client.from_environment(self._url) as client:
                yield client
        except ClientError as exc:
            raise TelemetryError(f"{exc}; run again: what is stored is not asked twice") from exc
        except EvalsError as exc:
            raise PolicyRegistrationError(f"--until-decided: {exc}") from exc


def _state(found: NextLooks, plan: LookPlan) -> str:
    """Return how far each cohort is, what is proved, and what is still to be decided."""
    reached = {cohort: n for cohort, n in found.taken.items() if n and cohort in plan.sizes}
    pairs = sum(plan.sizes[cohort][n - 1] for cohort, n in reached.items())
    where = f"{_named(reached, plan, 'at')}, {pairs:,} pairs" if reached else "no look is complete"
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


def _following(looks: Looks, plan: LookPlan, pace_s: float | None) -> str:
    """Return the looks that come next, their pairs and, at the newest look's pace, their time."""
    pairs = plan.pairs(looks)
    lasts = "" if pace_s is None else f", about {_duration(pairs * pace_s)}"
    return f"next: {_named(looks, plan, 'to')}, {pairs:,} pairs{lasts}"


def _named(looks: Looks, plan: LookPlan, how: str) -> str:
    """Return cohorts with their looks; `every cohort` if all have the same."""
    if len(set(looks.values())) == 1 and len(looks) == len(plan.sizes) > 1:
        return f"every cohort {how} look {next(iter(looks.values()))} of {len(SHARES)}"
    return ", ".join(
        f"{cohort} {how} look {n} of {len(SHARES)}" for cohort, n in sorted(looks.items())
    )


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def end(verdict: Verdict, *, budget_reached: bool, quiet: bool) -> NoReturn:
    """Print the verdict as `draftgate gate` does, unless quiet, and exit with its code."""
    if budget_reached:
        typer.echo("the budget is used up; a further one goes on with the same looks", err=True)
    if not quiet:
        print_verdict(Console(), verdict)
    raise typer.Exit(EXIT[verdict.outcome])

"""The watch judges times over the launches of the servers, as the gate does."""

from dataclasses import replace
from typing import Any

from collector.client import Client
from collector.contract import Arm, Outcome, Reason, WatchLook
from evals.policy import Policy
from evals.policy.sections import LaunchRules
from evals.watch.watcher import Watcher

PAIRS = 100


def first_look(client: Client, traffic: Any, rules: Policy, slower: tuple[float, ...]) -> WatchLook:
    """Return the look at 100 pairs of the times; in each launch the candidate's are other ones."""
    sides = []
    for prompt in range(PAIRS):
        launch = prompt * len(slower) // PAIRS
        for arm, ratio in ((Arm.BASELINE, 1.0), (Arm.CANDIDATE, slower[launch])):
            sides.append(traffic.side(arm, prompt, 0.1 * ratio, launch=f"{arm}-{launch}"))
    traffic.post(sides)
    wanting = replace(rules, launches=LaunchRules(min=3))
    watch = Watcher(client, "k4", wanting).catch_up().watch
    (times,) = (cell for cell in watch.cells if cell.metric == "ttft")
    return times.looks[0]


def test_one_launch_proves_no_time(client: Client, traffic: Any, rules: Policy) -> None:
    """The policy wants three."""
    found = first_look(client, traffic, rules, (1.0,))
    assert (found.outcome, found.reason) == (Outcome.INCONCLUSIVE, Reason.LAUNCHES)


def test_three_launches_that_agree_do(client: Client, traffic: Any, rules: Policy) -> None:
    """Limits hold over them."""
    assert first_look(client, traffic, rules, (1.0, 1.01, 0.99)).outcome is Outcome.PASS


def test_three_launches_that_differ_do_not(client: Client, traffic: Any, rules: Policy) -> None:
    """Over requests alone they would pass."""
    found = first_look(client, traffic, rules, (1.27, 1.0, 0.79))
    assert (found.outcome, found.upper is None or found.upper > 1.5) == (Outcome.INCONCLUSIVE, True)

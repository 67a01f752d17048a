"""The kinds of change: the evidence required of the candidate, and the fitting policy."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from collector.contract import Arm, Change, Outcome, Reason
from evals import policy
from evals.errors import PolicyError
from evals.evidence.columns import Evidence
from evals.gate.release import decide
from evals.report.formats import to_markdown

EvidenceOf = Callable[[Sequence[Any]], Evidence]
SideOf = Callable[..., Any]
RULES = """
version: 1
name: own
prove:
  - {metric: failures, stat: diff, max: 0.1, scope: pooled}
"""


def rollout(evidence_of: EvidenceOf, side: SideOf, said: str | None, **candidate: Any) -> Evidence:
    """Return pairs of a candidate that never drafts."""
    silent = {"speculated": False, "spec_draft_tokens": None} | candidate
    return evidence_of(
        [
            {
                "prompt_id": f"p{n}",
                "cohort": "chat",
                Arm.BASELINE: side(change=said, request_model="m", start_unix_ns=10**9 * n + 1),
                Arm.CANDIDATE: side(
                    **{
                        "change": said,
                        "request_model": "m",
                        "start_unix_ns": 10**9 * n + n % 2 * 2,
                    }
                    | silent
                ),
            }
            for n in range(1, 101)
        ]
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (None, Reason.TREATMENT),
        ("speculation", Reason.TREATMENT),
        ("draft_swap", Reason.TREATMENT),
        ("quantization", None),
        ("engine_upgrade", None),
    ],
)
def test_drafts_are_asked_for_where_the_change_is_of_them(
    evidence_of: EvidenceOf, side: SideOf, change: str | None, reason: Reason | None
) -> None:
    """A candidate without drafts passes as another change, and the verdict says which."""
    rules = policy.parse(RULES, "own.yaml")
    verdict = decide(rollout(evidence_of, side, change), rules, rollout="r")
    assert verdict.findings[0].reason is reason
    assert (verdict.outcome is Outcome.PASS) == (reason is None)
    assert verdict.change == change
    said = f"The change: {change.replace('_', ' ')}." if change else "The change"
    assert (said in to_markdown(verdict)) == (change is not None)


def test_several_changes_are_none_that_is_known(evidence_of: EvidenceOf, side: SideOf) -> None:
    """Arms that do not agree on the change, or name one of a later version, leave it unknown."""
    assert rollout(evidence_of, side, "speculation", change="other").change is None
    assert rollout(evidence_of, side, "a later one").change is None
    assert rollout(evidence_of, side, "other").change is Change.OTHER


@pytest.mark.parametrize(("change", "alike"), [("quantization", True), ("engine_upgrade", False)])
def test_a_quantised_model_may_have_another_name(
    evidence_of: EvidenceOf, side: SideOf, change: str, alike: bool
) -> None:
    """Under other changes another model's name is another model."""
    found = rollout(evidence_of, side, change, request_model="m-awq")
    verdict = decide(found, policy.parse(RULES, "own.yaml"), rollout="r")
    assert (verdict.findings[0].reason is Reason.MISMATCH) != alike


def test_each_change_has_a_shipped_policy() -> None:
    """One that needs no drafts where the change is of none, with the default's rules."""
    default = policy.shipped("default")
    for change in Change:
        chosen = policy.shipped(policy.shipped_for(change))
        wanted = "required" if change.is_of_drafts else "optional"
        assert (chosen.validity.speculation, chosen.rules) == (wanted, default.rules)
        lossless = change in (Change.PREFIX_CACHE, Change.ATTENTION_KERNEL)
        assert (chosen.lossless is not None) == lossless


def test_a_policy_may_begin_with_a_shipped_one() -> None:
    """Sections add, lists replace, and the registered text needs no base."""
    text = "base: quality\nname: own\ncohorts: {min_n: 7}\nguard: []\n"
    own = policy.parse(text, "own.yaml")
    assert (own.name, own.min_n, own.validity.speculation) == ("own", 7, "optional")
    assert own.set_aside_below == policy.shipped("quality").set_aside_below
    assert {rule.role for rule in own.rules} == {"prove", "report"}
    assert policy.parse(own.canonical, "again") == own
    with pytest.raises(PolicyError, match=r"own.yaml: base: wanted one of .*; did you mean"):
        policy.parse("base: qualty\nname: own\n", "own.yaml")

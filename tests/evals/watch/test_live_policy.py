"""The policy's sections `live` and `lossless`: read, hashed, refused, and explained."""

import pytest

from evals import policy
from evals.errors import PolicyError
from evals.policy.sections import Live, Lossless, Rollback
from evals.stats.spending import ever_passes
from evals.watch.explain import explained
from evals.watch.plan import live

RULES = """
version: 1
name: p
{}
prove:
  - {{metric: failures, stat: diff, max: 0.05, scope: pooled}}
"""


def parsed(section: str) -> policy.Policy:
    return policy.parse(RULES.format(section), "p.yaml")


def test_what_is_given_is_read() -> None:
    """Thresholds in seconds or by name; the rest by default."""
    found = parsed(
        "live: {looks: [100, 200], spend: [0.01, 0.02],"
        " rollback: {metric: slo_exceedance, latency: e2e, threshold: 0.8}}"
    )
    rollback = Rollback(latency="e2e", threshold_s=0.8, margin=0.005)
    assert found.live == Live(looks=(100, 200), spend=(0.01, 0.02), rollback=rollback)
    named = parsed("live: {rollback: {metric: slo_exceedance, threshold: baseline_p99}}")
    assert named.live == Live(rollback=Rollback())
    given = parsed("alpha: {lossless: 0.02}\nlossless: {greedy: {max_tie_gap: 0.5}}")
    assert given.lossless == Lossless(alpha=0.02, max_tie_gap=0.5)


def test_the_sections_are_hashed_where_they_stand() -> None:
    """A policy that lacks them keeps its hash; one that has them has another."""
    plain = parsed("")
    assert plain.live is None
    other_looks = "live: {looks: [300, 600, 1200, 2400, 5001]}"
    sections = ("", "live: {}", other_looks, "lossless: {}", "lossless: {greedy: {max_tie_gap: 1}}")
    hashes = {parsed(section).policy_hash for section in sections}
    assert len(hashes) == 5
    assert parsed("live: {}").policy_hash == parsed("live: {bounded: betting_eprocess}").policy_hash


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ("live: {loks: [1]}", "live.loks: unknown key; did you mean looks?"),
        ("live: {bounded: ttest}", "live.bounded: wanted one of betting_eprocess"),
        ("live: {looks: [300, 200], spend: [0.01, 0.01]}", "wanted growing numbers of pairs"),
        ("live: {looks: [300], spend: [0.01, 0.01]}", "wanted a level for each of 1 looks, got 2"),
        ("live: {looks: [300], spend: [0.06]}", "wanted at most alpha.pass = 0.05 over all"),
        ("live: {rollback: {metric: slo_exceed}}", "did you mean slo_exceedance?"),
        ("live: {rollback: {metric: slo_exceedance, treshold: 1}}", "did you mean threshold?"),
        ("live: {rollback: {metric: slo_exceedance, threshold: 0}}", "baseline_p99 or seconds"),
        ("live: {rollback: {metric: slo_exceedance, threshold: base}}", "baseline_p99"),
        ("lossless: {greedy: {tie_gap: 1}}", "did you mean max_tie_gap?"),
        ("lossless: {greedy: {hazard_ratio_max: 1}}", "wanted a ratio above 1"),
        ("lossless: {greedy: {max_tie_gap: -1}}", "wanted auto or a gap of at least 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(section: str, words: str) -> None:
    """With file, key and what was wanted."""
    with pytest.raises(PolicyError, match=r"^p\.yaml: ") as caught:
        parsed(section)
    assert words in str(caught.value)


def test_the_default_looks_spend_the_policys_level() -> None:
    """A policy at .01 passes wrongly in .01 over its looks; earlier ones keep their shares."""
    found = live(parsed("alpha: {pass: 0.01}"))
    assert ever_passes(found.looks, found.spend) == pytest.approx(0.01, abs=2e-5)
    assert found.spend[:2] == pytest.approx((0.0002, 0.0006))
    assert live(parsed("")).spend == Live().spend


def test_looks_of_ones_own_spend_the_whole_level() -> None:
    """Where looks alone are given, the last one's level is what they leave."""
    found = live(parsed("live: {looks: [500, 510, 520, 530, 540]}"))
    assert ever_passes(found.looks, found.spend) == pytest.approx(0.05, abs=2e-5)
    assert found.spend[-1] > 0.042


def test_spends_may_add_up_to_more_than_looks_together_spend() -> None:
    """What counts is the chance that any look passes, not the sum of levels."""
    found = live(parsed("live: {looks: [500, 510], spend: [0.03, 0.035]}"))
    assert found.spend == (0.03, 0.035)


def test_it_is_explained() -> None:
    """In words, with the levels; nothing is said of a policy that is silent on it."""
    assert explained(parsed("")) == ()
    lines = explained(policy.shipped("default"))
    assert lines[0] == "watch: shares and scores by e-processes, a pass at 20, after every pair"
    assert "300 (level 0.001), 600 (level 0.003)" in lines[1]
    assert "share of ttft above the baseline's p99 of the first 300 pairs is ≤ +0.5 pp" in lines[2]

"""Policies: accepted files, and one-line errors for all others."""

from pathlib import Path

import pytest

from collector.contract import Role
from evals import policy
from evals.errors import PolicyError
from evals.policy import Policy
from evals.policy.rules import Rule

GOOD = """
version: 1
name: small
alpha: {pass: 0.05}
cohorts: {min_n: 40}
prove:
  - {metric: e2e, stat: p95_ratio, max: 1.25, scope: pooled}
  - {metric: task_completion, stat: diff, min: -0.02, scope: cohort, cohorts: [rag], pass_at: 0.8}
guard:
  - {metric: failures, stat: diff, max: 0, scope: pooled}
"""


def test_reads_every_key(tmp_path: Path) -> None:
    """A file becomes rules in the order prove, guard, report, with defaults filled in."""
    path = tmp_path / "policy.yaml"
    path.write_text(GOOD)
    assert policy.load(path) == Policy(
        name="small",
        alpha_pass=0.05,
        alpha_fail_family=0.05,
        min_n=40,
        rules=(
            Rule(
                role=Role.PROVE,
                metric="e2e",
                stat="p95_ratio",
                bound="max",
                margin=1.25,
                scope="pooled",
                cohorts=None,
                pass_at=1.0,
            ),
            Rule(
                role=Role.PROVE,
                metric="task_completion",
                stat="diff",
                bound="min",
                margin=-0.02,
                scope="cohort",
                cohorts=("rag",),
                pass_at=0.8,
            ),
            Rule(
                role=Role.GUARD,
                metric="failures",
                stat="diff",
                bound="max",
                margin=0.0,
                scope="pooled",
                cohorts=None,
                pass_at=1.0,
            ),
        ),
    )


def test_the_hash_is_of_what_the_policy_means() -> None:
    """Comments, order of keys and written-out defaults do not change it; a margin does."""
    plain = policy.parse(GOOD, "p")
    written_out = GOOD.replace("{pass: 0.05}", "{fail_family: 0.05, pass: 0.05}")
    same = policy.parse("# note\n" + written_out, "p")
    other = policy.parse(GOOD.replace("1.25", "1.26"), "p")
    assert plain.policy_hash == same.policy_hash
    assert plain.policy_hash != other.policy_hash
    assert len(plain.policy_hash) == 64


@pytest.mark.parametrize("name", policy.shipped_names())
def test_shipped_policies_are_valid(name: str) -> None:
    """Both shipped policies load, and prove that requests do not get lost."""
    shipped = policy.shipped(name)
    assert shipped.name == name
    assert shipped.proves_failures


def rule(text: str) -> str:
    return f"version: 1\nname: x\nprove:\n  - {{{text}}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "p.yaml: wanted a mapping of keys, got [1]"),
        ("a: [", "p.yaml: line 1, column 5: expected the node content, but found '<stream end>'"),
        (
            "version: 1\nversion: 1",
            "p.yaml: line 2, column 1: the key 'version' stands twice",
        ),
        ("name: x", "p.yaml: version: missing key"),
        (
            GOOD.replace("version: 1", "version: 2"),
            "p.yaml: version: wanted 1, the only version that this gate reads, got 2",
        ),
        (GOOD.replace("guard", "gaurd"), "p.yaml: gaurd: unknown key; did you mean guard?"),
        (
            "version: 1\nname: x\nguard: []",
            "p.yaml: prove: wanted at least one rule; a gate that proves nothing cannot pass",
        ),
        (
            "version: 1\nname: x\nprove: yes",
            "p.yaml: prove: wanted a list, got True",
        ),
        (
            GOOD.replace("name: small", "name:"),
            "p.yaml: name: wanted a value, got nothing; give one or leave the key out",
        ),
        (
            GOOD.replace("pass: 0.05", "pass: 0.5"),
            "p.yaml: alpha.pass: wanted a level above 0 and at most 0.2, got 0.5",
        ),
        (
            GOOD.replace("min_n: 40", "min_n: 0"),
            "p.yaml: cohorts.min_n: wanted at least 1 pair, got 0",
        ),
        (
            rule("metric: e2e, stat: p96_ratio, max: 1.2, scope: pooled"),
            (
                "p.yaml: prove[0].stat: wanted one of geomean_ratio, p50_ratio, p95_ratio, "
                "p99_ratio, got 'p96_ratio'; did you mean p99_ratio?"
            ),
        ),
        (
            rule("metric: latency, stat: p95_ratio, max: 1.2, scope: pooled"),
            (
                "p.yaml: prove[0].metric: wanted one of ttft, ttfo, tpot, e2e, task_completion, "
                "groundedness, schema_validity, format_intact, parity, goodput, failures, "
                "output_tokens, cached_input_tokens, throughput, cost_per_1k_output_tokens, got "
                "'latency'"
            ),
        ),
        (
            rule("metric: e2e, stat: p95_ratio, max: 0, scope: pooled"),
            "p.yaml: prove[0].max: wanted a ratio above 0, got 0.0",
        ),
        (
            rule("metric: e2e, stat: p95_ratio, max: .nan, scope: pooled"),
            "p.yaml: prove[0].max: wanted a finite number, got nan",
        ),
        (
            rule("metric: e2e, stat: p95_ratio, min: 0.9, scope: pooled"),
            "p.yaml: prove[0].min: wanted max instead: more end-to-end latency is worse",
        ),
        (
            rule("metric: e2e, stat: p95_ratio, min: 0.9, max: 1.1, scope: pooled"),
            "p.yaml: prove[0]: wanted one margin, got both max and min",
        ),
        (
            rule("metric: e2e, stat: p95_ratio, scope: pooled"),
            "p.yaml: prove[0]: wanted the key max, the worst acceptable p95_ratio of e2e",
        ),
        (
            rule("metric: groundedness, stat: diff, min: 0.02, scope: pooled"),
            "p.yaml: prove[0].min: wanted a difference of shares from -1 to 0, got 0.02",
        ),
        (
            rule("metric: groundedness, stat: diff, min: -1, scope: pooled"),
            "p.yaml: prove[0].min: wanted a difference of shares from -1 to 0, got -1.0",
        ),
        (
            rule("metric: groundedness, stat: diff, min: 0, scope: pooled"),
            (
                "p.yaml: prove[0].min: a margin of 0 cannot be proved by any number of pairs; "
                "wanted some slack"
            ),
        ),
        (
            rule("metric: groundedness, stat: diff, min: '-0.1', scope: pooled"),
            "p.yaml: prove[0].min: wanted a number, got '-0.1'",
        ),
        (
            rule("metric: groundedness, stat: diff, min: -0.1, scope: pool"),
            (
                "p.yaml: prove[0].scope: wanted one of pooled, cohort, got 'pool'; "
                "did you mean pooled?"
            ),
        ),
        (
            rule("metric: groundedness, stat: diff, min: -0.1, scope: pooled, cohorts: [rag]"),
            "p.yaml: prove[0].cohorts: stands only beside scope: cohort",
        ),
        (
            rule("metric: groundedness, stat: diff, min: -0.1, scope: cohort, cohorts: []"),
            "p.yaml: prove[0].cohorts: wanted at least one cohort, each once",
        ),
        (
            rule("metric: e2e, stat: p50_ratio, max: 1.1, scope: pooled, pass_at: 0.5"),
            "p.yaml: prove[0].pass_at: stands only beside stat: diff of a scored metric",
        ),
        (
            rule("metric: groundedness, stat: diff, min: -0.1, scope: pooled, pass_at: 0"),
            "p.yaml: prove[0].pass_at: wanted a score above 0 and at most 1, got 0.0",
        ),
    ],
)
def test_refuses_in_one_line(text: str, message: str) -> None:
    """Each mistake is named with file, key and what was wanted."""
    with pytest.raises(PolicyError) as caught:
        policy.parse(text, "p.yaml")
    assert str(caught.value) == message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """A missing file and an unknown shipped name are policy errors, not tracebacks."""
    with pytest.raises(PolicyError, match=r"none\.yaml: cannot be read"):
        policy.load(tmp_path / "none.yaml")
    with pytest.raises(PolicyError, match=r"strict: no such .* one of default, demo"):
        policy.shipped("strict")


def test_grounded_begins_at_the_evaluators_threshold() -> None:
    """A share of grounded answers counts from 0.5 on, which a policy may change; others from 1."""
    line = "  - {{metric: {}, stat: diff, min: -0.05, scope: pooled{}}}\n"
    rules = line.format("groundedness", "") + line.format("groundedness", ", pass_at: 0.9")
    parsed = policy.parse(
        f"version: 1\nname: p\nprove:\n{rules}{line.format('schema_validity', '')}", "p"
    )
    assert [rule.pass_at for rule in parsed.rules] == [0.5, 0.9, 1.0]

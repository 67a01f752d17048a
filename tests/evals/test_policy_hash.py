"""A policy's hash stays the same: verdicts, registrations and attestations name it."""

import pytest

from collector.contract import Family
from evals import policy

PROVE = "prove: [{metric: failures, stat: diff, max: 0.05, scope: pooled}]\n"
RULES = """\
prove:
  - {metric: e2e, stat: p95_ratio, max: 1, scope: pooled}
  - {metric: task_completion, stat: diff, min: -0.02, scope: cohort, cohorts: [b, a], pass_at: 0.8}
  - {metric: groundedness, stat: mean_diff, min: -0.05, scope: pooled}
guard:
  - {metric: failures, stat: diff, max: 0, scope: pooled}
  - {metric: output_tokens, stat: mean_ratio, min: 0.9, scope: pooled}
report:
  - {metric: groundedness, stat: diff, min: -0.1, scope: cohort}
  - {metric: parity, stat: diff, min: -0.1, scope: pooled}
  - {metric: cost_per_1k_output_tokens, stat: mean_ratio, max: 2, scope: pooled}
"""
SECTIONS = {
    "rules": RULES,
    "bare": PROVE,
    "levels": "alpha: {pass: 0.01, fail_family: 0.2}\ncohorts: {min_n: 7, set_aside_below: 0}\n",
    "weights": "cohorts: {weights: baseline_traffic}\n",
    "split": "design: split\nsampling: {warmup_drop: 3, candidate_share: 0.1}\n",
    "stretch": "dependence: {stretch: 25}\n",
    "seconds": "dependence: {stretch: 30s}\n",
    "validity": (
        "validity: {srm_p_min: 0.01, drift_p_min: 0.02, drift_min_correlation: 0,"
        " client_lag_p99_max_frac: 0.1, aa_control: required, speculation: optional}\n"
    ),
    "prices": "prices: {baseline_per_hour: 2, candidate_per_hour: 2.5}\n",
    "launches": "launches: {min: 3}\n",
    "live": "live: {}\n",
    "looks": "live: {looks: [500, 510, 520, 530, 540]}\n",
    "spend": "live: {bounded: betting_eprocess, looks: [100, 200], spend: [0.01, 0.02]}\n",
    "no looks": "live: {looks: [], spend: []}\nalpha: {pass: 0.02}\n",
    "rollback": "live: {rollback: {metric: slo_exceedance}}\n",
    "threshold": (
        "live: {rollback: {metric: slo_exceedance, latency: e2e, threshold: 2, margin: 0.01}}\n"
    ),
    "named threshold": "live: {rollback: {metric: slo_exceedance, threshold: baseline_p99}}\n",
    "no loss": "lossless: {}\n",
    "greedy": "alpha: {lossless: 0.02}\nlossless: {greedy: {max_tie_gap: 1, hazard_ratio_max: 2}}",
    "sampled": "lossless: {greedy: {max_tie_gap: auto}, sampled: {tolerance: 0.01}}\n",
    "based": "base: lossless\ncohorts: {min_n: 7}\nguard: []\nlive: {looks: [50], spend: [0.05]}\n",
}
HASHES = {
    "default": "4e84bfce8f4f904871e6d4531359a6de0c2184d7139602ba49ed5ccaff521c66",
    "demo": "63ae1cd4b3a9bb81fea933da4304ed4486c3d8c6396188901d248dc0559b960f",
    "demo-real": "87b39716b4205dd41ca6071643277427eaa3cfd26fe2c9bc21c9b704b2fbf7a1",
    "lossless": "dda11704f4dd1d72a429be6155df004035a4c91a69ef8ab5376757cb557b354b",
    "no loss": "03a8090674d51c816fa76dffb05a73a455ce0062b97f3ab6588e64e63e56fbad",
    "quality": "3882334ae31612d80e04fcf581c86ec8d35f38c9fcce3a6bbc08057c5a849232",
    "rules": "400af8dfa20d5bd9bc65420750ee4adf29f91d7b184084da2708ced1eafdf5a2",
    "bare": "d7bde973d29a6eae1190f0746baa3cbaed4950883af7350a62d11da7008254c3",
    "levels": "61edfbbad46dd57d57ee889dd7f7887640ba238f0e3274102f9130247973963e",
    "weights": "d7bde973d29a6eae1190f0746baa3cbaed4950883af7350a62d11da7008254c3",
    "split": "e57a18664befec2ff925357cfc4096a8c16f671bc41615c083c44701c1a213f6",
    "stretch": "f95e282570fa5a93fd16aa2764ef04bb6d498e323ced50c13bd5aa065054eb5a",
    "seconds": "64f1f7ecbd5eb6b5f53fb948a1ad04880fe886622c36b596e585ae1a3d819c00",
    "validity": "a20501d9a0ebe48feafaa059708e83e45bcb19b60cdcfcdaf849abd85567e025",
    "prices": "f514e2e5d0fa4cd6fde70346872e7694f70f4adc77697179d8438f6ede0a3019",
    "launches": "5d140efff01fbc2655c59dc7484452a5384a603a6519b1a2a353e64bf65bd6b7",
    "live": "d99a1e57381474138b546160da79d874c09f586911bb0e3432e54d893d573a92",
    "looks": "c6dc250577704294997eb60926769a0efc3d69bb14628109d7e94b7d01ed1cd1",
    "spend": "67efa7e4057eba89b175b5c62aabbaf8b87eb6dbd166e5e766c42d4b1125f8f4",
    "no looks": "edb1c5e0b0d89bedea70ca1ba9ffc144eb928eb7ec26a2d4d1591dc388d8d020",
    "rollback": "00e7de7dfcdc1aa61d76a83e6abd6def9d3b874be61d7179dd4545c50d53ea26",
    "threshold": "5ee0555b207d9a9395f0a44bce6c14129853db7510a4b445da5ee273da410297",
    "named threshold": "00e7de7dfcdc1aa61d76a83e6abd6def9d3b874be61d7179dd4545c50d53ea26",
    "greedy": "9d5d8ac3bd5a9cb0ce05aad81b6e0a753d6bfd935a8dd6cf3e4011be6aee65bb",
    "sampled": "01df9c143a18ca1b5bc057fb18f8558f6625687ccaf82ad330106622597a3896",
    "based": "10d6f9543473c602008fa2493be3aea1ac3d89a2f76a27591ec2711308701699",
    "family": "906bf004a1ed1651c86f7cc667f47a62df1a3aa86e6b33054846550e7ba46eea",
}


def parsed(section: str) -> policy.Policy:
    text = SECTIONS[section]
    prove = "" if "prove:" in text or "base:" in text else PROVE
    return policy.parse(f"version: 1\nname: odd\n{text}\n{prove}", "p.yaml")


@pytest.mark.parametrize("name", policy.shipped_names())
def test_a_shipped_policy_keeps_its_hash(name: str) -> None:
    """Also when it is read again from its canonical form."""
    found = policy.shipped(name)
    assert found.policy_hash == HASHES[name]
    assert policy.parse(found.canonical, "again") == found


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_keeps_its_hash(section: str) -> None:
    """Every key of a policy file, given and by default."""
    found = parsed(section)
    assert found.policy_hash == HASHES[section]
    assert policy.parse(found.canonical, "again") == found


def test_a_family_keeps_its_hash() -> None:
    """Its levels are divided by the number of candidates."""
    family = Family(name="f", arms=("k2", "k4", "both"), combined={"both": ("k2", "k4")})
    found = policy.shipped("default").in_family(family)
    assert found.policy_hash == HASHES["family"]
    assert policy.parse(found.canonical, "again") == found

"""The release policy: which cells must be proved, guarded or reported, and at which margin."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from collector.contract import Role
from evals.errors import PolicyError
from evals.policy_reading import Node, load_yaml
from evals.stats import Bound

Kind = Literal["latency", "score", "failures"]
Scope = Literal["pooled", "cohort"]

RATIO_STATS = ("geomean_ratio", "p50_ratio", "p95_ratio", "p99_ratio")
SCORE_STATS = ("diff", "mean_diff")


@dataclass(frozen=True, slots=True)
class Metric:
    """What can be asked of a metric."""

    kind: Kind
    words: str
    stats: tuple[str, ...]
    bound: Bound
    """`max` where more is worse."""


METRICS: Mapping[str, Metric] = {
    "ttft": Metric("latency", "time to first token", RATIO_STATS, "max"),
    "tpot": Metric("latency", "time per output token", RATIO_STATS, "max"),
    "e2e": Metric("latency", "end-to-end latency", RATIO_STATS, "max"),
    "task_completion": Metric("score", "task completion", SCORE_STATS, "min"),
    "groundedness": Metric("score", "groundedness", SCORE_STATS, "min"),
    "schema_validity": Metric("score", "schema validity", SCORE_STATS, "min"),
    "failures": Metric("failures", "failed or missing answers", ("diff",), "max"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One line of the policy; a rule of scope `cohort` makes one cell a cohort."""

    role: Role
    metric: str
    stat: str
    bound: Bound
    margin: float
    """The worst acceptable value: a candidate/baseline ratio, or a candidate − baseline share."""
    scope: Scope
    cohorts: tuple[str, ...] | None
    """The cohorts that must be there; `None`: those in which the metric applies."""
    pass_at: float
    """A score at least this high is a pass, for stat `diff`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A validated policy."""

    name: str
    alpha_pass: float
    """Level at which each cell may pass wrongly."""
    alpha_fail_family: float
    """Level at which any cell of the family may fail wrongly."""
    min_n: int
    """Pairs below which no cell of one cohort decides."""
    rules: tuple[Rule, ...]

    @property
    def proves_failures(self) -> bool:
        """Say whether lost requests of all cohorts are themselves something to prove."""
        return any(
            r.metric == "failures" and r.role is Role.PROVE and r.scope == "pooled"
            for r in self.rules
        )

    @property
    def policy_hash(self) -> str:
        """SHA-256 of the canonical policy: comments, order of keys and defaults do not matter."""
        document = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(document.encode()).hexdigest()


def load(path: Path) -> Policy:
    """Read and validate a policy file; raises `PolicyError` naming file, key and value."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise PolicyError(f"{path}: cannot be read ({exc}); wanted a YAML policy file") from exc
    return parse(text, str(path))


def shipped(name: str) -> Policy:
    """Return a policy that Draftgate ships: `default` (production) or `demo` (160 pairs)."""
    folder = resources.files("evals") / "policies"
    names = sorted(f.name.removesuffix(".yaml") for f in folder.iterdir())
    if name not in names:
        raise PolicyError(f"{name}: no such shipped policy; wanted one of {', '.join(names)}")
    return parse((folder / f"{name}.yaml").read_text(encoding="utf-8"), f"{name}.yaml")


def parse(text: str, source: str) -> Policy:
    """Validate a policy's text; `source` is the file name for messages."""
    root = Node(load_yaml(text, source), source, "")
    root.only("version", "name", "alpha", "cohorts", "prove", "guard", "report")
    if root.required("version").integer() != 1:
        raise root.required("version").error("wanted 1, the only version that this gate reads")
    alpha = root.mapping("alpha")
    alpha.only("pass", "fail_family")
    cohorts = root.mapping("cohorts")
    cohorts.only("min_n")
    rules = [_rule(node, role) for role in Role for node in root.items(role.value)]
    if not any(rule.role is Role.PROVE for rule in rules):
        raise root.error("prove: wanted at least one rule; a gate that proves nothing cannot pass")
    return Policy(
        name=root.required("name").text(),
        alpha_pass=_level(alpha, "pass"),
        alpha_fail_family=_level(alpha, "fail_family"),
        min_n=_min_n(cohorts),
        rules=tuple(rules),
    )


def _level(alpha: Node, key: str) -> float:
    node = alpha.get(key)
    if node is None:
        return 0.05
    if not 0 < (level := node.number()) <= 0.2:
        raise node.error(f"wanted a level above 0 and at most 0.2, got {level}")
    return level


def _min_n(cohorts: Node) -> int:
    node = cohorts.get("min_n")
    if node is None:
        return 1
    if (count := node.integer()) < 1:
        raise node.error(f"wanted at least 1 pair, got {count}")
    return count


def _rule(node: Node, role: Role) -> Rule:
    node.only("metric", "stat", "max", "min", "scope", "cohorts", "pass_at")
    name = node.required("metric").one_of(METRICS)
    metric = METRICS[name]
    stat = node.required("stat").one_of(metric.stats)
    scope: Scope = "cohort" if node.required("scope").one_of(_SCOPES) == "cohort" else "pooled"
    return Rule(
        role=role,
        metric=name,
        stat=stat,
        bound=metric.bound,
        margin=_margin(node, name, stat, role),
        scope=scope,
        cohorts=_cohorts(node, scope),
        pass_at=_pass_at(node, metric, stat),
    )


_SCOPES = ("pooled", "cohort")


def _margin(node: Node, name: str, stat: str, role: Role) -> float:
    """Read the margin on the side on which the metric gets worse, and refuse an impossible one."""
    bound = METRICS[name].bound
    given, other = node.get(bound), node.get("min" if bound == "max" else "max")
    if other is not None and given is not None:
        raise node.error("wanted one margin, got both max and min")
    if other is not None:
        more = "more" if bound == "max" else "less"
        raise other.error(f"wanted {bound} instead: {more} {METRICS[name].words} is worse")
    if given is None:
        raise node.error(f"wanted the key {bound}, the worst acceptable {stat} of {name}")
    margin = given.number()
    if stat in RATIO_STATS:
        if margin <= 0:
            raise given.error(f"wanted a ratio above 0, got {margin}")
        return margin
    _check_difference(given, margin, bound, role)
    return margin


def _check_difference(node: Node, margin: float, bound: Bound, role: Role) -> None:
    loss = margin if bound == "max" else -margin
    if not 0 <= loss < 1:
        side = "from 0 to 1" if bound == "max" else "from -1 to 0"
        raise node.error(f"wanted a difference of shares {side}, got {margin}")
    if loss == 0 and role is Role.PROVE:
        raise node.error("a margin of 0 cannot be proved by any number of pairs; wanted some slack")


def _cohorts(node: Node, scope: Scope) -> tuple[str, ...] | None:
    cohorts = node.get("cohorts")
    if cohorts is None:
        return None
    if scope != "cohort":
        raise cohorts.error("stands only beside scope: cohort")
    names = tuple(item.text() for item in node.items("cohorts"))
    if not names or len(set(names)) != len(names):
        raise cohorts.error("wanted at least one cohort, each once")
    return names


def _pass_at(node: Node, metric: Metric, stat: str) -> float:
    given = node.get("pass_at")
    if given is None:
        return 1.0
    if metric.kind != "score" or stat != "diff":
        raise given.error("stands only beside stat: diff of a scored metric")
    if not 0 < (value := given.number()) <= 1:
        raise given.error(f"wanted a score above 0 and at most 1, got {value}")
    return value

"""The release policy: the cells that must be proved, guarded or reported, and their margins."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from collector.contract import Change, Family, Role
from evals.errors import PolicyError
from evals.policy_reading import Node, load_yaml
from evals.policy_sections import (
    Dependence,
    Design,
    HourlyPrices,
    LaunchRules,
    Live,
    Lossless,
    Sampling,
    ValidityRules,
    divided,
    read_dependence,
    read_design,
    read_launches,
    read_live,
    read_lossless,
    read_prices,
    read_sampling,
    read_validity,
)
from evals.stats import Bound

Kind = Literal["latency", "score", "failures", "tokens", "cost"]
Scope = Literal["pooled", "cohort"]

QUANTILE_STATS = ("p50_ratio", "p95_ratio", "p99_ratio")
LATENCY_STATS = ("geomean_ratio", *QUANTILE_STATS)
SCORE_STATS = ("diff", "mean_diff")
_SET_ASIDE_BELOW = 10


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, and the rules that a policy can make for it."""

    kind: Kind
    words: str
    stats: tuple[str, ...]
    bound: Bound
    """`max` if more is worse."""
    either: bool = False
    """Whether a rule may set the margin on either side."""
    pass_at: float = 1.0
    """Default for the minimum score of a good answer, for stat `diff`."""

    @property
    def timed(self) -> bool:
        """Whether it is computed from times, which differ between launches of a server."""
        return self.kind in ("latency", "cost")


METRICS: Mapping[str, Metric] = {
    "ttft": Metric("latency", "time to first token", LATENCY_STATS, "max"),
    "ttfo": Metric("latency", "time to first output token", LATENCY_STATS, "max"),
    "tpot": Metric("latency", "time per output token", LATENCY_STATS, "max"),
    "e2e": Metric("latency", "end-to-end latency", LATENCY_STATS, "max"),
    "task_completion": Metric("score", "task completion", SCORE_STATS, "min"),
    "groundedness": Metric("score", "groundedness", SCORE_STATS, "min", pass_at=0.5),
    "schema_validity": Metric("score", "schema validity", SCORE_STATS, "min"),
    "format_intact": Metric("score", "answers of intact format", SCORE_STATS, "min"),
    "parity": Metric("score", "answers equal to the baseline's", SCORE_STATS, "min"),
    "failures": Metric("failures", "failed or missing answers", ("diff",), "max"),
    "output_tokens": Metric(
        "tokens", "output tokens", ("geomean_ratio", "mean_ratio"), "max", either=True
    ),
    "cost_per_1k_output_tokens": Metric(
        "cost", "cost per 1,000 output tokens", ("mean_ratio",), "max"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of the policy; with scope `cohort` it makes one cell per cohort."""

    role: Role
    metric: str
    stat: str
    bound: Bound
    margin: float
    """The worst acceptable value: a candidate/baseline ratio, or a candidate − baseline share."""
    scope: Scope
    cohorts: tuple[str, ...] | None
    """The cohorts that must exist; `None`: those in which the metric applies."""
    pass_at: float
    """Minimum score of a good answer, for stat `diff`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A validated policy."""

    name: str
    alpha_pass: float
    """Maximum probability that a cell passes wrongly, for each cell."""
    alpha_fail_family: float
    """Maximum probability that any cell of the family fails wrongly."""
    min_n: int
    """A cohort's cell decides only with at least this many pairs."""
    rules: tuple[Rule, ...]
    set_aside_below: int = _SET_ASIDE_BELOW
    """A cohort with fewer pairs, listed by no rule and no workload, gets no cells of its own."""
    design: Design = "paired_replay"
    sampling: Sampling = field(default_factory=Sampling)
    dependence: Dependence = field(default_factory=Dependence)
    validity: ValidityRules = field(default_factory=ValidityRules)
    prices: HourlyPrices | None = None
    launches: LaunchRules | None = None
    """`None`: any number of launches is enough."""
    live: Live | None = None
    """`None`: the default, without a rollback."""
    lossless: Lossless | None = None
    """`None`: answers are compared only by their scores."""
    family: Family | None = None
    """The family whose size has divided every level; `None` for a rollout alone."""

    def in_family(self, family: Family) -> "Policy":
        """Return the policy for one candidate of a family: each level divided by its size.

        By Bonferroni's inequality, no candidate at all passes wrongly with probability
        1 − `alpha_pass`, and none fails wrongly with 1 − `alpha_fail_family`, however the
        candidates depend on each other through their common baseline.
        """
        if self.family == family:
            return self
        size = len(family.arms)
        level = self.alpha_pass / size
        return replace(
            self,
            alpha_pass=level,
            alpha_fail_family=self.alpha_fail_family / size,
            live=self.live and divided(self.live, size, level),
            lossless=self.lossless and replace(self.lossless, alpha=self.lossless.alpha / size),
            family=family,
        )

    @property
    def paired(self) -> bool:
        """Whether both arms answer the same requests."""
        return self.design != "split"

    @property
    def proves_failures(self) -> bool:
        """Whether the policy has a pooled prove rule for `failures`."""
        return any(
            r.metric == "failures" and r.role is Role.PROVE and r.scope == "pooled"
            for r in self.rules
        )

    @property
    def policy_hash(self) -> str:
        """SHA-256 of the canonical policy; comments, order of keys and defaults do not matter."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    @property
    def canonical(self) -> str:
        """The canonical policy: JSON with sorted keys and every default."""
        document = asdict(self)
        for section in _LATER:
            if document[section] is None:  # so that a policy without the section keeps its hash
                del document[section]
        return json.dumps(document, sort_keys=True, separators=(",", ":"))


def load(path: Path) -> Policy:
    """Read and validate a policy file; raises `PolicyError` naming file, key and value."""
    return parse(text_of(path), str(path))


def by_name(name: str) -> Policy:
    """Return the policy in a file, or a shipped policy by its name."""
    return parse(text_by_name(name), name)


def text_by_name(name: str) -> str:
    """Return the text of a policy file, or of a shipped policy by its name."""
    path = Path(name)
    return text_of(path) if path.suffix or path.is_file() else shipped_text(name)


def text_of(path: Path) -> str:
    """Return a policy file's text; raises `PolicyError` if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise PolicyError(f"{path}: cannot be read ({exc}); wanted a YAML policy file") from exc


def shipped(name: str) -> Policy:
    """Return a policy that Draftgate ships, such as `default` (production) or `demo`."""
    return parse(shipped_text(name), f"{name}.yaml")


def shipped_text(name: str) -> str:
    """Return the text of a policy that Draftgate ships."""
    if name not in (names := shipped_names()):
        raise PolicyError(f"{name}: no such shipped policy; wanted one of {', '.join(names)}")
    return (_shipped_folder() / f"{name}.yaml").read_text(encoding="utf-8")


def shipped_names() -> list[str]:
    """Return the names of the policies that Draftgate ships."""
    return sorted(one.name.removesuffix(".yaml") for one in _shipped_folder().iterdir())


def shipped_for(change: Change) -> str:
    """Return the name of the shipped policy that fits a change.

    `lossless` where the change promises to say what the baseline says, and is not of drafts, whose
    shipped policy is `default`; `quality` elsewhere.
    """
    if change.is_of_drafts:
        return "default"
    return "lossless" if change in (Change.PREFIX_CACHE, Change.ATTENTION_KERNEL) else "quality"


def _shipped_folder() -> Traversable:
    return resources.files("evals") / "policies"


_LATER = ("live", "lossless", "launches", "family")
"""Sections that older canonical policies lack."""
_SECTIONS = (
    "version", "name", "design", "alpha", "sampling", "dependence", "validity", "cohorts", "prices",
    "live", "lossless", "launches",
)  # fmt: skip


def parse(text: str, source: str) -> Policy:
    """Validate a policy file's text, or read a canonical policy; `source` names it in messages."""
    if text.startswith(_CANONICAL):
        return _from_canonical(text, source)
    root = Node(_based(load_yaml(text, source), source), source, "")
    root.only(*_SECTIONS, *Role)
    if root.required("version").integer() != 1:
        raise root.required("version").error("wanted 1, the only version that this gate reads")
    alpha = root.mapping("alpha")
    alpha.only("pass", "fail_family", "lossless")
    cohorts = root.mapping("cohorts")
    cohorts.only("min_n", "set_aside_below", "weights")
    if (weights := cohorts.get("weights")) is not None:
        weights.one_of(("baseline_traffic",))
    rules = [_rule(node, role) for role in Role for node in root.items(role.value)]
    if not any(rule.role is Role.PROVE for rule in rules):
        raise root.error("prove: wanted at least one rule; a gate that proves nothing cannot pass")
    alpha_pass = _level(alpha, "pass")
    return Policy(
        name=root.required("name").text(),
        alpha_pass=alpha_pass,
        alpha_fail_family=_level(alpha, "fail_family"),
        min_n=_min_n(cohorts),
        rules=tuple(rules),
        set_aside_below=_set_aside_below(cohorts),
        design=read_design(root),
        sampling=read_sampling(root),
        dependence=read_dependence(root),
        validity=read_validity(root),
        prices=read_prices(root),
        launches=read_launches(root),
        live=read_live(root, alpha_pass),
        lossless=read_lossless(root),
    )


def _based(document: object, source: str) -> object:
    """Return a policy's document over that of the shipped policy which it names as its base.

    A section of keys adds to the base's, anything else stands in its place.
    """
    if not isinstance(document, dict) or "base" not in document:
        return document
    own = {key: value for key, value in document.items() if key != "base"}
    name = Node(document, source, "").required("base").one_of(shipped_names())
    base = load_yaml(shipped_text(name), f"{name}.yaml")
    if not isinstance(base, dict):
        raise PolicyError(f"{name}.yaml: wanted a mapping of keys")
    both = _based(base, f"{name}.yaml")
    assert isinstance(both, dict)  # noqa: S101  # as its base is
    for key, value in own.items():
        old = both.get(key)
        merged = isinstance(old, dict) and isinstance(value, dict)
        both[key] = old | value if merged else value
    return both


_CANONICAL = '{"alpha_fail_family":'
"""Every canonical policy starts with this, and no policy file does."""


def _from_canonical(text: str, source: str) -> Policy:
    try:
        return TypeAdapter(Policy).validate_json(text)
    except ValidationError as exc:
        why = str(exc).splitlines()[0]
        raise PolicyError(f"{source}: wanted a canonical policy of this version: {why}") from exc


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


def _set_aside_below(cohorts: Node) -> int:
    node = cohorts.get("set_aside_below")
    if node is None:
        return _SET_ASIDE_BELOW
    if (count := node.integer()) < 0:
        raise node.error(f"wanted a number of pairs, or 0 to set none aside, got {count}")
    return count


def _rule(node: Node, role: Role) -> Rule:
    node.only("metric", "stat", "max", "min", "scope", "cohorts", "pass_at")
    name = node.required("metric").one_of(METRICS)
    metric = METRICS[name]
    stat = node.required("stat").one_of(metric.stats)
    bound: Bound = "min" if metric.either and node.get("min") is not None else metric.bound
    if metric.either and bound == "min" and node.get("max") is not None:
        raise node.error("wanted one margin, got both max and min; write a rule for each")
    scope: Scope = "cohort" if node.required("scope").one_of(_SCOPES) == "cohort" else "pooled"
    return Rule(
        role=role,
        metric=name,
        stat=stat,
        bound=bound,
        margin=_margin(node, name, stat, role, bound),
        scope=scope,
        cohorts=_cohorts(node, scope),
        pass_at=_pass_at(node, metric, stat),
    )


_SCOPES = ("pooled", "cohort")


def _margin(node: Node, name: str, stat: str, role: Role, bound: Bound) -> float:
    """Read the margin on the side where the metric gets worse; refuse impossible values."""
    given, other = node.get(bound), node.get("min" if bound == "max" else "max")
    if other is not None and given is not None:
        raise node.error("wanted one margin, got both max and min")
    if other is not None:
        more = "more" if bound == "max" else "less"
        raise other.error(f"wanted {bound} instead: {more} {METRICS[name].words} is worse")
    if given is None:
        raise node.error(f"wanted the key {bound}, the worst acceptable {stat} of {name}")
    margin = given.number()
    if stat.endswith("_ratio"):
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
        return metric.pass_at
    if metric.kind != "score" or stat != "diff":
        raise given.error("stands only beside stat: diff of a scored metric")
    if not 0 < (value := given.number()) <= 1:
        raise given.error(f"wanted a score above 0 and at most 1, got {value}")
    return value

"""The release policy: the cells that must be proved, guarded or reported, and their margins."""

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from collector.contract import Change, Family, InputBands, Role
from evals.errors import PolicyError
from evals.policy.reading import (
    STRICT,
    Integer,
    Number,
    PolicySection,
    Text,
    choice,
    error,
    load_yaml,
    validated,
    within,
    wrong,
)
from evals.policy.rules import GuardRule, ProveRule, ReportRule, Rule
from evals.policy.sections import (
    Dependence,
    DependenceSection,
    Design,
    Goodput,
    HourlyPrices,
    LaunchRules,
    Live,
    LiveSection,
    Lossless,
    LosslessSection,
    OpenUnit,
    SamplingDesign,
    ValidityRules,
    divided,
)

_SET_ASIDE_BELOW = 10
Level = Annotated[Number, within("a level above 0 and at most 0.2", lambda level: 0 < level <= 0.2)]


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
    sampling: SamplingDesign = field(default_factory=SamplingDesign)
    dependence: Dependence = field(default_factory=Dependence)
    validity: ValidityRules = field(default_factory=ValidityRules)
    prices: HourlyPrices | None = None
    launches: LaunchRules | None = None
    """`None`: any number of launches is enough."""
    live: Live | None = None
    """`None`: the default, without a rollback."""
    lossless: Lossless | None = None
    """`None`: answers are compared only by their scores."""
    goodput: Goodput | None = None
    """`None`: no bounds on the times of good requests."""
    input_tokens: tuple[int, ...] | None = None
    """First lengths of the bands of input tokens but the lowest; `None`: no bands."""
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

    `default` for changes of drafts, `lossless` for other changes that promise the baseline's own
    answers, `quality` for all others.
    """
    if change.is_of_drafts:
        return "default"
    return "lossless" if change in (Change.PREFIX_CACHE, Change.ATTENTION_KERNEL) else "quality"


def _shipped_folder() -> Traversable:
    return resources.files("evals") / "policies"


_LATER = ("live", "lossless", "launches", "goodput", "input_tokens", "family")
"""Sections that older canonical policies lack."""


class _Alpha(PolicySection):
    """Probabilities of wrong decisions."""

    passing: Annotated[Level, Field(alias="pass")] = 0.05
    """Maximum probability that a cell passes wrongly."""
    fail_family: Level = 0.05
    """Maximum probability that any cell fails wrongly."""
    lossless: OpenUnit = 0.01
    """Maximum probability that greedy answers pass, or fail, wrongly."""


def _bands(cuts: tuple[int, ...]) -> tuple[int, ...]:
    return InputBands(cuts).cuts


class _Cohorts(PolicySection):
    """How cohorts are judged."""

    min_n: Annotated[Integer, within("at least 1 pair", lambda n: n >= 1)] = 1
    """Pairs needed for a cell of one cohort to decide."""
    set_aside_below: Annotated[
        Integer, within("a number of pairs, or 0 to set none aside", lambda n: n >= 0)
    ] = _SET_ASIDE_BELOW
    """A cohort with fewer pairs, listed neither in a rule nor in the workload, is judged only in
    the pool, unless all of these exceed 5 % of the pairs; 0 turns this off."""
    weights: Literal["baseline_traffic"] = "baseline_traffic"
    """Mix to which split traffic is weighted."""
    input_tokens: Annotated[tuple[Integer, ...], AfterValidator(_bands)] | None = None
    """First lengths of bands of input tokens but the lowest, such as `[2000, 8000]`; each band is a
    cohort, too."""


class PolicyFile(PolicySection):
    """A policy: what must be proved, guarded or reported, with margins and conditions."""

    model_config = ConfigDict(**STRICT, json_schema_extra={"required": []})

    base: str | None = None
    """Shipped policy to start from: sections of this file add keys to its own, anything else
    replaces."""
    version: Annotated[
        Integer, within("1, the only version that this gate reads", lambda version: version == 1)
    ]
    """Version of the file's format: 1; required without `base`."""
    name: Text
    """Stands in the verdict, beside the policy's hash; required without `base`."""
    design: Design = "paired_replay"
    """How requests reach the arms; `paired_replay` and `mirror` are judged as pairs."""
    alpha: _Alpha = _Alpha()
    """Probabilities of wrong decisions."""
    sampling: SamplingDesign = SamplingDesign()
    """How requests were drawn."""
    dependence: DependenceSection = DependenceSection()
    """How long a disturbance lasts."""
    validity: ValidityRules = ValidityRules()
    """Conditions for deciding anything."""
    cohorts: _Cohorts = _Cohorts()
    """How cohorts are judged."""
    prices: HourlyPrices | None = None
    """Prices for cells of cost; default: the recorded ones."""
    live: LiveSection | None = None
    """How `draftgate watch` judges while traffic flows."""
    lossless: LosslessSection | None = None
    """Compare greedy answers and audit sampled ones; needs stored texts and the scope `content`."""
    launches: LaunchRules | None = None
    """Number of launches needed."""
    goodput: Goodput | None = None
    """Bounds within which a request is good."""
    prove: tuple[ProveRule, ...] = ()
    """Rules that must be proved for a pass; at least one."""
    guard: tuple[GuardRule, ...] = ()
    """Rules that must not fail, but need not pass."""
    report: tuple[ReportRule, ...] = ()
    """Rules that are reported and decide nothing."""

    @model_validator(mode="after")
    def _proves_something(self) -> "PolicyFile":
        if not self.prove:
            raise wrong("prove: wanted at least one rule; a gate that proves nothing cannot pass")
        rules = (*self.prove, *self.guard, *self.report)
        if self.goodput is None and any(rule.metric == "goodput" for rule in rules):
            raise wrong("missing; wanted the bounds that a rule for `goodput` needs", "goodput")
        if self.live is not None:
            self.live.check_spend(self.alpha.passing)
        return self

    @property
    def policy(self) -> Policy:
        """The policy, with every default."""
        alpha = self.alpha
        return Policy(
            name=self.name,
            alpha_pass=alpha.passing,
            alpha_fail_family=alpha.fail_family,
            min_n=self.cohorts.min_n,
            rules=tuple(one.rule for one in (*self.prove, *self.guard, *self.report)),
            set_aside_below=self.cohorts.set_aside_below,
            design=self.design,
            sampling=self.sampling,
            dependence=self.dependence.stretch,
            validity=self.validity,
            prices=self.prices,
            launches=self.launches,
            goodput=self.goodput,
            input_tokens=self.cohorts.input_tokens,
            live=None if self.live is None else self.live.live(alpha.passing),
            lossless=None if self.lossless is None else self.lossless.lossless(alpha.lossless),
        )


def parse(text: str, source: str) -> Policy:
    """Validate a policy file's text, or read a canonical policy; `source` names it in messages."""
    if text.startswith(_CANONICAL):
        return _from_canonical(text, source)
    return validated(_based(load_yaml(text, source), source), source, PolicyFile).policy


def _based(document: object, source: str) -> object:
    """Return a policy's document over that of the shipped policy which it names as its base.

    A section of keys adds to the base's, anything else stands in its place.
    """
    if not isinstance(document, dict) or "base" not in document:
        return document
    own = {key: value for key, value in document.items() if key != "base"}
    name = document["base"]
    if name not in (names := shipped_names()):
        raise error(choice(names, name), source, ("base",))
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

"""Register a rollout's policy, and describe how another policy differs from it."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from collector.client import Client
from collector.contract import (
    Family,
    PolicyRegistration,
    RegisteredPolicy,
    RolloutHistory,
    from_document,
)
from evals import policy as policies
from evals.policy import Policy

_KEYS = {"alpha_pass": "alpha.pass", "alpha_fail_family": "alpha.fail_family"}
_KEYS |= {key: f"cohorts.{key}" for key in ("min_n", "set_aside_below")}


def registration_of(policy: Policy) -> PolicyRegistration:
    """Return the registration of a policy."""
    return PolicyRegistration(
        policy_name=policy.name, policy_hash=policy.policy_hash, text=policy.canonical
    )


class ChosenPolicy(NamedTuple):
    """The policy that a rollout is judged by."""

    policy: Policy
    text: str
    """The file's text, or the canonical policy."""
    source: str
    """Description of its origin, for messages."""


def policy_for(client: Client, rollout: str, given: str | None) -> ChosenPolicy:
    """Return the policy `given`: a file, or the name of a shipped policy.

    If none is given, return the policy registered before the first pair, otherwise `default`.
    A rollout of a family gets every policy at its family's levels.
    """
    history = client.history(rollout)
    registered = None if given else history.registered
    if registered is None:
        name = given or "default"
        text = policies.text_by_name(name)
        chosen = policies.parse(text, name)
        if (family := _family(history)) is not None:
            chosen = chosen.in_family(family)
            text = chosen.canonical
        return ChosenPolicy(chosen, text, f"policy {name}")
    source = f"the registered policy {registered.policy_name} {registered.policy_hash[:12]}"
    return ChosenPolicy(policies.parse(registered.text, source), registered.text, source)


def registration_for(client: Client, rollout: str, policy: Policy) -> PolicyRegistration:
    """Return the registration of a policy for a rollout, at its family's levels if it has one."""
    family = _family(client.history(rollout))
    return registration_of(policy if family is None else policy.in_family(family))


def register_family(client: Client, family: Family, policy: Policy) -> RegisteredPolicy:
    """Register a policy at a family's levels for the family's name and each of its rollouts.

    Returns the last rollout's.
    """
    given = registration_of(policy.in_family(family))
    stored = client.register_policy(family.name, given)
    for name in family.rollouts:
        stored = client.register_policy(name, given)
    return stored


def _family(history: RolloutHistory) -> Family | None:
    """Return the family that a rollout was registered in, whichever policy is in force."""
    for one in history.registrations:
        found = json.loads(one.text).get("family")
        if found is not None:
            return from_document(Family, found)
    return None


def register_once(client: Client, rollout: str, policy: Policy) -> RegisteredPolicy:
    """Register a policy unless the rollout has one; return the one that counts."""
    known = client.history(rollout).registered
    return known or client.register_policy(rollout, registration_of(policy))


def changes(registered: str, policy: Policy) -> tuple[str, ...]:
    """Return the differences from a registered canonical policy, one line per key.

    Rules are matched by role, metric, stat, scope and side of the margin, so an added rule does not
    change the others; their numbers are those of the registered policy.
    """
    before, now = json.loads(registered), json.loads(policy.canonical)
    rules = _rule_changes(_rules(before.pop("rules", [])), _rules(now.pop("rules")))
    flat_before, flat_now = _flat(before), _flat(now)
    keys = sorted({*flat_before, *flat_now})
    return (*rules, *(line for key in keys for line in _change(key, flat_before, flat_now)))


def _change(key: str, before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    old, new = before.get(key, "absent"), now.get(key, "absent")
    return () if old == new else (f"{_KEYS.get(key, key)}: {old} → {new}",)


_Rules = dict[tuple[str, ...], tuple[str, dict[str, Any]]]  # Any: JSON values


def _rules(given: list[dict[str, Any]]) -> _Rules:
    """Return each rule with its place in the file, by the key that identifies it."""
    places: Counter[str] = Counter()
    seen: Counter[tuple[str, ...]] = Counter()
    found: _Rules = {}
    for rule in given:
        same = tuple(str(rule[key]) for key in ("role", "metric", "stat", "scope", "bound"))
        found[*same, str(seen[same])] = (f"{rule['role']}[{places[rule['role']]}]", rule)
        seen[same] += 1
        places[rule["role"]] += 1
    return found


def _rule_changes(before: _Rules, now: _Rules) -> tuple[str, ...]:
    lines = []
    for same, (place, rule) in before.items():
        if same not in now:
            lines.append(f"{place} ({_words(rule)}): removed")
            continue
        other = now[same][1]
        for key in sorted({*rule, *other}):
            old, new = rule.get(key), other.get(key)
            if old != new:
                shown = rule["bound"] if key == "margin" else key
                lines.append(f"{place}.{shown}: {_plain(old)} → {_plain(new)} ({_words(rule)})")
    added = [one for same, one in now.items() if same not in before]
    lines += [f"{place} ({_words(rule)}): added" for place, rule in added]
    return tuple(lines)


def _words(rule: Mapping[str, Any]) -> str:
    margin = f"{rule['bound']} {rule['margin']:g}"
    return f"{rule['metric']} {rule['stat']}, {rule['scope']}, {margin}"


def _flat(value: object, at: str = "") -> dict[str, str]:
    if isinstance(value, Mapping):
        found: dict[str, str] = {}
        for key, item in value.items():
            found |= _flat(item, f"{at}.{key}" if at else str(key))
        return found
    return {at: _plain(value)}


def _plain(value: object) -> str:
    return "absent" if value is None else json.dumps(value).strip('"')

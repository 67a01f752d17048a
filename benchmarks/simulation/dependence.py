"""Error rates of the gate for dependent requests: one cell at a time, each from one law."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.simulation import dependent_laws as laws
from benchmarks.simulation.laws import Bools, Floats, Latencies, task_shares
from benchmarks.simulation.methods import Rate
from benchmarks.simulation.release import side_of
from collector.contract import LATENCIES, Finding, Outcome, Reason
from evals import policy as policies
from evals.evidence.columns import Evidence
from evals.gate.release import judge_cells
from evals.policy import Policy
from evals.stats.bets import Bets

Draw = Callable[[np.random.Generator, int], Evidence]
SIZES = (2_000, 10_000)
LENGTHS = (20, 100, 300)
LOST = "{metric: failures, stat: diff, max: 0.01, scope: pooled}"
TASKS = "{metric: task_completion, stat: diff, min: -0.02, scope: pooled}"
TPOT = "{metric: tpot, stat: geomean_ratio, max: 1.00, scope: pooled}"
P95 = "{metric: ttft, stat: p95_ratio, max: 1.10, scope: pooled}"
P99 = "{metric: ttft, stat: p99_ratio, max: 1.25, scope: pooled}"
REPEATS = 5
SESSIONS = (80, 400, 2_000)
TURNS = 6
"""Mean number of turns of a session."""
ICC = 0.3
FAMILY = 20
"""Number of cells for which failures are corrected: about that of the default policy."""
_STATISTICAL = (None, Reason.TOO_FEW, Reason.TOO_CLOSE, Reason.DEPENDENCE, Reason.DRIFT, Reason.SRM)


def dependent(rollouts: int, seed: int, sizes: tuple[int, ...] = SIZES) -> Iterator[Rate]:
    """Yield every law's rates: passes at the margin, and fails of equal arms."""
    yield from _repeats(rollouts, seed)
    for sessions in SESSIONS:
        yield from of_sessions(rollouts, seed, sessions)
    for n in sizes:
        yield from _smooth(rollouts, seed, n)
        yield from _bursts(rollouts, seed, n)
        yield from _outages(rollouts, seed, n)
        yield from _equal_arms(rollouts, seed, n)
        yield from _independent(rollouts, seed, n)
    for length in (5, 25, 100):
        yield from _watched(rollouts, seed, length)
    for ratio in (1.05, 1.0):
        yield from _split(rollouts, seed, ratio)


def _smooth(rollouts: int, seed: int, n: int) -> Iterator[Rate]:
    for phi in (0.5, 0.9):
        draw = partial(_times, partial(laws.drifting_ratios, phi=phi), "tpot")
        yield from _rates(f"tpot AR({phi}), truth 1.00", TPOT, draw, (rollouts, seed, n))
    for rule, ratio in ((P95, 1.10), (P99, 1.25)):
        draw = partial(_times, partial(laws.slow_waves, phi=0.9, ratio=ratio), "ttft")
        what = f"ttft AR(0.9): {_stat(rule)}, truth {ratio}"
        yield from _rates(what, rule, draw, (rollouts, seed, n))


def _bursts(rollouts: int, seed: int, n: int) -> Iterator[Rate]:
    for length in LENGTHS:
        for rule, ratio in ((P95, 1.10), (P99, 1.25)):
            law = partial(laws.slow_bursts, length=length, ratio=ratio)
            what = f"slow bursts of {length}: {_stat(rule)}, truth {ratio}"
            yield from _rates(what, rule, partial(_times, law, "ttft"), (rollouts, seed, n))


def _outages(rollouts: int, seed: int, n: int) -> Iterator[Rate]:
    """Judge rare harm in outages, with a policy that declares their length and with one without."""
    for length in (5, 25):
        for stretch in (length, 1):
            words = f"stretch {stretch}"
            what = f"failures in outages of {length}, truth +.01, {words}"
            draw = partial(_failing, length=length, share=0.01)
            size = (rollouts, seed, n)
            yield from _rates(what, LOST, draw, size, stretch=stretch, bounded=stretch > 1)
    for stretch in (25, 1):
        what = f"tasks lost in windows of 25, truth −.02, stretch {stretch}"
        draw = partial(_losing, length=25, loss=0.02)
        yield from _rates(what, TASKS, draw, (rollouts, seed, n), stretch=stretch,
                          bounded=stretch > 1)  # fmt: skip


def _watched(rollouts: int, seed: int, length: int) -> Iterator[Rate]:
    """Look 100 times at 5,000 pairs whose failures come in outages, at a rate at the margin."""
    pairs, looks, margin = 5_000, 100, 0.01
    rng = np.random.default_rng([seed, 40, length])
    ever = dict[str, int]()
    for _ in range(rollouts):
        lost = laws.stretches(rng, pairs, length, margin).astype(np.float64)
        found = dict[str, bool]()
        for verb, limit, sign in (("pass", -margin, -1), ("fail", margin, 1)):
            bets = Bets(limit)
            for part in np.split(sign * lost, looks):
                bets = bets.after(part)
                for stretch in (length, 1):
                    what = f"ever {verb}, stretch {stretch}"
                    reached = bets.log_e_in_stretches(stretch) >= -math.log(0.05)
                    found[what] = found.get(what, False) or reached
        for what, happened in found.items():
            ever[what] = ever.get(what, 0) + happened
    check = f"watch, 100 looks: failures in outages of {length}, truth +.01"
    for what, count in ever.items():
        bound = None if what.endswith("stretch 1") else 0.07
        yield Rate(check, what, pairs, count / rollouts, rollouts, bound, None)


def _split(rollouts: int, seed: int, ratio: float) -> Iterator[Rate]:
    """Judge split traffic whose times depend on prompt length, with and without known lengths."""
    n, rule = 2_000, "{metric: e2e, stat: geomean_ratio, max: 1.05, scope: pooled}"
    rules = policies.parse(
        f"version: 1\nname: simulated\ndesign: split\nprove:\n  - {rule}\n", "simulated.yaml"
    )
    rng = np.random.default_rng([seed, 50, int(ratio * 100)])
    passed = {"lengths known": 0, "lengths unknown": 0}
    for _ in range(rollouts):
        tokens, chosen = rng.lognormal(6, 0.5, n), rng.random(n) < 0.5
        seconds = tokens / 400 * rng.lognormal(0, 0.3, n) * np.where(chosen, ratio, 1.0)
        for what, known in (("lengths known", tokens), ("lengths unknown", np.full(n, np.nan))):
            evidence = _split_evidence(seconds, chosen, known)
            passed[what] += judge_cells(evidence, rules)[0].outcome is Outcome.PASS
    for what, count in passed.items():
        bound = 0.07 if ratio > 1 else None
        yield Rate(f"split traffic, margin 1.05, truth {ratio:.2f}", f"pass, {what}", n,
                   count / rollouts, rollouts, bound, None)  # fmt: skip


def _split_evidence(seconds: Floats, chosen: Bools, tokens: Floats) -> Evidence:
    recorded = {"input_tokens": tokens}
    return evidence_of(
        len(seconds),
        e2e_s=(seconds, seconds),
        present=(chosen, ~chosen),
        recorded=(recorded, recorded),
    )


def _equal_arms(rollouts: int, seed: int, n: int) -> Iterator[Rate]:
    for words, law in (("5 % slow prompts, shared by .8", laws.slow_prompts),
                       ("p95 between two modes", laws.two_modes)):  # fmt: skip
        for rule in (P95, P99):
            what = f"equal arms, {words}: {_stat(rule)}"
            draw = partial(_times, law, "ttft")
            yield from _rates(what, rule, draw, (rollouts, seed, n), equal=True)
    draw = partial(_times, partial(laws.drifting_ratios, phi=0.9), "tpot")
    yield from _rates("equal arms, tpot AR(0.9)", TPOT, draw, (rollouts, seed, n), equal=True)
    draw = partial(_failing, length=25, share=0.01, both=True)
    yield from _rates("equal arms, outages of 25", LOST, draw, (rollouts, seed, n), equal=True)


def _independent(rollouts: int, seed: int, n: int) -> Iterator[Rate]:
    """Judge independent requests at the margin: the bound holds without dependence too."""
    for rule, metric, law in (
        (TPOT, "tpot", partial(laws.drifting_ratios, phi=0.0)),
        (P95, "ttft", partial(laws.slow_waves, phi=0.0, ratio=1.10)),
    ):
        draw = partial(_times, law, metric)
        yield from _rates(f"independent {metric}, truth at the margin", rule, draw,
                          (rollouts, seed, n))  # fmt: skip


def _repeats(rollouts: int, seed: int) -> Iterator[Rate]:
    """Judge five repeats of 800 prompts: few may pass at the margin, most must without a change."""
    for loss, bounded in ((0.02, True), (0.0, False)):
        what = f"five repeats of 800 prompts, ICC {ICC}, truth −{loss:g}"
        draw, size = partial(_repeated, loss=loss), (rollouts, seed, 800 * REPEATS)
        for rate in _rates(what, TASKS, draw, size, equal=not bounded):
            at_most, at_least = (0.06, None) if bounded else (None, 0.90)
            passes = rate.what == "pass"
            yield replace(rate, at_most=at_most, at_least=at_least) if passes else rate


def of_sessions(rollouts: int, seed: int, sessions: int) -> Iterator[Rate]:
    """Judge the turns of sessions, several at a time, at the margin."""
    for rule, words, draw in (
        (TASKS, "tasks, truth −0.02", _tasks_of_sessions),
        (TPOT, "tpot, truth 1.00", partial(_times_of_sessions, metric="tpot", ratio=1.0)),
        (P95, "ttft p95, truth 1.10", partial(_times_of_sessions, metric="ttft", ratio=1.10)),
    ):
        what = f"sessions of {TURNS} turns on average, ICC {ICC}: {words}"
        for rate in _rates(what, rule, draw, (rollouts, seed, sessions)):
            yield replace(rate, at_most=0.06) if rate.what == "pass" else rate


def _rates(
    check: str,
    rule: str,
    draw: Draw,
    size: tuple[int, int, int],
    *,
    stretch: int = 1,
    bounded: bool = True,
    equal: bool = False,
) -> Iterator[Rate]:
    rollouts, seed, n = size
    rules = policy_of(rule, stretch)
    rng = np.random.default_rng([seed, n, *check.encode()])
    found = [finding(draw(rng, n), rules) for _ in range(rollouts)]
    shares = {
        "pass": np.mean([f.outcome is Outcome.PASS for f in found]),
        "fail": np.mean([f.p_fail is not None and f.p_fail <= 0.05 / FAMILY for f in found]),
        "inconclusive for dependence": np.mean([f.reason is Reason.DEPENDENCE for f in found]),
        "inconclusive for drift": np.mean([f.reason is Reason.DRIFT for f in found]),
    }
    limits: Mapping[str, float | None] = {
        "pass": 0.07 if bounded and not equal else None,
        "fail": 0.05 if equal else None,
    }
    for what, share in shares.items():
        yield Rate(check, what, n, float(share), rollouts, limits.get(what), None)


def _stat(rule: str) -> str:
    return "p95" if rule is P95 else "p99"


def finding(evidence: Evidence, rules: Policy) -> Finding:
    """Return the finding of the only cell; raises `ValueError` if the evidence cannot be judged."""
    found = judge_cells(evidence, rules)[0]
    if found.reason not in _STATISTICAL:
        raise ValueError(f"wanted evidence that can be judged: {found.message}")
    return found


def policy_of(rule: str, stretch: int, more: str = "") -> Policy:
    """Return a policy with one prove rule; `more` is a further section."""
    head = f"version: 1\nname: simulated\ndependence: {{stretch: {stretch}}}\n{more}\n"
    text = f"{head}prove:\n  - {rule}\n"
    return policies.parse(text, "simulated.yaml")


def _times(
    law: Callable[[np.random.Generator, int], Latencies],
    metric: str,
    rng: np.random.Generator,
    n: int,
) -> Evidence:
    candidate, baseline = law(rng, n)
    return evidence_of(n, **{f"{metric}_s": (candidate, baseline)})


def _failing(
    rng: np.random.Generator, n: int, length: int, share: float, *, both: bool = False
) -> Evidence:
    none = np.zeros(n, dtype=np.bool_)
    candidate = laws.stretches(rng, n, length, share)
    baseline = laws.stretches(rng, n, length, share) if both else none
    return evidence_of(n, failed=(candidate, baseline))


def _losing(rng: np.random.Generator, n: int, length: int, loss: float) -> Evidence:
    return evidence_of(n, done=laws.lost_tasks(rng, n, length, loss))


def _repeated(rng: np.random.Generator, n: int, *, loss: float) -> Evidence:
    """Return five answers per prompt, with an intraclass correlation of .3 of differences."""
    prompts = np.repeat(np.arange(n // REPEATS), REPEATS)
    shares = task_shares(-loss)
    own, common = rng.random(len(prompts)), rng.random(n // REPEATS)[prompts]
    drawn = np.where(rng.random(n // REPEATS * REPEATS) < math.sqrt(ICC), common, own)
    lost, gained = drawn < shares.lost, drawn > 1 - shares.gained
    baseline = lost | (~gained & (rng.random(len(prompts)) < 0.85))
    found = evidence_of(len(prompts), done=((baseline & ~lost) | gained, baseline))
    return replace(found, prompts=prompts)


def _tasks_of_sessions(rng: np.random.Generator, n: int) -> Evidence:
    session = laws.sessions(rng, n, TURNS)
    shares = task_shares(-0.02)
    common = rng.random(n)[session]
    drawn = np.where(rng.random(len(session)) < math.sqrt(ICC), common, rng.random(len(session)))
    lost, gained = drawn < shares.lost, drawn > 1 - shares.gained
    baseline = lost | (~gained & (rng.random(len(session)) < 0.85))
    done = ((baseline & ~lost) | gained, baseline)
    return replace(evidence_of(len(session), done=done), prompts=session)


def _times_of_sessions(rng: np.random.Generator, n: int, *, metric: str, ratio: float) -> Evidence:
    session = laws.sessions(rng, n, TURNS)

    def seconds() -> Floats:
        own, common = rng.normal(size=len(session)), rng.normal(size=n)[session]
        return np.asarray(np.exp(0.3 * (math.sqrt(ICC) * common + math.sqrt(1 - ICC) * own)))

    times = {f"{metric}_s": (ratio * seconds(), seconds())}
    return replace(evidence_of(len(session), **times), prompts=session)


def evidence_of(n: int, **columns: tuple[Any, ...]) -> Evidence:  # Any: columns of every kind
    """Return `n` pairs in order of time; each column is given as (candidate, baseline)."""
    plain = np.full(n, np.nan)
    done = columns.pop("done", (plain, plain))
    grounded = columns.pop("grounded", (plain, plain))
    seconds = {m: columns.pop(f"{m}_s", (plain, plain)) for m in LATENCIES}
    sides = [
        replace(
            side_of(plain, done[i].astype(np.float64), grounded[i], 1 - i),
            seconds={metric: both[i] for metric, both in seconds.items()},
            **{name: both[i] for name, both in columns.items()},
        )
        for i in (0, 1)
    ]
    return Evidence(
        prompts=np.arange(n),
        cohort_of=np.zeros(n, dtype=np.int64),
        cohorts=("chat",),
        baseline=sides[1],
        candidate=sides[0],
        metrics=tuple(
            metric
            for metric, (scores, _) in (("groundedness", grounded), ("task_completion", done))
            if not np.isnan(scores).any()
        ),
        data_hash="",
    )

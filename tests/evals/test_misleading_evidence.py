"""Evidence that looks whole and misleads: copies, contradictions, units, moments, missing parts.

Each input goes through a collector and the real command; none may pass, and the verdict says why.
"""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spoilt_rollout import PAIRS, Rollout, judged

from collector.client import Client, ClientError
from collector.contract import Arm, Generation, Speculation

pytestmark = pytest.mark.filterwarnings("error")
BASELINE, CANDIDATE = Arm.BASELINE, Arm.CANDIDATE
ALL, EVEN, TENTH = range(PAIRS), range(0, PAIRS, 2), range(0, PAIRS, 10)
TWENTIETH, FIFTIETH = range(0, PAIRS, 20), range(0, PAIRS, 50)
_CENTURY_NS = 4 * 10**18
Spoil = Callable[[Rollout], Any]
Fields = Callable[[Generation], dict[str, Any]]


def _each(arm: Arm, fields: Fields, numbers: Iterable[int] = ALL) -> Spoil:
    """Return what replaces fields of an arm's answers by what each makes of itself."""

    def spoil(rollout: Rollout) -> None:
        for n in numbers:
            one = rollout.generations[n, arm]
            rollout.generations[n, arm] = replace(one, **fields(one))

    return spoil


def _both(fields: Fields) -> Spoil:
    return lambda rollout: [_each(arm, fields)(rollout) for arm in Arm]


def _scaled(**factors: float) -> Fields:
    return lambda one: {name: getattr(one, name) * by for name, by in factors.items()}


def _lasting(factor: float) -> Fields:
    return lambda one: {"end_unix_ns": one.start_unix_ns + round(factor * _lasted_ns(one))}


def _lasted_ns(one: Generation) -> int:
    return one.end_unix_ns - one.start_unix_ns


def _at(start_unix_ns: Callable[[Generation], int]) -> Fields:
    def moved(one: Generation) -> dict[str, int]:
        start = start_unix_ns(one)
        return {"start_unix_ns": start, "end_unix_ns": start + _lasted_ns(one)}

    return moved


def _times_of(one: Generation, *, start_unix_ns: int) -> dict[str, Any]:
    return {
        "ttft_s": one.ttft_s,
        "tpot_s": one.tpot_s,
        "output_tokens": one.output_tokens,
        "end_unix_ns": start_unix_ns + _lasted_ns(one),
    }


def _copied(distinct: int) -> Spoil:
    """Return what sends the first pairs again, under the prompt ids of the others."""

    def spoil(rollout: Rollout) -> None:
        for n in range(distinct, PAIRS):
            for arm in Arm:
                one, source = rollout.generations[n, arm], rollout.generations[n % distinct, arm]
                times = _times_of(source, start_unix_ns=one.start_unix_ns)
                rollout.generations[n, arm] = replace(one, **times)
                rollout.score(n, arm, value=rollout.scores[n % distinct, arm].value)

    return spoil


def _replayed(numbers: Iterable[int]) -> Spoil:
    """Return what gives the candidate's answers the times of the baseline's."""

    def spoil(rollout: Rollout) -> None:
        for n in numbers:
            one, source = rollout.generations[n, CANDIDATE], rollout.generations[n, BASELINE]
            times = _times_of(source, start_unix_ns=one.start_unix_ns)
            rollout.generations[n, CANDIDATE] = replace(one, **times)

    return spoil


def _swapped(rollout: Rollout) -> None:
    before = dict(rollout.generations)
    for n in ALL:
        for arm, other in ((BASELINE, CANDIDATE), (CANDIDATE, BASELINE)):
            rollout.generations[n, arm] = replace(before[n, other], arm=arm)


def _constant(one: Generation) -> dict[str, Any]:
    lasts_ns = round((0.09 + 20 * 0.008) * 1e9)
    return {"ttft_s": 0.09, "tpot_s": 0.008, "end_unix_ns": one.start_unix_ns + lasts_ns}


def _timed(**times_s: Callable[[Generation], float]) -> Fields:
    """Return what replaces times, and lets the answer last as long as they add up to."""

    def timed(one: Generation) -> dict[str, Any]:
        changed = replace(one, **{name: of(one) for name, of in times_s.items()})
        assert changed.ttft_s is not None
        assert changed.tpot_s is not None
        assert changed.output_tokens is not None
        lasts_ns = round((changed.ttft_s + changed.tpot_s * (changed.output_tokens - 1)) * 1e9)
        return {
            "ttft_s": changed.ttft_s,
            "tpot_s": changed.tpot_s,
            "end_unix_ns": one.start_unix_ns + lasts_ns,
        }

    return timed


def _per_token(one: Generation) -> dict[str, Any]:
    """Return a time per output token that includes the time to first token, a short one."""
    assert one.ttft_s is not None
    assert one.output_tokens is not None
    ended_ns = one.end_unix_ns - round(0.7 * one.ttft_s * 1e9)
    tpot_s = (ended_ns - one.start_unix_ns) / 1e9 / one.output_tokens
    return {"ttft_s": 0.3 * one.ttft_s, "tpot_s": tpot_s, "end_unix_ns": ended_ns}


def _scaled_from_the_baseline(rollout: Rollout) -> None:
    for n in ALL:
        one, source = rollout.generations[n, CANDIDATE], rollout.generations[n, BASELINE]
        times = _timed(
            ttft_s=lambda _, s=source: s.ttft_s * 0.8, tpot_s=lambda _, s=source: s.tpot_s * 0.8
        )
        rollout.generations[n, CANDIDATE] = replace(one, **times(one))


def _of_a_workload(dropped: Iterable[int]) -> Spoil:
    """Return what says how many pairs there were to be, and lets both sides of some never come."""

    def spoil(rollout: Rollout) -> None:
        for arm in Arm:
            rollout.change(arm, workload='{"chat": 200, "code": 200}')
            rollout.drop(arm, dropped)

    return spoil


CASES: dict[str, tuple[Spoil, str]] = {
    "a TPOT of half": (_each(CANDIDATE, _scaled(tpot_s=0.5)), "did not last as long as"),
    "a TPOT in kiloseconds": (_each(CANDIDATE, _scaled(tpot_s=1e-3)), "did not last as long as"),
    "a baseline's TPOT in ms": (_each(BASELINE, _scaled(tpot_s=1e3)), "did not last as long as"),
    "a TTFT in kiloseconds": (_each(CANDIDATE, _scaled(ttft_s=1e-3)), "did not last as long as"),
    "both in kiloseconds": (
        _each(CANDIDATE, _scaled(ttft_s=1e-3, tpot_s=1e-3)),
        "did not last as long as",
    ),
    "a TPOT of next to 0 in 2 %": (
        _each(CANDIDATE, lambda _: {"tpot_s": 1e-9}, FIFTIETH),
        "did not last as long as",
    ),
    "a baseline's TPOT of years in 2 %": (
        _each(BASELINE, lambda _: {"tpot_s": 1e9}, FIFTIETH),
        "did not last as long as",
    ),
    "durations of five times the tokens": (
        _each(CANDIDATE, _lasting(5)),
        "did not last as long as",
    ),
    "durations of half as much again": (_each(CANDIDATE, _lasting(1.5)), "did not last as long as"),
    "a tenth lasts five times its tokens": (
        _each(CANDIDATE, _lasting(5), TENTH),
        "did not last as long as",
    ),
    "both arms' durations in ms": (_both(_lasting(1e3)), "did not last as long as"),
    "thousands of tokens in no time": (
        _both(_scaled(output_tokens=1000)),
        "did not last as long as",
    ),
    "tokens counted twice": (
        _each(CANDIDATE, lambda one: {**_scaled(tpot_s=0.5)(one), **_scaled(output_tokens=2)(one)}),
        "output tokens",
    ),
    "negative durations in 2 %": (_each(CANDIDATE, _lasting(-1), FIFTIETH), "break the contract"),
    "a TTFT beyond the answer's end": (_each(CANDIDATE, _lasting(0.2)), "break the contract"),
    "an endless TPOT in 2 %": (
        _each(CANDIDATE, lambda _: {"tpot_s": math.inf}, FIFTIETH),
        "have no time per output token",
    ),
    "one start for all": (_both(_at(lambda _: 10**18)), "one and the same nanosecond"),
    "one start for the candidate": (
        _each(CANDIDATE, _at(lambda _: 10**18 + 400 * 10**9)),
        "one and the same nanosecond",
    ),
    "one start for half": (
        lambda r: [_each(arm, _at(lambda _: 10**18), EVEN)(r) for arm in Arm],
        "one and the same nanosecond",
    ),
    "both arms in the next century": (
        _both(_at(lambda one: one.start_unix_ns + _CENTURY_NS)),
        "break the contract",
    ),
    "every other pair in the next century": (
        lambda r: [
            _each(arm, _at(lambda one: one.start_unix_ns + _CENTURY_NS), EVEN)(r) for arm in Arm
        ],
        "break the contract",
    ),
    "40 pairs ten times over": (_copied(40), "pairs have the very times of an earlier one"),
    "200 pairs twice": (_copied(200), "pairs have the very times of an earlier one"),
    "20 pairs twice": (_copied(380), "pairs have the very times of an earlier one"),
    "a candidate replayed from the baseline": (_replayed(ALL), "both arms have the very same"),
    "every other answer replayed": (_replayed(EVEN), "both arms have the very same times"),
    "a twentieth replayed": (_replayed(TWENTIETH), "both arms have the very same times"),
    "times that never vary": (_each(CANDIDATE, _constant), "which no measurement has"),
    "a TPOT that never varies": (
        _each(CANDIDATE, _timed(tpot_s=lambda _: 0.008)),
        "time per output token is the same 0.008 s",
    ),
    "a TPOT that is one value in a fifth": (
        _each(CANDIDATE, _timed(tpot_s=lambda _: 0.008), range(0, PAIRS, 5)),
        "time per output token is the same 0.008 s",
    ),
    "a TTFT that never varies": (
        _each(CANDIDATE, _timed(ttft_s=lambda _: 0.08)),
        "time to first token is the same 0.08 s",
    ),
    "a duration that never varies": (
        _each(
            CANDIDATE,
            _timed(tpot_s=lambda one: (0.25 - one.ttft_s) / (one.output_tokens - 1)),
        ),
        "end-to-end latency is the same 0.25 s",
    ),
    "first tokens by a clock of 20 ms": (
        _both(_timed(ttft_s=lambda one: math.ceil(one.ttft_s * 50) / 50)),
        "the clock is too coarse",
    ),
    "durations divided by tokens": (
        _each(BASELINE, _per_token),
        "are the duration divided by the tokens",
    ),
    "times that are 0.8 of the baseline's": (_scaled_from_the_baseline, "the very same ratio"),
    "the arms exchanged": (_swapped, "time per output token"),
    "no output tokens in one arm": (
        lambda r: r.change(CANDIDATE, output_tokens=None),
        "give output tokens on one side alone",
    ),
    "no output tokens of the baseline": (
        lambda r: r.change(BASELINE, output_tokens=None),
        "give output tokens on one side alone",
    ),
    "no output tokens in 5 %": (
        lambda r: r.change(CANDIDATE, TWENTIETH, output_tokens=None),
        "give output tokens on one side alone",
    ),
    "no input tokens in one arm": (
        lambda r: r.change(CANDIDATE, input_tokens=None),
        "give input tokens on one side alone",
    ),
    "no accepted tokens": (
        lambda r: r.speculate(accepted_tokens=None),
        "no count shows that a draft token was accepted",
    ),
    "a tenth of the workload lost by both arms": (
        _of_a_workload(TENTH),
        "`chat` has 160 pairs of 200 that the workload has",
    ),
    "half of the workload never run": (
        _of_a_workload(range(200, PAIRS)),
        "`chat` has 100 pairs of 200 that the workload has",
    ),
    "a cohort renamed in one arm": (
        lambda r: r.change(CANDIDATE, r.of("code"), cohort="code "),
        "the cohort differs",
    ),
    "blank cohorts": (
        lambda r: [r.change(arm, cohort=" ") for arm in Arm],
        "no request names a cohort",
    ),
    "another repeat in one arm": (
        lambda r: r.change(CANDIDATE, repeat=1),
        "no pair has a time per output token",
    ),
    "prompt ids in capitals in one arm": (
        _each(CANDIDATE, lambda one: {"prompt_id": (one.prompt_id or "").upper()}),
        "no pair has a time per output token",
    ),
    "a temperature that is no number": (
        lambda r: r.change(CANDIDATE, temperature=math.nan),
        "the temperature differs",
    ),
    "another top-p": (lambda r: r.change(CANDIDATE, top_p=0.5), "top-p differs"),
    "a top-k in one arm": (lambda r: r.change(BASELINE, top_k=1), "top-k differs"),
    "a lossy baseline": (
        lambda r: r.change(BASELINE, speculation=Speculation(method="x", lossless=False)),
        "of the baseline's answers were made with a lossy acceptance",
    ),
    "a baseline that speculates in half": (
        lambda r: r.change(BASELINE, EVEN, speculation=Speculation(method="x", draft_tokens=9)),
        "200 of the baseline's 400 answers speculated",
    ),
    "an idle server against a busy one": (
        lambda r: [r.change(arm, concurrency=(64, 1)[arm is CANDIDATE]) for arm in Arm],
        "in flight 64 for the baseline and 1 for the candidate",
    ),
    "a candidate whose prompts were cached": (
        lambda r: [r.change(arm, cached_input_tokens=(0, 25)[arm is CANDIDATE]) for arm in Arm],
        "caches held 0% of the baseline's and 76% of the candidate's",
    ),
    "a load generator seconds late": (
        lambda r: r.change(CANDIDATE, client_lag_s=5.0),
        "the load generator was up to",
    ),
    "answers that a filter ended": (
        lambda r: r.change(CANDIDATE, TENTH, finish_reasons=("content_filter",)),
        "failed or missing answers",
    ),
    "answers that the engine aborted": (
        lambda r: r.change(CANDIDATE, TWENTIETH, finish_reasons=("abort",)),
        "failed or missing answers",
    ),
    "right answers that time out": (
        lambda r: r.change(CANDIDATE, TWENTIETH, error_type="timeout"),
        "failed or missing answers",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_does_not_pass(tmp_path: Path, name: str) -> None:
    """The exit code is not 0, and the verdict names the reason."""
    spoil, words = CASES[name]
    rollout = Rollout()
    spoil(rollout)
    code, verdict = judged(rollout, tmp_path)
    assert code == {"fail": 1, "inconclusive": 3}[verdict["outcome"]]
    assert words in " ".join(f["message"] for f in verdict["findings"])


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1.5", "-0.01", '"1"', "true"])
def test_a_score_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    """What is no number in [0, 1] is stored by no collector, so that the pairs stay unscored."""
    rollout = Rollout()
    refused = [rollout.scores.pop((n, CANDIDATE)) for n in EVEN]
    rollout.store(f"sqlite:///{tmp_path / 'd.db'}")
    one = {name: getattr(refused[0], name) for name in ("trace_id", "span_id", "metric", "version")}
    text = json.dumps([one | {"evaluator": "reference", "value": 0}])
    with (
        Client.local(f"sqlite:///{tmp_path / 'd.db'}") as client,
        pytest.raises(ClientError, match="value"),
    ):
        client._connection.send(
            "POST",
            "/api/v1/scores",
            content=text.replace('"value": 0', f'"value": {value}').encode(),
            headers={"Content-Type": "application/json"},
        )
    code, verdict = judged(rollout, tmp_path)
    assert (code, verdict["outcome"]) == (3, "inconclusive")

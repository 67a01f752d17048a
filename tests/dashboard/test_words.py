"""Numbers, units, times and outcomes in words."""

from zoneinfo import ZoneInfo

import pytest

from collector.contract import Finding, Outcome, Reason, Role
from dashboard import words
from evals.watch.wording import _WHY


def made(**changes: object) -> Finding:
    """Return a finding with changes."""
    values: dict[str, object] = {
        "metric": "ttft",
        "stat": "p95_ratio",
        "cohort": None,
        "role": Role.PROVE,
        "outcome": Outcome.PASS,
        "reason": None,
        "bound": "max",
        "margin": 1.1,
        "unit": "ratio",
        "confidence": 0.95,
        "n": 160,
        "method": "mover-os/1",
        "message": "TTFT p95 stays within its margin.",
    }
    return Finding(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n", "shown"),
    [(None, "–"), (0, "0"), (999, "999"), (1_234_567, "1\u202f234\u202f567"), (-5, "−5")],
)
def test_counts_have_thin_space_thousands(n: int | None, shown: str) -> None:
    """A count is grouped by threes; nothing measured is a dash, zero is zero."""
    assert words.count(n) == shown


def test_counted_nouns_agree_with_their_number() -> None:
    """One is singular, all else plural, an irregular plural as given."""
    said = [words.counted(n, "pair") for n in (0, 1, 2)] + [words.counted(2, "match", "matches")]
    assert said == ["0 pairs", "1 pair", "2 pairs", "2 matches"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "–"),
        (0.0, "0.00\u202fms"),
        (0.0153449, "15.34\u202fms"),
        (0.1237, "123.7\u202fms"),
        (2.6727, "2\u202f672.7\u202fms"),
    ],
)
def test_durations_are_milliseconds(seconds: float | None, shown: str) -> None:
    """A duration carries its unit, and a hundredth of a millisecond below 100 ms."""
    assert words.milliseconds(seconds) == shown


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (None, "ratio", "–"),
        (1.08414999, "ratio", "1.08×"),
        (1_234.5, "ratio", "1\u202f234.50×"),
        (1.0, "ratio", "1.00×"),
        (None, "difference", "–"),
        (0.01234, "difference", "+0.0123"),
        (-0.15, "difference", "−0.1500"),
        (0.0, "difference", "0.0000"),
        (-0.00001, "difference", "0.0000"),
        (None, "share", "–"),
        (-0.40625, "share", "−40.6\u202fpp"),
        (0.0004, "share", "0.0\u202fpp"),
        (0.021, "share", "+2.1\u202fpp"),
    ],
)
def test_numbers_of_findings(value: float | None, unit: str, shown: str) -> None:
    """Ratios are factors; differences are signed, those of shares in points; zero has no sign."""
    assert words.in_unit(value, unit) == shown


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [
        (None, "–"),
        (0.6249, "38\u202f% faster"),
        (1.12, "12\u202f% slower"),
        (1.004, "equally fast"),
        (25.0, "2\u202f400\u202f% slower"),
    ],
)
def test_a_ratio_of_times_is_said_in_words(ratio: float | None, shown: str) -> None:
    """Less time is faster, and a change below half a percent is none."""
    assert words.change_of_time(ratio) == shown


def test_a_limit_that_does_not_exist_is_said() -> None:
    """A missing limit is words, never an extreme number."""
    assert words.limit(None, "ratio") == "no limit at this n"


def test_limits_near_1_are_told_from_it() -> None:
    """A limit just beyond a margin of 1 does not read as the margin."""
    said = [words.limit(value, "ratio") for value in (1.25, 1.0034, 0.99981, 1.0)]
    assert said == ["1.25×", "1.003×", "0.9998×", "1.00×"]


def test_margins_name_their_side() -> None:
    """A margin says whether the number must stay under or over it."""
    low = made(bound="min", margin=-0.02, unit="difference")
    assert [words.margin(made()), words.margin(low)] == ["≤ 1.10×", "≥ −0.0200"]


def test_launches_needed_go_before_pairs() -> None:
    """A cell that lacks launches says how many."""
    assert words.pairs_needed(made(launches_needed=1)) == "1 more launch"
    assert words.pairs_needed(made(launches_needed=12)) == "12 more launches"


def test_pairs_needed() -> None:
    """What a cell lacks is said, unknown is a dash."""
    said = [words.pairs_needed(made(n_needed=n)) for n in (None, 7_300)]
    assert said == ["–", "7\u202f300 more"]


def test_what_a_finding_measures() -> None:
    """Metric and statistic read as words; an unknown name loses its underscores only."""
    cases = [
        ("ttft", "p95_ratio", "TTFT p95"),
        ("tpot", "geomean_ratio", "TPOT geometric mean"),
        ("e2e", "mean_ratio", "end to end mean"),
        ("task_completion", "diff", "task completion"),
        ("groundedness", "mean_diff", "groundedness mean"),
    ]
    assert [words.measure(metric, stat) for metric, stat, _ in cases] == [c[2] for c in cases]


def test_outcomes_are_icon_and_word() -> None:
    """Every outcome has its own icon and word, so that colour is not needed."""
    assert [words.outcome(o) for o in Outcome] == ["✓ Pass", "✕ Fail", "? Inconclusive"]


def test_acceptance_has_units() -> None:
    """The rate is a percentage, the length tokens a step; absent is a dash."""
    assert [
        words.acceptance_rate(0.46249),
        words.acceptance_rate(None),
        words.acceptance_length(2.85),
        words.acceptance_length(None),
    ] == ["46.2\u202f%", "–", "2.85 tokens/step", "–"]


def test_counts_behind_an_acceptance() -> None:
    """Counts that nobody gave are named as absent."""
    assert [
        words.draft_counts(84, 132, 33),
        words.draft_counts(84, 132, None),
        words.draft_counts(None, 132, 33),
    ] == [
        "84 of 132 draft tokens accepted, in 33 verify steps",
        "84 of 132 draft tokens accepted, steps not given",
        "counts not given",
    ]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-3, "in the future"),
        (0, "just now"),
        (1, "1 second ago"),
        (59, "59 seconds ago"),
        (180, "3 minutes ago"),
        (7_199, "1 hour ago"),
        (200_000, "2 days ago"),
    ],
)
def test_ages(seconds: int, said: str) -> None:
    """An age is in its largest whole unit."""
    now = 1_795_231_095_000_000_000
    assert words.age(now - seconds * 1_000_000_000, now) == said


def test_moments_are_in_the_viewers_zone() -> None:
    """An instant names its zone; unknown is UTC."""
    instant = 1_795_231_095_999_999_999
    assert [words.moment(instant, ZoneInfo("Europe/Berlin")), words.moment(instant, None)] == [
        "21 Nov 2026, 04:18:15 CET",
        "21 Nov 2026, 03:18:15 UTC",
    ]


def test_a_name_becomes_a_safe_argument() -> None:
    """A command that is shown can be copied into a shell."""
    assert [words.argument("support-k4"), words.argument("a; rm -rf ~")] == [
        "support-k4",
        "'a; rm -rf ~'",
    ]


def test_every_reason_has_words() -> None:
    """A page and a watch can say why, whatever a cell is inconclusive for."""
    assert set(Reason) <= set(words._UNDECIDED)
    assert set(Reason) == set(_WHY)

"""The Rollout page's table of greedy answers that differ from the baseline's."""

import pytest

from collector.contract import DivergedAnswers
from dashboard.sections.divergence import row


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        (
            DivergedAnswers(
                cohort=None,
                in_flight=None,
                compared=160,
                diverged=76,
                position_p25=3.0,
                position_p50=11.5,
                position_p75=40.0,
            ),
            ["all cohorts", "160", "76 (47.5\u202f%)", "12 (3–40)"],
        ),
        (
            DivergedAnswers(
                cohort="chat",
                in_flight=(4, 7),
                compared=40,
                diverged=0,
                position_p25=None,
                position_p50=None,
                position_p75=None,
            ),
            ["4–7 in flight", "40", "0 (0.0\u202f%)", "–"],
        ),
    ],
)
def test_how_many_differ_and_where(item: DivergedAnswers, shown: list[str]) -> None:
    """By cohort or by load; without a known position there is none."""
    assert [cell.shown for cell in row(item)] == shown

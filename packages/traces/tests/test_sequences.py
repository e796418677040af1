"""Fixes to cells at regular times."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from optmech_traces import Fixes, MarkovPrior

import optmech as om

LINE = om.Grid(1, 4)


def test_positions_are_interpolated_and_gaps_end_sequences() -> None:
    """0.5 to 2.5 over 5..25 s, then a gap, then two fixes too close for a step of 10 s."""
    times = [25.0, 5.0, 100.0, 104.0, 200.0, 215.0]
    xy = np.array([[2.5, 0.5], [0.5, 0.5], [3, 0.5], [3, 0.5], [9, 0.5], [1.2, 0.5]])
    fixes = Fixes(["a"] * 6, times, xy)
    first, second = fixes.sequences(LINE, interval=10, max_gap=50)
    np.testing.assert_array_equal(first.times, [10, 20])
    # x = 1.0 at 10 s and 2.0 at 20 s; cells are closed on the low side
    np.testing.assert_array_equal(first.cells, [1, 2])
    # x = 9 at 200 s is outside, 3.8 at 210 s is in the last cell
    np.testing.assert_array_equal(second.times, [200, 210])
    np.testing.assert_array_equal(second.cells, [-1, 3])


def test_users_are_kept_apart_and_repeated_times_count_once() -> None:
    times = [0.0, 10.0, 0.0, 10.0, 10.0]
    xy = np.array([[0.5, 0.5], [1.5, 0.5], [2.5, 0.5], [3.5, 0.5], [2.5, 0.5]])
    fixes = Fixes(["a", "a", "b", "b", "b"], times, xy)
    a, b = fixes.sequences(LINE, 10, 10)
    assert (a.user, b.user) == ("a", "b")
    np.testing.assert_array_equal(a.cells, [0, 1])
    np.testing.assert_array_equal(b.cells, [2, 2])
    visits = fixes.visits(LINE, 5)
    assert visits == []
    assert [len(v.cells) for v in fixes.visits(LINE, 10)] == [2, 2]


def test_parts_of_the_day() -> None:
    start = datetime(2020, 1, 1, 5, 30, tzinfo=UTC).timestamp()
    times = start + 3600 * np.arange(0, 24, 6.0)
    fixes = Fixes(["a"] * 4, times, np.full((4, 2), 0.5))
    (sequence,) = fixes.visits(LINE, 10**6)
    # 5:30, 11:30, 17:30, 23:30 in UTC; two hours later where the user is
    np.testing.assert_array_equal(sequence.day_classes([6, 12, 20]), [2, 0, 1, 2])
    np.testing.assert_array_equal(sequence.day_classes([6, 12, 20], offset=2), [0, 1, 1, 2])


def test_files_with_dates_or_seconds(tmp_path: Path) -> None:
    file = tmp_path / "fixes.csv"
    file.write_text(
        "who,when,x,y\n"
        "1,1970-01-01T00:01:00,0.5,0.5\n"
        "1,1970-01-01T02:02:00+02:00,1.5,0.5\n"
        "1,180,2.5,0.5\n"
        "1,240,,0.5\n"
    )
    fixes = Fixes.from_csv(file, user="who", time="when", x="x", y="y")
    np.testing.assert_array_equal(fixes.times, [60, 120, 180])
    np.testing.assert_array_equal(fixes.sequences(LINE, 60, 60)[0].cells, [0, 1, 2])
    file.write_text("who,when,x,y\n1,noon,1,1\n")
    with pytest.raises(om.ProblemError, match=r"data row 1.*'noon' is not a time"):
        Fixes.from_csv(file, user="who", time="when", x="x", y="y")


def test_real_gps_traces_stay_in_their_cell_most_of_the_time(shared_data: Path) -> None:
    """Counts from the file itself by a second route: pandas-free grouping of a single user."""
    fixes = Fixes.from_csv(
        shared_data / "geolife_beijing_11users.csv", user="user", time="utc", x="lon", y="lat"
    )
    assert len(fixes.times) == 30_060
    grid = om.Grid.geographic(6, 6, (116.28, 39.96, 116.36, 40.02))
    sequences = fixes.sequences(grid, interval=60, max_gap=120)
    assert len({s.user for s in sequences}) == 11
    for sequence in sequences:
        assert (np.diff(sequence.times) == 60).all()
    prior = MarkovPrior.from_sequences(grid, [s.cells for s in sequences], smoothing=1.0)
    stays = sum(((s.cells[1:] == s.cells[:-1]) & (s.cells[1:] >= 0)).sum() for s in sequences)
    known = sum(((s.cells[1:] >= 0) & (s.cells[:-1] >= 0)).sum() for s in sequences)
    visits = np.zeros(36)
    for s in sequences:
        both = (s.cells[1:] >= 0) & (s.cells[:-1] >= 0)
        np.add.at(visits, s.cells[:-1][both], 1)
    # the smoothed diagonal, weighted by departures, gives back the number of stays
    diagonal = np.diag(prior.transition(0)) * (visits + 1) - 1 / 36
    assert diagonal.sum() == pytest.approx(stays)
    assert stays / known > 0.8


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Fixes(["a"], [0.0, 1.0], np.ones((1, 2))), "1 users, 2 times"),
        (lambda: Fixes(["a"], [np.nan], np.ones((1, 2))), "NaN"),
        (lambda: Fixes(["a"], [0.0], np.ones((1, 3))), "positions of shape"),
        (lambda: Fixes(["a"], [0.0], np.ones((1, 2))).sequences(LINE, 0, 1), "interval"),
        (lambda: Fixes(["a"], [0.0], np.ones((1, 2))).visits(LINE, -1), "max_gap"),
        (
            lambda: (
                Fixes(["a"] * 2, [0.0, 1], np.ones((2, 2))).visits(LINE, 1)[0].day_classes([8, 6])
            ),
            "increasing hours",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_named(make: object, words: str) -> None:
    with pytest.raises(om.ProblemError, match=words):
        make()  # type: ignore[operator]

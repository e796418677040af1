"""A statement in plain words says no more than what the promise is of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from optmech_devices.protection.statement import statement_of

import optmech as om
from optmech.cli.main import main

E, H = om.distances.euclidean(), om.distances.hamming()
LINE, NAMES = om.Domain.range(4, unit="km"), om.Domain(["a", "b", "c"])
GLOBE = om.Domain.geographic(["x", "y"], [[16.3, 48.2], [16.3, 48.3]])
WHATEVER, FAR = "whatever else they know, and however long", "far apart"


def said(problem: om.Problem, folder: Path, pack: bool = False) -> str:
    design = om.solve(problem)
    path = folder / ("m.omm" if pack else "design.json")
    om.pack(design, path, bits=32) if pack else design.save(path)
    return " ".join(line for _, lines in statement_of(path) for line in lines)


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize(
    ("secrets", "stated", "whatever", "far"),
    [
        (LINE, [om.MetricPrivacy(1, E)], True, True),
        (GLOBE, [om.MetricPrivacy(0.1, om.distances.haversine())], True, True),
        (NAMES, [om.DifferentialPrivacy(1)], True, False),
        (LINE, [om.DifferentialPrivacy(1, delta=0.1)], True, False),
        (NAMES, [om.MutualInformation(0.2)], False, False),
        (NAMES, [om.GainLeakage(0.5)], False, False),
        (NAMES, [om.DistributionPrivacy(1, [([1, 0, 0], [0, 0.5, 0.5])])], False, False),
    ],
)
def test_against_whom_and_what_follows_from_the_promise(
    secrets: om.Domain, stated: list[om.Constraint], whatever: bool, far: bool, pack: bool,
    tmp_path: Path,
) -> None:  # fmt: skip
    loss = H if secrets is NAMES else om.distances.haversine() if secrets is GLOBE else E
    text = said(om.Problem(om.Prior.uniform(secrets), loss, constraints=stated), tmp_path, pack)
    assert (WHATEVER in text) is whatever
    assert (FAR in text) is far
    assert ("A person whose place" in text) is far


def test_pairs_that_are_not_stated_are_named_as_open(tmp_path: Path) -> None:
    """By a distance that is infinite between all of three secrets nothing is promised."""
    free = np.where(np.eye(3) > 0, 0.0, np.inf)
    for stated, is_open in ((om.MetricPrivacy(1, free), True), (om.MetricPrivacy(1, H), False)):
        problem = om.Problem(om.Prior.uniform(NAMES), H, constraints=[stated])
        assert ("and of no others" in said(problem, tmp_path)) == is_open


def test_nobody_is_protected_by_what_is_for_use(tmp_path: Path) -> None:
    problem = om.Problem(om.Prior.uniform(LINE), E, constraints=[om.LossBound(1)])
    text = said(problem, tmp_path)
    assert "Nobody: no privacy is promised." in text
    assert WHATEVER not in text
    assert "whose" not in text


def test_how_far_reports_are_from_each_other_is_said_in_lengths(tmp_path: Path) -> None:
    """Of a line, of the globe in km, and without a unit."""
    for secrets, words in (
        (LINE, "one of 4 places; the next one is 1 km away in the median."),
        (om.Domain.range(3), "the next one is 1 away in the median in the unit of the coordinates"),
        (GLOBE, "the next one is 11.1 km away in the median."),
    ):
        problem = om.Problem(om.Prior.uniform(secrets), np.ones((len(secrets), len(secrets))))
        assert words in said(problem, tmp_path)


def test_a_table_says_whose_rows_they_are_and_which_have_reports_of_their_own(
    tmp_path: Path,
) -> None:
    """Forty rows of four persons, one draw each, as a reader who is no engineer needs it: the
    numbers are counted here, and odds become how sure one may be."""
    data, summary = tmp_path / "data.csv", tmp_path / "summary.json"
    rows = [f"u{k % 4},2026-05-0{1 + k % 9},{2.3 + k / 999:.5f},48.85" for k in range(40)]
    data.write_text("nurse,date,lon,lat\n" + "\n".join(rows) + "\n", encoding="utf-8")
    kept = ["--keep", "date", "--times", "month", "--summary", str(summary), "--budget", "2"]
    texts = []
    for given in ([], ["--per", "nurse"]):
        out = tmp_path / "out.csv"
        assert main(["protect", str(data), *kept, *given, "-o", str(out)]) == 0
        points = {line.split(",", 1)[1] for line in out.read_text().splitlines()[1:]}
        assert len(points) == (4 if given else 1)
        texts.append(" ".join(line for _, lines in statement_of(summary) for line in lines))
        assert f"Only {len(points)} of 40 rows have a report of their own place" in texts[-1]
        assert f"{40 - len(points)} rows repeat the person's report before" in texts[-1]
        # e^(ln 4 (1 + 0.15)) = 4.925: 4.925 of 5.925 are 83.1 %
        assert "1 km apart by at most 4.94 times, at worst from 50 % to 84 %" in texts[-1]
        assert "The table has date, lon, lat: of these lon, lat are reports." in texts[-1]
        assert "date (cut to the begin of its month)" in texts[-1]
        assert "Left out of the table: nurse." in texts[-1]
        assert "key by which" not in texts[-1]
    assert "That is not the number of persons, which is not known here" in texts[0]
    assert "Where rows were sorted by person they are all of the first" in texts[0]
    assert "may repeat one report, whosever they are" in texts[0]
    assert "tell how many rows that person has" in texts[1]
    assert "The data have 4 persons, by their column 'nurse', which is not in" in texts[1]

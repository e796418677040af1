"""What a design file says besides its inequalities: proved, computed again, or marked."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import optmech_audit as audit
import pytest
from forgery import resealed

import optmech as om
from optmech.certificate.objective import OPTIMAL_GAP
from optmech.cli.main import main
from optmech.designs.notes import threshold_notes
from optmech.designs.sentences import nearness, percent
from optmech.exchange import adopt
from optmech.reading.sealed import seal
from optmech.show.figures import loss_name
from optmech.show.reports.payload import Store, design_payload
from optmech.show.words import lead

E, H = om.distances.euclidean(), om.distances.hamming()
Change = Callable[[dict[str, Any]], None]


def grid() -> om.Prior:
    return om.Prior(om.Grid(2, 3, cell=(0.5, 0.8), unit="km"), [3, 1, 2, 2, 1, 1])


def metric(epsilon: object = 0.5) -> om.Problem:
    return om.Problem(grid(), E, constraints=[om.MetricPrivacy(epsilon, E)])


def forged(design: om.Design, path: Path, change: Change) -> Path:
    path.write_bytes(resealed(design.document(), change))
    return path


def refused(path: Path) -> str:
    """The reason, where both checkers and the reader refuse a file."""
    with pytest.raises(audit.Fault):
        audit.audit(str(path))
    with pytest.raises(om.OptmechError) as caught:
        om.Design.load(path)
    assert main(["check", str(path)]) in (1, 2)
    return str(caught.value)


# ---------------------------------------------------------------- status and words
def test_a_search_that_stops_at_a_gap_asked_for_is_not_optimal() -> None:
    prior = om.Prior(om.Grid(4, 4, unit="km"), np.arange(1.0, 17))
    problem = om.Problem(prior, E, constraints=[om.MetricPrivacy(0.7, E)])
    best = om.solve(problem)
    assert best.status == "optimal"
    assert nearness(best) == "the least possible"
    for asked in (0.5, 0.3, 0.05):
        early = om.solve(problem, gap=asked)
        assert early.gap <= asked
        assert early.status == ("optimal" if early.gap <= OPTIMAL_GAP else "feasible")
        if early.status == "feasible":
            assert early.reason == f"stopped at the gap asked for, {asked:g}"
            assert "least expected loss" not in lead(early, "euclidean")
            assert nearness(early) in lead(early, "euclidean")
            said = float(re.findall(r"within ([0-9.]+) %", nearness(early))[0]) / 100
            assert early.loss <= (1 + said) * best.lower_bound * (1 + 1e-12)
            assert said >= early.gap


def test_a_design_for_every_point_says_what_it_is_compared_with() -> None:
    mesh = om.Mesh.grid((0, 0, 2, 2), width=2)
    places = om.Domain(range(2), points=[[0.5, 1.0], [1.5, 1.0]])
    promise = om.MetricPrivacy(1, E, everywhere=mesh)
    design = om.solve(om.Problem(om.Prior(places, [2, 1]), E, constraints=[promise]))
    found = re.fullmatch(
        r"(the least possible|within [0-9.]+ % of the least) of all mechanisms with these reports "
        r"that are linear in every triangle of this mesh; "
        r"within ([0-9.]+) % of the least of all mechanisms with these reports",
        nearness(design),
    )
    assert found
    least = float(om.solve(replaced(design.problem)).lower_bound)
    assert design.loss <= (1 + float(found[2]) / 100) * design.lower_bound * (1 + 1e-12)
    assert design.lower_bound <= least * (1 + 1e-9) <= design.loss * (1 + 1e-9)


def replaced(problem: om.Problem) -> om.Problem:
    """With the promise between its places only."""
    return om.Problem(problem.prior, problem.loss, constraints=[om.MetricPrivacy(1, E)])


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (Fraction(1, 8), "13 %"), (Fraction(13, 100), "13 %"), (Fraction(1, 1000), "0.1 %"),
        (Fraction(1001, 10**6), "0.11 %"), (Fraction(999, 1000), "100 %"),
        (Fraction(1, 10**5), "0.001 %"), (Fraction(991, 10**7), "0.01 %"),
    ],
)  # fmt: skip
def test_shares_are_rounded_up(share: Fraction, said: str) -> None:
    assert percent(share) == said
    assert Fraction(said.split()[0]) / 100 >= share


def test_nothing_is_known_of_an_adopted_mechanism_whose_bound_is_0() -> None:
    noise = om.mechanisms.exponential(grid().domain, 0.5, E)
    design = adopt(noise, metric())
    assert (design.status, design.lower_bound) == ("feasible", 0.0)
    assert nearness(design) == "nothing is known about how far from the least"
    assert "Nothing is known about how far its expected loss" in lead(design, "euclidean")


def test_an_attack_maximised_early_is_said_to_be_within_a_share_of_the_largest() -> None:
    stated = om.Problem(
        grid(), E, objective=om.MaximizeDistortion(E), constraints=[om.LossBound(0.4)]
    )
    best = om.solve(stated)
    assert best.status == "optimal"
    assert "leaves the best attack the largest error (euclidean)" in lead(best, "euclidean")
    identity = om.Mechanism(grid().domain, grid().domain, 0.7 * np.eye(6) + 0.05)
    design = adopt(identity, stated)
    said = float(re.findall(r"within ([0-9.]+) % of the largest", nearness(design))[0]) / 100
    assert design.objective >= (1 - said) * best.objective


def test_infeasible_problems_have_no_least_loss() -> None:
    stated = om.Problem(grid(), E, constraints=[om.MetricPrivacy(0.1, E), om.LossBound(0.01)])
    assert lead(om.solve(stated), "euclidean").endswith(
        "No mechanism with these reports keeps all 2 constraints."
    )


def test_the_status_of_a_file_follows_from_its_figures(tmp_path: Path) -> None:
    design = om.solve(metric())

    def no_bound(body: dict[str, Any]) -> None:
        body["result"].update(bound=0.0, lower_bound=0.0)

    assert "the status is 'optimal' in the file" in refused(
        forged(design, tmp_path / "a.json", no_bound)
    )

    def honest(body: dict[str, Any]) -> None:
        no_bound(body)
        body["result"]["status"] = "feasible"

    path = forged(design, tmp_path / "b.json", honest)
    assert (om.check(path).status, om.Design.load(path).status) == ("feasible", "feasible")
    assert audit.main([str(path)]) == 0

    def modest(body: dict[str, Any]) -> None:
        body["result"]["status"] = "feasible"

    # the word follows from the gap, here as in the audit
    assert "the status is 'feasible' in the file and 'optimal'" in refused(
        forged(design, tmp_path / "c.json", modest)
    )


# ---------------------------------------------------------------- geometry
def ten_times(body: dict[str, Any]) -> None:
    distance = body["problem"]["constraints"][0]["distance"]
    distance["name"] = "euclidean"


GEOMETRY: dict[str, Change] = {
    "cell": lambda b: b["problem"]["secrets"].update(cell=[5.0, 8.0]),
    "unit": lambda b: b["problem"]["secrets"].update(unit=7),
    "bounds": lambda b: b["problem"]["secrets"].update(bounds=[2.0, 48.0, 3.0, 49.0]),
    "transposed": lambda b: b["problem"]["secrets"].update(grid=[3, 2]),
    "a row": lambda b: b["problem"]["secrets"].update(grid=[6, 1]),
    "name": lambda b: b["problem"]["constraints"][0]["distance"].update(name="manhattan"),
    "loss": lambda b: b["problem"].update(loss_name="hamming"),
    "no such loss": lambda b: b["problem"].update(loss_name="squared"),
    "observables": lambda b: b["problem"]["observables"].update(grid=[3, 2]),
    "two units": lambda b: b["problem"]["observables"].update(unit="m"),
}


@pytest.mark.parametrize("name", GEOMETRY)
def test_another_geometry_is_refused(name: str, tmp_path: Path) -> None:
    refused(forged(om.solve(metric()), tmp_path / "d.json", GEOMETRY[name]))


def test_a_matrix_is_not_called_euclidean(tmp_path: Path) -> None:
    """ε = 5 per km under the name of 0.5."""
    tenfold = om.distances.matrix(10 * E(grid().domain, grid().domain))
    stated = om.Problem(grid(), E, constraints=[om.MetricPrivacy(0.5, tenfold)])
    path = forged(om.solve(stated), tmp_path / "d.json", ten_times)
    assert "is called euclidean, and is not" in refused(path)
    for command in ("measure", "attack"):
        assert main([command, str(path)]) == 1
    assert main(["report", str(path), "-o", str(tmp_path / "d.html")]) == 1


def test_a_function_that_calls_itself_euclidean_is_written_as_given(tmp_path: Path) -> None:
    class Far:
        name = "euclidean"

        def __call__(self, a: om.Domain, b: om.Domain) -> np.ndarray:
            return 10 * E(a, b)

    design = om.solve(om.Problem(grid(), Far(), constraints=[om.MetricPrivacy(0.5, Far())]))
    stated = design.problem.constraints[0].promise(design.problem.space)
    assert "given as a matrix, called 'euclidean'" in stated
    design.save(tmp_path / "d.json")
    again = om.Design.load(tmp_path / "d.json").problem
    assert again.constraints[0].promise(again.space) == (
        "ε = 0.5 per unit of distance (given as a matrix)"
    )
    assert loss_name(again) == "given as a matrix"


def test_what_cannot_be_computed_again_is_shown_as_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = om.distances.matrix(E(grid().domain, grid().domain))
    stated = om.Problem(grid(), H, constraints=[om.MetricPrivacy(0.5, table)])

    def rename(body: dict[str, Any]) -> None:
        body["problem"]["constraints"][0]["distance"]["name"] = "graph"

    path = forged(om.solve(stated), tmp_path / "d.json", rename)
    assert main(["measure", str(path)]) == 0
    assert "given as a matrix, called 'graph' in the file" in " ".join(
        capsys.readouterr().out.split()
    )
    assert any(
        "given as a matrix, called 'graph': not checked" in x for x in audit.audit(str(path))
    )
    assert om.check(path).notes == (
        "constraints[0]: the distance is given as a matrix, called 'graph' in the file",
    )
    problem = om.Design.load(path).problem
    assert loss_name(problem) == "hamming"
    assert "km" not in problem.constraints[0].promise(problem.space)


def test_named_distances_survive_a_round_trip(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    lonlat = np.column_stack([rng.uniform(-180, 180, 9), rng.uniform(-90, 90, 9)])
    lonlat[1] = [lonlat[0, 0] + 180, -lonlat[0, 1]]
    lonlat[2] = lonlat[0] + [1e-7, 0]
    globe = om.Domain.geographic(range(9), lonlat)
    space = om.Domain(range(6), rng.normal(size=(6, 3)) * 1e5, "km")
    for domain, distance, scale in (
        (globe, om.distances.haversine(), 1e-3),
        (space, E, 1e-5),
        (space, om.distances.manhattan(), 1e-5),
        (om.Grid.geographic(2, 3, (2.3, 48.8, 2.4, 48.9)), E, 1.0),
    ):
        problem = om.Problem(
            om.Prior.uniform(domain), distance, constraints=[om.MetricPrivacy(scale, distance)]
        )
        design = om.solve(problem)
        design.save(tmp_path / "d.json")
        again = om.Design.load(tmp_path / "d.json")
        name = getattr(distance, "name")  # noqa: B009
        assert loss_name(again.problem) == name
        assert f"the distance is {name}, computed again" in " ".join(
            audit.audit(str(tmp_path / "d.json"))
        )


# ---------------------------------------------------------------- thresholds and other claims
def thresholded() -> om.Design:
    return om.solve(om.Problem(grid(), E, constraints=[om.MetricPrivacy(1.0, E, threshold=0.6)]))


APPROXIMATIONS: dict[str, Change] = {
    "epsilon": lambda b: b["result"]["approximations"][0].update(epsilon=1e-9),
    "promised": lambda b: b["result"]["approximations"][0].update(promised_epsilon=0.5),
    "constraint": lambda b: b["result"]["approximations"][0].update(constraint=99),
    "dropped": lambda b: b["result"].update(approximations=[]),
    "twice": lambda b: b["result"].update(approximations=2 * b["result"]["approximations"]),
    "infinite": lambda b: b["result"]["approximations"][0].update(epsilon=None),
}


@pytest.mark.parametrize("name", APPROXIMATIONS)
def test_what_thresholds_leave_is_measured_again(name: str, tmp_path: Path) -> None:
    design = thresholded()
    true = om.measures.epsilon(design.mechanism, E)
    assert design.approximations[0].epsilon == true > 1
    refused(forged(design, tmp_path / "d.json", APPROXIMATIONS[name]))


@pytest.mark.parametrize("stated", [0.0, 5e-324, 1e-13, 9e-16, 1.1e-15, 1e-12])
def test_what_thresholds_leave_is_compared_in_its_own_unit(stated: float, tmp_path: Path) -> None:
    far = om.Domain(list("abcd"), [[0.0], [1e15], [2e15], [3e15]], unit="nm")
    problem = om.Problem(
        om.Prior(far, [1, 2, 3, 2]), H, constraints=[om.MetricPrivacy(1e-15, E, threshold=1.5e15)]
    )
    design = om.solve(problem)

    def small(body: dict[str, Any]) -> None:
        body["result"]["approximations"][0].update(epsilon=stated)

    path = forged(design, tmp_path / "d.json", lambda _: None)
    assert om.check(path).passed
    audit.audit(str(path))
    refused(forged(design, path, small))


def test_equal_rows_have_no_epsilon_at_all(tmp_path: Path) -> None:
    everywhere = om.Mechanism(grid().domain, grid().domain, np.full((6, 6), 1 / 6))
    stated = om.Problem(grid(), E, constraints=[om.MetricPrivacy(1.0, E, threshold=0.6)])
    design = adopt(everywhere, stated)
    assert design.approximations[0].epsilon == 0
    path = forged(design, tmp_path / "d.json", lambda _: None)
    audit.audit(str(path))

    def some(body: dict[str, Any]) -> None:
        body["result"]["approximations"][0].update(epsilon=1e-13)

    refused(forged(design, path, some))


def test_adopted_mechanisms_are_measured_beyond_their_thresholds(tmp_path: Path) -> None:
    noise = om.mechanisms.exponential(grid().domain, 1.0, E)
    stated = om.Problem(grid(), E, constraints=[om.MetricPrivacy(1.0, E, threshold=0.6)])
    design = adopt(noise, stated)
    (part,) = design.approximations
    assert part.epsilon == om.measures.epsilon(design.mechanism, E)
    design.save(tmp_path / "d.json")
    assert om.check(tmp_path / "d.json").passed
    audit.audit(str(tmp_path / "d.json"))


ZEROS: dict[str, om.Constraint] = {
    "epsilon": om.DifferentialPrivacy(0.0),
    "delta": om.DifferentialPrivacy(1.0),
    "minimum": om.DistortionPrivacy(0.0, E),
    "maximum": om.LossBound(0.0),
}


@pytest.mark.parametrize("name", ZEROS)
def test_zero_has_no_sign(name: str, tmp_path: Path) -> None:
    design = om.solve(om.Problem(grid(), E, constraints=[ZEROS[name]]))
    path = forged(design, tmp_path / "d.json", lambda _: None)
    audit.audit(str(path))
    assert om.check(path).passed

    def signed(body: dict[str, Any]) -> None:
        assert body["problem"]["constraints"][0][name] == 0
        body["problem"]["constraints"][0][name] = -0.0

    refused(forged(design, path, signed))


def test_a_better_repaired_loss_is_refused(tmp_path: Path) -> None:
    def better(body: dict[str, Any]) -> None:
        body["result"]["approximations"][0]["repaired_loss"] = 0.0

    path = forged(thresholded(), tmp_path / "d.json", better)
    assert any("repaired_loss" in fault for fault in om.check(path).faults)
    assert any("not checked" in line for line in audit.audit(str(path)))


MALFORMED: dict[str, Change] = {
    "seconds": lambda b: b["result"].update(seconds=-1.0),
    "engine": lambda b: b["result"].update(engine=1),
    "notes": lambda b: b["result"].update(notes="none"),
    "note": lambda b: b["result"].update(notes=[1]),
    "rounding": lambda b: b["result"].update(rounding_cost=None),
    "unknown": lambda b: b["result"].update(proved=True),
    "unknown at the top": lambda b: b.update(author="me"),
    "text": lambda b: b["result"].update(bound=str(b["result"]["bound"])),
    "true": lambda b: b["result"].update(seconds=True),
    "lower bound": lambda b: b["result"].update(lower_bound=0.0),
    "labels": lambda b: b["problem"].update(
        secrets={
            "labels": [1, True, 2, 3, 4, 5], "points": None, "unit": "", "coordinates": "plane",
        }
    ),
    "negative grid": lambda b: b["problem"]["secrets"].update(grid=[-2, -3]),
    "fractional grid": lambda b: b["problem"]["secrets"].update(grid=[2.9, 3.9]),
    "textual grid": lambda b: b["problem"]["secrets"].update(grid=["2", "3"]),
    "a grid with labels": lambda b: b["problem"]["secrets"].update(labels=list("abcdef")),
    "twice": lambda b: [
        b["multipliers"]["ratio"][key].pop() for key in ("i", "j", "o")
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_other_spellings_are_refused_by_both(name: str, tmp_path: Path) -> None:
    refused(forged(om.solve(metric()), tmp_path / "d.json", MALFORMED[name]))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"seconds": ', b'"seconds": 1e999, "was": '),
        (b'"epsilon": 0.5', b'"epsilon": 1e-9, "epsilon": 0.5'),
        (b'"problem": {', b'"problem": {}, "problem": {'),
        (b'"delta": 0.0', b'"delta": 2.0'),
    ],
)
def test_duplicate_keys_and_infinities_are_refused_by_both(
    old: bytes, new: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "d.json"
    om.solve(metric()).save(path)
    rest = path.read_bytes().partition(b"\n")[2]
    assert old in rest
    path.write_bytes(seal(b"{" + rest.replace(old, new, 1)))
    refused(path)


def test_notes_of_a_file_are_marked_as_its_own(tmp_path: Path) -> None:
    def boast(body: dict[str, Any]) -> None:
        body["result"]["notes"].append("audited by experts")

    path = forged(om.solve(metric()), tmp_path / "d.json", boast)
    once = om.Design.load(path)
    assert once.notes == ("said by the file, not checked: audited by experts",)
    once.save(path)
    assert om.Design.load(path).notes == once.notes


def test_reasons_and_engines_of_a_file_do_not_pass_for_words_of_ours(tmp_path: Path) -> None:
    def boast(body: dict[str, Any]) -> None:
        body["result"]["reason"] = "no mechanism does better"
        body["result"]["engine"] = "highs, 0.1 s)\n\x1b[2JDesign(proved unique"

    path = forged(om.solve(metric()), tmp_path / "d.json", boast)
    once = om.Design.load(path)
    assert once.summary()["reason"] == "said by the file, not checked: no mechanism does better"
    assert repr(once).isprintable()
    assert "'highs, 0.1 s)" in repr(once)
    once.save(path)
    assert om.Design.load(path).reason == once.reason


@pytest.mark.parametrize("places", [om.Grid(1, 2), om.Domain("ab", [[0.0], [1.0]])])
def test_units_do_not_break_the_line(places: om.Domain, tmp_path: Path) -> None:
    def boast(body: dict[str, Any]) -> None:
        for side in ("secrets", "observables"):
            body["problem"][side]["unit"] = "km\nverified \ud800"

    problem = om.Problem(om.Prior.uniform(places), H, constraints=[om.DifferentialPrivacy(1.0)])
    found = om.Design.load(forged(om.solve(problem), tmp_path / "d.json", boast))
    assert repr(found.problem.secrets).isprintable()
    assert repr(found).isprintable()


def test_a_page_shows_prices_only_where_they_are_proved(tmp_path: Path) -> None:
    def unproved(body: dict[str, Any]) -> None:
        body["result"].update(status="feasible", bound=0.0, lower_bound=0.0)
        body["multipliers"]["ratio"] = None

    def priced(design: om.Design) -> tuple[bool, bool]:
        page = design_payload(design, "d", Store())
        return bool(page["constraints"][0]["prices"]), bool(page["pairs"])

    design = om.solve(metric())
    path = forged(design, tmp_path / "d.json", unproved)
    assert om.check(path).passed
    audit.audit(str(path))
    assert priced(design) == (True, True)
    assert priced(om.Design.load(path)) == (False, False)
    noise = om.mechanisms.exponential(grid().domain, 0.5, E)
    assert priced(adopt(noise, metric())) == (False, False)


@pytest.mark.parametrize("title", ["\ud800", "a\u202eb", "a\nb"])
def test_titles_of_any_characters_give_a_page(title: str, tmp_path: Path) -> None:
    path = forged(
        om.solve(metric()), tmp_path / "d.json", lambda b: b["problem"].update(title=title)
    )
    page = tmp_path / "page.html"
    assert main(["report", str(path), "-o", str(page)]) == 0
    shown = page.read_text(encoding="utf-8").partition("<title>")[2].partition("</title>")[0]
    assert shown.isprintable()


def test_a_repair_that_was_not_found_has_no_loss() -> None:
    design = thresholded()
    (part,) = design.approximations
    (said,) = threshold_notes(
        replace(design, approximations=(replace(part, repaired_loss=math.nan),))
    )
    assert "no repair was found" in said
    assert "nan" not in said


def test_the_reason_of_infeasibility_is_proved_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stated = om.Problem(grid(), E, constraints=[om.DistortionPrivacy(7.0, E)])
    design = om.solve(stated)

    def other(body: dict[str, Any]) -> None:
        body["result"]["reason"] = "no mechanism has epsilon below 0.7"

    path = forged(design, tmp_path / "d.json", other)
    assert om.Design.load(path).reason == design.reason
    assert om.check(path).reason == design.reason
    assert main(["check", str(path)]) == 0
    assert "d_m = 7" in capsys.readouterr().out

    def figures(body: dict[str, Any]) -> None:
        body["result"]["loss"] = 0.1

    refused(forged(design, tmp_path / "e.json", figures))


# ---------------------------------------------------------------- promises of nothing
def test_a_secret_is_not_paired_with_itself(tmp_path: Path) -> None:
    with pytest.raises(om.ProblemError, match="paired with itself"):
        om.DifferentialPrivacy(0.001, [(0, 1), (2, 2)])
    stated = om.Problem(grid(), H, constraints=[om.DifferentialPrivacy(0.5, [(0, 1)])])

    def itself(body: dict[str, Any]) -> None:
        body["problem"]["constraints"][0]["adjacency"] = [[0, 0]]

    refused(forged(om.solve(stated), tmp_path / "a.json", itself))

    def nothing(body: dict[str, Any]) -> None:
        body["problem"]["constraints"][0]["adjacency"] = []

    refused(forged(om.solve(stated), tmp_path / "b.json", nothing))


SAME = [0.2] * 5 + [0.0]


@pytest.mark.parametrize(
    "constraint",
    [
        om.MetricPrivacy(0.5, E, threshold=0.1),
        om.MetricPrivacy(0.5, E, threshold=0.1, delta=0.1),
        om.MetricPrivacy(0.5, E, delta=1.0),
        om.DifferentialPrivacy(0.5, (E, 0.2)),
        om.DifferentialPrivacy(0.5, (E, 0.2), delta=0.01),
        om.DifferentialPrivacy(0.5, delta=1.0),
        om.DistributionPrivacy(0.5, [(SAME, SAME)]),
        om.DistributionPrivacy(1.0, [(SAME, SAME[::-1])], divergence="tv"),
        om.DistortionPrivacy(0.0, E),
    ],
)
def test_promises_that_constrain_nothing_are_noted(
    constraint: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The least loss is then that of the truth: 0."""
    design = om.solve(om.Problem(grid(), E, constraints=[constraint]))
    assert design.loss == pytest.approx(0, abs=1e-12)
    assert any("constrains nothing" in note for note in design.notes)
    path = tmp_path / "d.json"
    design.save(path)
    assert main(["check", str(path)]) == 0
    assert "constrains nothing" in capsys.readouterr().err
    assert any("constrains nothing" in note for note in om.Design.load(path).notes)
    audit.audit(str(path))


# ---------------------------------------------------------------- the audit's reach
@pytest.mark.parametrize(("apart", "epsilon"), [(37.1, 7), (90.0, 7), (101.0, 7)])
def test_the_audit_reaches_far_enough(apart: float, epsilon: float, tmp_path: Path) -> None:
    """e^{ε d} of 2^375, 2^909 and 2^1020; two secrets: randomised response is optimal."""
    line = om.Domain(["a", "b"], [[0.0], [apart]])
    problem = om.Problem(om.Prior.uniform(line), E, constraints=[om.MetricPrivacy(epsilon, E)])
    design = om.solve(problem)
    assert design.loss == pytest.approx(apart / (1 + math.exp(epsilon * apart)), rel=1e-9)
    path = tmp_path / "d.json"
    design.save(path)
    assert om.check(path).passed
    assert audit.main([str(path)]) == 0


def test_prices_beyond_the_cut_are_cut_by_both(tmp_path: Path) -> None:
    line = om.Domain.range(3)
    loss = om.distances.matrix(1e290 * H(line, line))
    problem = om.Problem(om.Prior.uniform(line), loss, constraints=[om.DifferentialPrivacy("ln 3")])
    design = om.solve(problem)
    path = tmp_path / "d.json"
    design.save(path)
    assert om.check(path).passed
    assert audit.main([str(path)]) == 0


def test_small_files_do_not_become_large(tmp_path: Path) -> None:
    """A grid of ten million cells in 3 kB; and 30,000 secrets, whose distances would not fit."""

    def large(body: dict[str, Any]) -> None:
        body["problem"]["secrets"].update(grid=[3162, 3162])

    assert "3162 x 3162" in refused(forged(om.solve(metric()), tmp_path / "d.json", large))

    def long(body: dict[str, Any]) -> None:
        body["problem"].update(prior=[1 / 30_000] * 30_000, loss=[[0.0]] * 30_000)

    with pytest.raises(audit.Fault, match="too large for this audit"):
        audit.audit(str(forged(om.solve(metric()), tmp_path / "e.json", long)))


def test_the_audit_reads_regular_files_only(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(audit.Fault, match="not a regular file"):
        audit.audit(str(tmp_path / "pipe"))

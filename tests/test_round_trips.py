"""Whatever a constructor takes is written to a file from which the same problem is read again; what
cannot be is refused, by an error that names the argument."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optmech as om
from optmech.designs.encoding import decode_problem, encode_problem

KM, HAMMING = om.distances.euclidean(), om.distances.hamming()
LINE = om.Domain.range(3, "km")
EVEN = om.Prior.uniform(LINE)
MOVED = [([1, 1, 0], [0, 1, 1])]


class Text(str):
    """A text of a class of its own."""


class Called:
    """A distance with a name of any sort."""

    def __init__(self, name: object) -> None:
        self.name = name

    def __call__(self, a: om.Domain, b: om.Domain) -> np.ndarray:
        return np.asarray(KM(a, b))


TEXTS = [
    *(None, 0, 5, True, 1.5, ["a"], b"x", "", "\ud800", "a\nb\x00", "é" * 300, Text("own")),
    np.str_("of numpy"),
]
LABELS: list[tuple[Any, ...]] = [
    *((None, 1, 2), (True, 2, 3), (1.5, 2.5, 0.0), (-0.0, 1.0, 2.0), (float("nan"), 1, 2)),
    *((float("inf"), 1, 2), (np.int64(1), np.int64(2), 3), (np.str_("a"), "b", "c")),
    *(("\ud800", "b", "c"), (b"a", b"b", b"c"), ((1, (2, 3)), "x", (("a",),)), (1, "1", 2)),
    *((frozenset([1]), 2, 3), (Decimal(1), 2, 3), (Fraction(1, 2), 2, 3), (10**30, 1, 2)),
    *((Text("a"), 1, 2), ((), "a", "b"), (1j, 2, 3), (range(2), 1, 2), ("", None, 0)),
]
NUMBERS = [
    *("1/3", "ln 3", "0.1", "  2 ", "1e-3", "-1/2", -0.25, 0, -0.0, 2, 1e-320, 1e300, 2**60 + 1),
    *(Fraction(1, 3), Decimal("0.1"), np.float32(0.1), np.float64(0.5), np.int64(2)),
    *(np.array(0.5), np.array([0.5]), True, np.True_, None, [0.5], "two", 1j),
]
OTHERS = [None, 0, "no", "false", 1, True, np.True_, [], "x", b"x", object()]
MATRICES: list[Any] = [
    *(KM, HAMMING, np.ones((3, 3), dtype=int), np.eye(3, dtype=bool), np.eye(3).tolist()),
    *(np.eye(3, dtype=np.float32), np.asfortranarray(np.eye(3)), np.eye(3)[:, ::-1]),
    *(-0.0 * np.eye(3), np.eye(3).astype(object), np.eye(3) * 1e-320, "euclidean", 3, None),
    om.distances.euclidean,
]


def asked(*constraints: om.problem.Constraint, **given: Any) -> om.Problem:
    used = {"prior": EVEN, "loss": KM, "constraints": constraints or [om.DifferentialPrivacy(1)]}
    used |= given
    return om.Problem(used.pop("prior"), used.pop("loss"), **used)


BY_TEXT: dict[str, Callable[[Any], om.Problem]] = {
    "title": lambda v: asked(title=v),
    "unit": lambda v: asked(prior=om.Prior.uniform(om.Domain.range(3, v))),
    "grid's unit": lambda v: asked(prior=om.Prior.uniform(om.Grid(1, 3, unit=v))),
    "distance's name": lambda v: asked(om.MetricPrivacy(1, Called(v))),
    "loss's name": lambda v: asked(loss=Called(v)),
    "coordinates": lambda v: asked(
        prior=om.Prior.uniform(om.Domain("abc", [0, 1, 2], coordinates=v))
    ),
    "divergence": lambda v: asked(om.DistributionPrivacy(1, MOVED, divergence=v)),
    "objective": lambda v: asked(objective=v),
}  # fmt: skip
BY_LABELS: dict[str, Callable[[Any], om.Problem]] = {
    "labels": lambda v: asked(prior=om.Prior.uniform(om.Domain(v)), loss=HAMMING),
    "observables": lambda v: asked(observables=om.Domain(v), loss=np.ones((3, 3))),
}
BY_NUMBER: dict[str, Callable[[Any], om.Problem]] = {
    "metric": lambda v: asked(om.MetricPrivacy(v, HAMMING)),
    "differential": lambda v: asked(om.DifferentialPrivacy(v)),
    "delta": lambda v: asked(om.MetricPrivacy(1, HAMMING, v)),
    "loss bound": lambda v: asked(om.LossBound(v)),
    "gain": lambda v: asked(om.constraints.GainLeakage(v)),
    "radius": lambda v: asked(om.constraints.GainLeakage(0.9, radius=v)),
    "maximal": lambda v: asked(om.constraints.MaximalLeakage(v)),
    "pointwise": lambda v: asked(om.constraints.PointwiseMaximalLeakage(v)),
    "capacity": lambda v: asked(om.constraints.AdditiveCapacity(v)),
    "information": lambda v: asked(om.constraints.MutualInformation(v)),
    "bias": lambda v: asked(om.constraints.Bias(v)),
    "distortion": lambda v: asked(om.DistortionPrivacy(v, KM)),
    "distributions": lambda v: asked(om.DistributionPrivacy(v, MOVED)),
    "scale": lambda v: asked(om.DistributionPrivacy(1, MOVED, divergence="kl", scale=[v])),
    "beliefs": lambda v: asked(om.constraints.Pufferfish(v, MOVED)),
    "renyi": lambda v: asked(om.constraints.RenyiPrivacy(2, v)),
    "order": lambda v: asked(om.constraints.RenyiPrivacy(v, 1)),
    "policy": lambda v: asked(om.constraints.PolicyGraph(v, [(0, 1)])),
    "edge": lambda v: asked(om.constraints.PolicyGraph(1, [(0, 1, v)])),
    "threshold": lambda v: asked(om.MetricPrivacy(1, HAMMING, threshold=v)),
    "near": lambda v: asked(om.DifferentialPrivacy(1, (KM, v))),
    "support": lambda v: asked(om.Support(distance=KM, radius=v)),
    "limit": lambda v: asked(om.Linear(np.eye(3), upper=v)),
    "weight": lambda v: asked(om.Linear([[v, 0, 0], [0, 0, 0], [0, 0, 0]], upper=1)),
    "log ratio": lambda v: asked(om.Ratios([[0, v, 1], [1, 0, 1], [1, 1, 0]])),
    "row": lambda v: asked(om.constraints.FixedRows({0: [v, "1/2", "1/4"]})),
}
BY_MATRIX: dict[str, Callable[[Any], om.Problem]] = {
    "loss": lambda v: asked(loss=v),
    "distance": lambda v: asked(om.MetricPrivacy(1, v)),
    "bounded loss": lambda v: asked(om.LossBound(2, v)),
    "gains": lambda v: asked(om.constraints.GainLeakage(3, v)),
    "within": lambda v: asked(om.constraints.GainLeakage(3, radius=0.01, within=v)),
    "mask": lambda v: asked(om.Support(v)),
    "error": lambda v: asked(om.DistortionPrivacy(0.1, v)),
    "least leakage": lambda v: asked(om.LossBound(1), objective=om.MinimizeLeakage(v)),
    "most distortion": lambda v: asked(om.LossBound(1), objective=om.MaximizeDistortion(v)),
}
BY_OTHER: dict[str, Callable[[Any], om.Problem]] = {
    "worst case": lambda v: asked(om.LossBound(2, worst_case=v)),
    "everywhere": lambda v: asked(om.MetricPrivacy(1, KM, everywhere=v)),
    "adversary": lambda v: asked(om.constraints.GainLeakage(1, prior=v)),
    "pairs": lambda v: asked(om.DifferentialPrivacy(1, v)),
    "moved": lambda v: asked(om.DistributionPrivacy(1, v)),
    "edges": lambda v: asked(om.constraints.PolicyGraph(1, v)),
    "keep": lambda v: asked(om.constraints.FixedRows({0: ["1/4", "1/2", "1/4"]}, keep=v)),
    "values": lambda v: asked(om.constraints.Bias(1, v)),
    "constraints": lambda v: asked(constraints=v),
    "outlines": lambda v: asked(
        prior=om.Prior.uniform(om.Domain("abc", [[0, 0], [1, 0], [2, 0]], outlines=v))
    ),
    "points": lambda v: asked(prior=om.Prior.uniform(om.Domain("abc", v))),
    "weights": lambda v: asked(prior=om.Prior(LINE, v)),
    "domain": lambda v: asked(prior=om.Prior.uniform(v)),
    "prior": lambda v: asked(prior=v),
    "observables": lambda v: asked(observables=v),
}


def cases() -> Iterator[tuple[str, Callable[[Any], om.Problem], Any]]:
    given = [
        (BY_TEXT, TEXTS), (BY_LABELS, LABELS), (BY_NUMBER, NUMBERS), (BY_MATRIX, MATRICES),
        (BY_OTHER, OTHERS),
    ]  # fmt: skip
    for makers, values in given:
        for name, make in makers.items():
            for value in values:
                yield f"{name} = {value!r:.60}", make, value


def written(problem: om.Problem) -> om.Problem:
    return decode_problem(json.loads(json.dumps(encode_problem(problem))))


def test_what_is_taken_is_read_again() -> None:
    """Labels that no file holds are refused when one is written, by name."""
    taken, wrong = 0, []
    for words, make, value in cases():
        try:
            problem = make(value)
        except om.ProblemError:
            continue
        except Exception as error:
            wrong.append(f"{words}: {type(error).__name__} {error}")
            continue
        assert repr(problem)
        try:
            again = written(problem)
        except om.ProblemError as error:
            if "cannot be written" not in str(error) and "not finite" not in str(error):
                wrong.append(f"{words}: {error}")
            continue
        taken += 1
        if again != problem or again.title != problem.title:
            wrong.append(f"{words}: is read as another problem")
    assert wrong == []
    assert taken > 300


@pytest.mark.parametrize("value", ["no", "false", 0, 1, None, [], 0.5, np.array([True, False])])
def test_only_truth_values_are_truth_values(value: object) -> None:
    with pytest.raises(om.ProblemError, match=r"worst_case: .* is not a truth value"):
        om.LossBound(2, worst_case=value)


def test_the_second_argument_of_a_loss_bound_is_its_loss() -> None:
    """As that of a distortion is its distance, and that of a leakage its gain."""
    assert om.LossBound(2, HAMMING) == om.LossBound(2, loss=HAMMING)
    with pytest.raises(om.ProblemError, match="loss"):
        om.LossBound(2, True)
    assert om.LossBound(2, worst_case=np.True_).worst_case is True


@pytest.mark.parametrize(
    "value", [True, np.True_, np.array([0.5]), np.array([True]), 1j, "x", None, float("nan")]
)
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(om.ProblemError, match="epsilon"):
        om.MetricPrivacy(value, KM)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (2**60 + 1, Fraction(2**60 + 1)),
        (Decimal("0.1"), Fraction(1, 10)),
        (np.int64(3), Fraction(3)),
        (np.float32(0.1), Fraction(float(np.float32(0.1)))),
        (np.array(0.5), Fraction(1, 2)),
    ],
)
def test_numbers_are_kept_as_they_are(value: object, kept: Fraction) -> None:
    assert om.MetricPrivacy(value, KM).epsilon.factor == kept


def test_titles_are_texts() -> None:
    for title in (None, 5, ["a"], b"a"):
        with pytest.raises(om.ProblemError, match=r"title: .* is not text"):
            asked(title=title)


FAMILY = [om.Prior(LINE, [1, 2, 1]), EVEN]
MESHES: dict[str, tuple[Callable[[Any], om.Mesh], list[Any]]] = {
    "unit": (lambda v: om.Mesh.grid((0, 0, 1, 1), 1, unit=v), TEXTS),
    "degree": (lambda v: om.Mesh.grid((0, 0, 1, 1), 1, degree=v), NUMBERS),
    "width": (lambda v: om.Mesh.grid((0, 0, 1, 1), v), [v for v in NUMBERS if v != 1e-320]),
    "coordinates": (lambda v: om.Mesh.grid((0, 0, 1, 1), 1, coordinates=v), [*TEXTS, "plane"]),
}


@pytest.mark.parametrize("name", MESHES)
def test_a_mesh_is_read_again(name: str) -> None:
    make, values = MESHES[name]
    taken = 0
    for value in values:
        try:
            mesh = make(value)
        except om.ProblemError:
            continue
        assert om.Mesh.from_dict(json.loads(json.dumps(mesh.to_dict()))) == mesh
        taken += 1
    assert taken


@pytest.mark.parametrize("names", [None, ["a", "b"], [1, 2], ["\ud800", "b"], [np.str_("x"), "y"]])
def test_names_of_a_family_are_read_again(names: Any, tmp_path: Path) -> None:
    made = om.mechanisms.coupling_design(FAMILY, EVEN, KM, names=names)
    made.save(tmp_path / "family.json")
    assert type(made).load(tmp_path / "family.json").names == made.names


@pytest.mark.parametrize("names", ["ab", 5, ["a", None], ["a", "a"], ["a"]])
def test_names_of_a_family_that_are_none(names: Any) -> None:
    with pytest.raises(om.ProblemError, match=r"names: .* are not 2 different names"):
        om.mechanisms.coupling_design(FAMILY, EVEN, KM, names=names)

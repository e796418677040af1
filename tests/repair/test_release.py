"""Release: designs pass the exact check on a wide range of problems, and cost next to nothing."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from conformance.problems import KINDS, Make, blind, points, prior
from optmech_audit import audit

import optmech as om

E, H = om.distances.euclidean(), om.distances.hamming()


def verify(problem: om.Problem, path: Path) -> om.Design:
    """Solve, save, and let both checkers read the file."""
    design = om.solve(problem)
    design.save(path)
    report = om.check(path)
    assert report.passed, report.faults
    audit(str(path))
    if design.exact is not None:
        assert abs(design.rounding_cost) <= 1e-9
        assert design.lower_bound <= design.loss < np.inf
    return design


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_every_kind_passes_both_checkers(make: Make, tmp_path: Path) -> None:
    for seed in (100, 101):
        verify(make(np.random.default_rng(seed)), tmp_path / "d.json")


def weights(shape: str, n: int, rng: np.random.Generator) -> np.ndarray:
    if shape == "uniform":
        return np.full(n, 1 / n)
    if shape == "skewed":
        return 0.5 ** np.arange(n) / (0.5 ** np.arange(n)).sum()
    out = np.zeros(n)
    kept = rng.choice(n, max(1, n // 3), replace=False)
    out[kept] = rng.dirichlet(np.ones(len(kept)))
    return out


@pytest.mark.parametrize("reach", [0.01, 0.3, 3, 14, 25, 40])
@pytest.mark.parametrize("shape", ["uniform", "skewed", "sparse"])
def test_sizes_priors_and_ratios(reach: float, shape: str, tmp_path: Path) -> None:
    """ε · diameter from 0.01 to 40, with duplicated points."""
    for n, loss in zip((2, 3, 7, 12, 7), (E, H, E, H, H), strict=True):
        rng = np.random.default_rng(n)
        xy = rng.uniform(0, 1, (n, 2))
        if n == 7:
            xy[3] = xy[0]
        domain = om.Domain(range(n), xy)
        epsilon = reach / E(domain, domain).max()
        p = om.Prior(domain, weights(shape, n, rng))
        verify(om.Problem(p, loss, constraints=[om.MetricPrivacy(epsilon, E)]), tmp_path / "d.json")


@pytest.mark.parametrize("kind", ["metric", "distortion"])
def test_sixty_four_cells(kind: str, tmp_path: Path) -> None:
    grid = om.Grid(8, 8)
    p = prior(np.random.default_rng(0), grid)
    constraints: list[object] = [om.MetricPrivacy(1.0, E)]
    if kind == "distortion":
        constraints.append(om.DistortionPrivacy(0.6 * blind(p), E))
    verify(om.Problem(p, E, constraints=constraints), tmp_path / "d.json")


class TestAtTheEdge:
    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("factor", [1.0, 1 + 1e-15, 1 - 1e-15, 1 - 1e-12])
    def test_distortion_at_its_maximum(self, seed: int, factor: float, tmp_path: Path) -> None:
        """A d_m that rounding put above d_max means d_max, and the design says so."""
        rng = np.random.default_rng(seed)
        p = prior(rng, points(rng, 5))
        problem = om.Problem(p, E, constraints=[om.DistortionPrivacy(blind(p) * factor, E)])
        design = verify(problem, tmp_path / "d.json")
        if factor > 1:
            assert "d_max itself is meant" in "".join(design.notes)

    def test_distortion_above_its_maximum_is_infeasible(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        p = prior(rng, points(rng, 5))
        problem = om.Problem(p, E, constraints=[om.DistortionPrivacy(blind(p) * (1 + 1e-11), E)])
        assert verify(problem, tmp_path / "d.json").status == "infeasible"

    def test_loss_bound_at_its_minimum(self, tmp_path: Path) -> None:
        p = om.Prior.uniform(om.Domain.range(3))
        loss = np.array([[0.1, 1, 2], [1, 0.1, 2], [0.7, 2, 0.1]])
        for maximum in (0.1, 0.1 * (1 - 1e-15)):
            problem = om.Problem(p, loss, constraints=[om.LossBound(maximum)])
            design = verify(problem, tmp_path / "d.json")
            assert design.matrix == pytest.approx(np.eye(3))

    def test_delta_of_almost_nothing(self, tmp_path: Path) -> None:
        p = om.Prior.uniform(om.Domain.range(3))
        for delta in (1e-12, 1e-30, 1e-300):
            problem = om.Problem(p, H, constraints=[om.DifferentialPrivacy(1.0, delta=delta)])
            verify(problem, tmp_path / "d.json")

    def test_loss_bound_and_distortion_leave_a_sliver(self, tmp_path: Path) -> None:
        """No constant mechanism keeps the loss bound: what is mixed in must come from inside."""
        rng = np.random.default_rng(1)
        p = prior(rng, points(rng, 6))
        bound = om.LossBound(0.5 * blind(p))
        best = om.solve(
            om.Problem(
                p,
                E,
                objective=om.MaximizeDistortion(E),
                constraints=[bound, om.MetricPrivacy(6, E)],
            )
        ).objective
        sliver = om.DistortionPrivacy(best * (1 - 1e-7), E)
        verify(
            om.Problem(p, H, constraints=[bound, om.MetricPrivacy(6, E), sliver]),
            tmp_path / "d.json",
        )

    @pytest.mark.parametrize("epsilon", [0, "ln 1", 1e-17, 1e-14, 1e-6, 1e-3])
    def test_distributions_with_hardly_any_ratio(self, epsilon: float, tmp_path: Path) -> None:
        rng = np.random.default_rng(3)
        p = prior(rng, points(rng, 5))
        pair = tuple(rng.dirichlet(np.ones(5), 2))
        problem = om.Problem(p, E, constraints=[om.DistributionPrivacy(epsilon, [pair])])
        assert verify(problem, tmp_path / "d.json").gap <= 1e-6

    def test_equal_distributions_beside_other_constraints(self, tmp_path: Path) -> None:
        """Three distributions that must come out the same, and metric privacy."""
        rng = np.random.default_rng(3)
        p = prior(rng, points(rng, 6))
        a, b, c = rng.dirichlet(np.ones(6), 3)
        problem = om.Problem(
            p,
            E,
            constraints=[om.MetricPrivacy(4, E), om.DistributionPrivacy(0, [(a, b), (b, c)])],
        )
        design = verify(problem, tmp_path / "d.json")
        assert design.gap <= 1e-4
        pushed = [weights @ design.matrix for weights in (a, b, c)]
        assert pushed[0] == pytest.approx(pushed[1], abs=1e-15)
        assert pushed[1] == pytest.approx(pushed[2], abs=1e-15)


def test_figures_are_rounded_to_the_safe_side() -> None:
    from fractions import Fraction

    p = om.Prior(om.Domain.range(3), [0.2, 0.3, 0.5])
    design = om.solve(om.Problem(p, E, constraints=[om.MetricPrivacy(0.8, E)]))
    exact = sum(
        Fraction(w) * Fraction(abs(s - o)) * Fraction(v, 2**design.exact.bits)
        for s, (w, row) in enumerate(zip(p.weights.tolist(), design.exact.rows, strict=True))
        for o, v in enumerate(row)
    )
    assert Fraction(np.nextafter(design.loss, 0)) < exact <= Fraction(design.loss)
    assert design.lower_bound < design.loss


SAME: dict[str, om.Constraint] = {
    f"{name}, ε = {epsilon}": make(epsilon)
    for epsilon in ("0", "1e-25", "1e-12", "1e-9", "1/2")
    for name, make in {
        "a population": lambda e: om.DistributionPrivacy(e, [([0.5, 0.5], [0.5, 0.5])]),
        "a place": lambda e: om.DistributionPrivacy(e, [([1, 0], [1, 0])]),
        "two of them": lambda e: om.DistributionPrivacy(
            e, [([0.25, 0.75], [0.25, 0.75]), ([0, 1], [0, 1])]
        ),
        "scaled": lambda e: om.DistributionPrivacy(e, [([0.1, 0.9], [1 / 10, 9 / 10])]),
        **{
            name: lambda e, name=name: om.DistributionPrivacy(
                e, [([0.5, 0.5], [0.5, 0.5])], divergence=name
            )
            for name in ("kl", "tv", "chi2", "hellinger", "renyi:2")
        },
        "with δ": lambda e: om.DistributionPrivacy(e, [([0.5, 0.5], [0.5, 0.5])], delta=1e-6),
    }.items()
}


@functools.cache
def limited(q: str, worst: bool, constraint: om.Constraint | None, folder: Path) -> om.Design:
    """A loss bound, alone or beside another constraint."""
    two = om.Prior.uniform(om.Domain("ab"))
    loss, own = np.array([[0.0, 1, 2], [1, 0, 2]]), np.array([[1.0, 0, 2], [0, 1, 2]])
    bound = om.LossBound(q, own, worst_case=worst)
    both = [bound] if constraint is None else [constraint, bound]
    return verify(om.Problem(two, loss, om.Domain("xyz"), constraints=both), folder / "d.json")


@pytest.mark.parametrize("constraint", SAME.values(), ids=SAME)
@pytest.mark.parametrize(("q", "worst"), [("0.5", True), ("0", False)])
def test_equal_distributions_ask_for_nothing(
    constraint: om.Constraint,
    worst: bool,
    q: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The optimum is that without the constraint, or there is none in both."""
    designs = [
        limited(q, worst, None, tmp_path_factory.getbasetemp()),
        limited(q, worst, constraint, tmp_path),
    ]
    assert designs[0].status == designs[1].status
    if designs[0].exact is not None:
        assert designs[1].loss == pytest.approx(designs[0].loss, abs=1e-9)

"""Promises that hold in one direction only are not stated for both."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest

import optmech as om
from optmech.reading.sealed import seal

guarantees = om.guarantees


def test_renyi_privacy_with_a_distance_that_is_longer_one_way(tmp_path: Path) -> None:
    apart = np.array([[0, 2.0], [0.5, 0]])
    prior = om.Prior.uniform(om.Domain.range(2))
    for table in (apart, apart.T):
        limit = om.constraints.RenyiPrivacy(1, 0.2, om.distances.matrix(table))
        problem = om.Problem(prior, om.distances.hamming(), constraints=[limit])
        design = om.solve(problem)
        p = design.mechanism.matrix
        for s, t in ((0, 1), (1, 0)):
            spent = float((p[s] * np.log(p[s] / p[t])).sum())
            assert spent <= 0.2 * table[s, t] + 1e-12
        path = tmp_path / "design.json"
        design.save(path)
        assert audit.audit(str(path))
        # a file that states half the distance is not kept by the same mechanism
        body = json.loads(path.read_text())
        stated = body["problem"]["constraints"][0]["distance"]
        stated["secrets"][0][1] = stated["secrets"][1][0] = 2.0
        stated["secrets"][0 if table is apart else 1][1 if table is apart else 0] = 0.25
        body.pop("digest")
        path.write_bytes(seal(json.dumps(body).encode()))
        with pytest.raises(audit.Fault, match="too large"):
            audit.audit(str(path))


def test_unequal_distances_from_estimates_hold_in_their_order() -> None:
    both = guarantees.distributions(1, 0, "the pair")
    assert guarantees.estimated(both, 0.1, 0).pairs.endswith("the pair, in this order")
    assert not guarantees.estimated(both, 0.1, 0.1).pairs.endswith("order")
    assert guarantees.misestimated_inputs(both, (0, 0.1), (0, 0)).pairs.endswith("in this order")


def test_sides_of_coupled_pairs_are_not_mixed() -> None:
    near = guarantees.lift(guarantees.points(0.5, 0, "neighbours"))
    with pytest.raises(om.ProblemError, match="couple"):
        guarantees.mixtures(near)
    assert guarantees.mixtures(guarantees.lift(guarantees.points(0.5))).epsilon == 0.5


@pytest.mark.parametrize("name", ["max", "kl"])
def test_a_distance_that_is_longer_one_way_says_nothing_both_ways(name: str) -> None:
    """Rows (0.01, 0.99) and (0.6, 0.4) keep ratios of e and e^5, and 60 is more than e."""
    premise = guarantees.points(1, per="d", divergence=name)
    lift = guarantees.lift_metric_pair
    with pytest.raises(om.ProblemError, match="symmetric"):
        lift(premise, [1, 0], [0, 1], np.array([[0, 1.0], [5.0, 0]]))
    # rows and columns are different places here
    assert lift(premise, [1, 0], [0, 1], np.array([[3, 1.0], [5.0, 2]])).epsilon >= 1


def test_a_ball_of_priors_has_its_centre_in_it(tmp_path: Path) -> None:
    prior = om.Prior.uniform(om.Domain.range(2))
    for stay in (0.0, 1.0):
        table = om.distances.matrix(np.array([[stay, 1.0], [1.0, stay]]))
        limit = om.constraints.GainLeakage("7/10", radius="1/10", within=table)
        if stay:
            with pytest.raises(om.ProblemError, match="within"):
                om.Problem(prior, om.distances.hamming(), constraints=[limit])
            continue
        path = tmp_path / "design.json"
        om.solve(om.Problem(prior, om.distances.hamming(), constraints=[limit])).save(path)
        body = json.loads(path.read_text())
        stated = body["problem"]["constraints"][0]["within"]["secrets"]
        stated[0][0] = stated[1][1] = 1.0
        body.pop("digest")
        path.write_bytes(seal(json.dumps(body).encode()))
        with pytest.raises(audit.Fault, match="itself"):
            audit.audit(str(path))


def test_small_informations_are_measured_to_their_digits() -> None:
    prior = om.Prior.uniform(om.Domain.range(3))
    limit = om.constraints.MutualInformation(1e-10)
    problem = om.Problem(prior, om.distances.euclidean(), constraints=[limit])
    design = om.solve(problem)
    exact = design.mechanism.exact
    assert exact is not None
    with localcontext() as context:
        context.prec = 60
        rows = [[Decimal(v) / 2**exact.bits for v in row] for row in exact.rows]
        mean = [sum(column) / 3 for column in zip(*rows, strict=True)]
        terms = [p * (p / q).ln() for row in rows for p, q in zip(row, mean, strict=True) if p]
        told = float(sum(terms) / 3)
    assert told <= 1e-10
    kept = limit.measured(design.mechanism, problem.space)
    assert kept.measured == pytest.approx(told, rel=1e-9, abs=0)

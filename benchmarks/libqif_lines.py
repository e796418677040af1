"""What ``libqif.py`` compares: a function of libqif, ours, and both calls; and why the others of its
functions are not there.

In libqif's calls ``q`` is qif, C and D are two channels, pi is a prior, G a gain, P a predicate, d is
|i - j| and g the gain as a function; in ours ``c`` is the case. All but d, g and P are fractions
where rationals are compared.
"""

MEASURES = """
measure.bayes_vuln.prior | prior_vulnerability | q.measure.bayes_vuln.prior(pi) | leak.prior_vulnerability(c.prior)
measure.bayes_vuln.posterior | posterior_vulnerability | q.measure.bayes_vuln.posterior(pi, C) | leak.posterior_vulnerability(c.m, c.prior)
measure.bayes_vuln.add_leakage | additive_leakage | q.measure.bayes_vuln.add_leakage(pi, C) | leak.additive_leakage(c.m, c.prior)
measure.bayes_vuln.mult_leakage | multiplicative_leakage | q.measure.bayes_vuln.mult_leakage(pi, C) | leak.multiplicative_leakage(c.m, c.prior)
measure.bayes_vuln.min_entropy_leakage ~ | log2 of it | q.measure.bayes_vuln.min_entropy_leakage(pi, C) | math.log2(leak.multiplicative_leakage(c.m, c.prior))
measure.bayes_vuln.mult_capacity | multiplicative_capacity, maximal_leakage | q.measure.bayes_vuln.mult_capacity(C) | leak.multiplicative_capacity(c.m)
measure.bayes_vuln.strategy | best_guesses, by what they earn | earned_by(q.measure.bayes_vuln.strategy(pi, C), np.eye(len(C), dtype=int), pi, C) | leak.posterior_vulnerability(c.m, c.prior)
measure.bayes_risk.strategy | best_guesses, by what they earn | earned_by(q.measure.bayes_risk.strategy(pi, C), np.eye(len(C), dtype=int), pi, C) | leak.posterior_vulnerability(c.m, c.prior)
measure.bayes_risk.prior | 1 − prior_vulnerability | q.measure.bayes_risk.prior(pi) | c.risk(1 - np.eye(c.n), blind=True)
measure.bayes_risk.posterior | 1 − posterior_vulnerability | q.measure.bayes_risk.posterior(pi, C) | c.risk(1 - np.eye(c.n))
measure.bayes_risk.add_leakage | additive_leakage | q.measure.bayes_risk.add_leakage(pi, C) | leak.additive_leakage(c.m, c.prior)
measure.bayes_risk.mult_leakage | their quotient | q.measure.bayes_risk.mult_leakage(pi, C) | over(c.risk(1 - np.eye(c.n), blind=True), c.risk(1 - np.eye(c.n)))
measure.bayes_risk.mult_capacity | bayes_risk_capacity | q.measure.bayes_risk.mult_capacity(C)[0] | leak.bayes_risk_capacity(c.m).value
measure.g_vuln.prior | prior_vulnerability(prior, gain) | q.measure.g_vuln.prior(G, pi) | leak.prior_vulnerability(c.prior, c.gain)
measure.g_vuln.posterior | posterior_vulnerability(m, prior, gain) | q.measure.g_vuln.posterior(G, pi, C) | leak.posterior_vulnerability(c.m, c.prior, c.gain)
measure.g_vuln.add_leakage | additive_leakage | q.measure.g_vuln.add_leakage(G, pi, C) | leak.additive_leakage(c.m, c.prior, c.gain)
measure.g_vuln.mult_leakage | multiplicative_leakage | q.measure.g_vuln.mult_leakage(G, pi, C) | leak.multiplicative_leakage(c.m, c.prior, c.gain)
measure.g_vuln.strategy | best_guesses, by what they earn | earned_by(q.measure.g_vuln.strategy(G, pi, C), G, pi, C) | leak.posterior_vulnerability(c.m, c.prior, c.gain)
measure.g_vuln.add_capacity | additive_capacity(m, prior) | q.measure.g_vuln.add_capacity(pi, C) | leak.additive_capacity(c.m, c.prior)
measure.g_vuln.add_capacity, one_spanning_g | additive_capacity(m, prior, spanning="gains") | q.measure.g_vuln.add_capacity(pi, C, True) | leak.additive_capacity(c.m, c.prior, spanning="gains")
measure.l_risk.prior | −prior_vulnerability(prior, −loss) | q.measure.l_risk.prior(G, pi) | c.risk(c.gain, blind=True)
measure.l_risk.posterior | −posterior_vulnerability(m, prior, −loss) | q.measure.l_risk.posterior(G, pi, C) | c.risk(c.gain)
measure.l_risk.add_leakage | additive_leakage(m, prior, −loss) | q.measure.l_risk.add_leakage(G, pi, C) | leak.additive_leakage(c.m, c.prior, -np.array(c.gain))
measure.l_risk.mult_leakage | their quotient | q.measure.l_risk.mult_leakage(G, pi, C) | over(c.risk(c.gain, blind=True), c.risk(c.gain))
measure.l_risk.strategy | best_guesses, by what they earn | earned_by(q.measure.l_risk.strategy(G, pi, C), -G, pi, C) | leak.posterior_vulnerability(c.m, c.prior, -np.array(c.gain))
measure.l_risk.add_capacity | additive_capacity(m, prior) | q.measure.l_risk.add_capacity(pi, C) | leak.additive_capacity(c.m, c.prior)
measure.g_vuln.g_to_bayes | posterior_vulnerability(m, prior, gain) | by_bayes(q, G, pi, C) | leak.posterior_vulnerability(c.m, c.prior, c.gain)
measure.g_vuln.g_from_posterior | posterior_vulnerability(m, uniform, gain) | q.measure.g_vuln.prior(q.measure.g_vuln.g_from_posterior(G[:2], C), even(C)) | leak.posterior_vulnerability(c.m, om.Prior.uniform(c.m.secrets), c.gain[:2])
measure.g_vuln.g_add | the sum of two prior_vulnerability | q.measure.g_vuln.prior(q.measure.g_vuln.g_add(G, G[::-1].copy()), pi) | leak.prior_vulnerability(c.prior, c.gain).factor + leak.prior_vulnerability(c.prior, c.gain[::-1]).factor
measure.pred_vuln.binary_channel | posterior_vulnerability(m, prior, predicate(…)), by its two rows | two_rows(q, P, pi, C) | leak.posterior_vulnerability(c.m, c.prior, c.predicate)
measure.pred_vuln.prior | prior_vulnerability(prior, predicate(…)) | q.measure.pred_vuln.prior(P, pi) | leak.prior_vulnerability(c.prior, c.predicate)
measure.pred_vuln.posterior | posterior_vulnerability | q.measure.pred_vuln.posterior(P, pi, C) | leak.posterior_vulnerability(c.m, c.prior, c.predicate)
measure.pred_vuln.add_leakage | additive_leakage | q.measure.pred_vuln.add_leakage(P, pi, C) | leak.additive_leakage(c.m, c.prior, c.predicate)
measure.pred_vuln.mult_leakage | multiplicative_leakage | q.measure.pred_vuln.mult_leakage(P, pi, C) | leak.multiplicative_leakage(c.m, c.prior, c.predicate)
measure.pred_vuln.mult_capacity | predicate_capacity | q.measure.pred_vuln.mult_capacity(P, C)[0] | leak.predicate_capacity(c.m, c.mask).value
measure.pred_risk.prior | −prior_vulnerability(prior, −predicate(…)) | q.measure.pred_risk.prior(P, pi) | c.risk(c.predicate, blind=True)
measure.pred_risk.posterior | −posterior_vulnerability | q.measure.pred_risk.posterior(P, pi, C) | c.risk(c.predicate)
measure.pred_risk.add_leakage | additive_leakage | q.measure.pred_risk.add_leakage(P, pi, C) | leak.additive_leakage(c.m, c.prior, c.predicate)
measure.pred_risk.mult_leakage | their quotient | q.measure.pred_risk.mult_leakage(P, pi, C) | over(c.risk(c.predicate, blind=True), c.risk(c.predicate))
measure.pred_risk.mult_capacity | predicate_capacity(risk=True) | q.measure.pred_risk.mult_capacity(P, C)[0] | leak.predicate_capacity(c.m, c.mask, risk=True).value
measure.guessing.prior | guessing_entropy(prior) | q.measure.guessing.prior(pi) | leak.guessing_entropy(c.prior)
measure.guessing.posterior | guessing_entropy(prior, m) | q.measure.guessing.posterior(pi, C) | leak.guessing_entropy(c.prior, c.m)
measure.guessing.add_leakage | their difference | q.measure.guessing.add_leakage(pi, C) | leak.guessing_entropy(c.prior).factor - leak.guessing_entropy(c.prior, c.m).factor
measure.guessing.mult_leakage | their quotient | q.measure.guessing.mult_leakage(pi, C) | over(leak.guessing_entropy(c.prior), leak.guessing_entropy(c.prior, c.m))
measure.shannon.prior ~ | Prior.entropy | q.measure.shannon.prior(pi) | c.prior.entropy
measure.shannon.posterior ~ | measures.conditional_entropy | q.measure.shannon.posterior(pi, C) | om.measures.conditional_entropy(c.m, c.prior)
measure.shannon.add_leakage ~ | shannon_leakage (nats) | q.measure.shannon.add_leakage(pi, C) * math.log(2) | leak.shannon_leakage(c.m, c.prior).lower
measure.shannon.mult_leakage ~ | quotient of entropies | q.measure.shannon.mult_leakage(pi, C) | over(c.prior.entropy, om.measures.conditional_entropy(c.m, c.prior))
measure.shannon.add_capacity ~1.1e-7 | shannon_capacity (nats; theirs to 1e-7) | q.measure.shannon.add_capacity(C)[0] * math.log(2) | leak.shannon_capacity(c.m).lower
measure.d_privacy.smallest_epsilon ~ | measures.epsilon(m, distance) | q.measure.d_privacy.smallest_epsilon(C, line) | om.measures.epsilon(c.m, steps(c.n))
measure.d_privacy.is_private ~ | measures.epsilon(m, distance) ≤ 1 | bool(q.measure.d_privacy.is_private(C, line)) | om.measures.epsilon(c.m, steps(c.n)) <= 1
channel.posteriors ~ | measures.posterior, of possible reports | np.asarray(q.channel.posteriors(C, pi)).T[pi @ C > 0] | om.measures.posterior(c.m, c.prior)[c.m.push(c.prior.weights) > 0]
channel.sum_column_min | 1 − additive_capacity(m) | q.channel.sum_column_min(C) | 1 - leak.additive_capacity(c.m).factor
channel.hyper | hyper, its outer distribution | positive(q.channel.hyper(C, pi)[0]) | positive(np.array(leak.hyper(c.m, c.prior).outer.fractions))
channel.reduced | reduced, its number of observables | int(np.asarray(q.channel.reduced(C), dtype=float).any(axis=0).sum()) | len(leak.reduced(c.m).observables)
channel.compose.repeated_independent ~ | repeated(m, 2).vulnerability(prior) | q.measure.bayes_vuln.posterior(pi, q.channel.compose.repeated_independent(C, 2)) | leak.repeated(c.m, 2).vulnerability(c.prior).lower
channel.compose.parallel ~ | repeated(m, 2).vulnerability(prior), of a channel with itself | q.measure.bayes_vuln.posterior(pi, q.channel.compose.parallel(C, C)) | leak.repeated(c.m, 2).vulnerability(c.prior).lower
channel.posterior ~ | measures.posterior, of one possible report | q.channel.posterior(C, pi, int((pi @ C).argmax())) | om.measures.posterior(c.m, c.prior)[int(c.m.push(c.prior.weights).argmax())]
channel.iterative_bayesian_update ~1e-3 | estimate.prior, its likelihood per report | updated(q, pi, C) | estimated(c)
channel.factorize | refines(a, b).remap, whether there is one | q.channel.factorize(D, C).size > 0 | leak.refines(c.m, c.second).holds
refinement.refined_by | refines(a, b) | bool(q.refinement.refined_by(C, D)) | leak.refines(c.m, c.second).holds
refinement.refined_by_witness | refines(a, b), with witness | witnessed(q, C, D) | leak.refines(c.m, c.second).holds
refinement.max_refined_by | refines(a, b, "max") | bool(q.refinement.max_refined_by(C, D)) | leak.refines(c.m, c.second, "max").holds
refinement.priv_refined_by ~ | refines(a, b, "privacy") | bool(q.refinement.priv_refined_by(C, D)) | leak.refines(c.m, c.second, "privacy").holds
refinement.add_metric <> | refinement_distance(a, b, prior) | q.refinement.add_metric(pi, C, D)[0] | apart(c)
metric.optimize.l1_diameter | 2 (1 − 1 / bayes_risk_capacity) | q.metric.optimize.l1_diameter(C)[0] | 2 * (1 - over(1, leak.bayes_risk_capacity(c.m).value)) if leak.bayes_risk_capacity(c.m).value < math.inf else Fraction(2)
metric.total_variation ~ | divergences.total_variation | q.metric.total_variation()(C[0], C[1]) | om.divergences.total_variation(c.m.matrix[0], c.m.matrix[1])
metric.mult_total_variation ~ | measures.epsilon of the two rows | q.metric.mult_total_variation()(C[0], C[1]) | om.measures.epsilon(c.m, pairs=[[0, 1]])
metric.l1 ~ | 2 divergences.total_variation | q.metric.l1()(C[0], C[1]) | 2 * om.divergences.total_variation(c.m.matrix[0], c.m.matrix[1])
metric.convex_separation_quasi ~ | 1 − exp(−divergences.max_divergence) | q.metric.convex_separation_quasi()(C[0], C[1]) | 1 - math.exp(-om.divergences.max_divergence(c.m.matrix[0], c.m.matrix[1]))
metric.convex_separation ~ | the larger of both ways | q.metric.convex_separation()(C[0], C[1]) | 1 - math.exp(-max(om.divergences.max_divergence(c.m.matrix[i], c.m.matrix[1 - i]) for i in (0, 1)))
metric.mult_kantorovich ~ | guarantees.carry_over, the larger of both ways | q.metric.mult_kantorovich(line)(C[0], C[1]) | max(om.guarantees.carry_over(steps(len(c.rows[0])), c.m.matrix[i], c.m.matrix[1 - i]).upper for i in (0, 1))
metric.kantorovich, default ~1e-5 | transport.wasserstein | q.metric.kantorovich(line)(C[0], C[1]) | om.transport.wasserstein(c.m.matrix[0], c.m.matrix[1], steps(len(c.rows[0]))).value
metric.kantorovich, "lp" ~ | transport.wasserstein | q.metric.kantorovich(line, "lp")(C[0], C[1]) | om.transport.wasserstein(c.m.matrix[0], c.m.matrix[1], steps(len(c.rows[0]))).value
utility.expected_distance ~ | measures.expected_loss | q.utility.expected_distance(line, pi, C) | om.measures.expected_loss(c.m, c.prior, steps(c.n, len(c.rows[0])))
"""

PROGRAMS = """
mechanism.d_privacy.min_loss_given_d ~ | solve, MetricPrivacy | lost(q.mechanism.d_privacy.min_loss_given_d(pi, len(pi), line, line), pi) | least(c, om.MetricPrivacy(1, steps(c.n))).value
mechanism.d_privacy.min_loss_given_d, d_priv_ch ~ | the same: a spanner is found | lost(q.mechanism.d_privacy.min_loss_given_d(pi, len(pi), line, line, d_priv_ch=lambda i, j: abs(int(i) - int(j)) != 1), pi) | least(c, om.MetricPrivacy(1, steps(c.n))).value
mechanism.d_privacy.min_loss_given_d, n_cols ~ | solve, MetricPrivacy, fewer observables | lost(q.mechanism.d_privacy.min_loss_given_d(pi, fewer(pi), line, line), pi) | least(c, om.MetricPrivacy(1, steps(c.n)), seen=fewer(c.weights)).value
mechanism.g_vuln.min_loss_given_max_vuln <> | solve, GainLeakage(v, gain) | lost(q.mechanism.g_vuln.min_loss_given_max_vuln(pi, len(pi), len(G), middle(G, pi), g, d), pi) | least(c, om.constraints.GainLeakage(c.middle, c.gain))
mechanism.g_vuln.min_loss_given_max_vuln, n_cols <> | the same, fewer observables | lost(q.mechanism.g_vuln.min_loss_given_max_vuln(pi, fewer(pi), len(G), middle(G, pi), g, d), pi) | least(c, om.constraints.GainLeakage(c.middle, c.gain), seen=fewer(c.weights))
mechanism.g_vuln.min_loss_given_max_vuln, hard_max_loss <> | the same, Support | lost(q.mechanism.g_vuln.min_loss_given_max_vuln(pi, len(pi), len(G), middle(G, pi), g, d, far(pi)), pi) | least(c, om.constraints.GainLeakage(c.middle, c.gain), om.Support(steps(c.n) <= far(c.weights)))
mechanism.g_vuln.min_vuln_given_max_loss <> | solve, MinimizeLeakage(gain), LossBound | q.measure.g_vuln.posterior(G, pi, q.mechanism.g_vuln.min_vuln_given_max_loss(pi, len(pi), len(G), bound(pi), g, d)) | least(c, om.LossBound(c.bound), objective=om.MinimizeLeakage(c.gain))
mechanism.bayes_vuln.min_loss_given_max_vuln <> | solve, GainLeakage(v) | lost(q.mechanism.bayes_vuln.min_loss_given_max_vuln(pi, len(pi), (1 + max(pi)) / 2, d), pi) | least(c, om.constraints.GainLeakage((1 + c.likeliest) / 2))
mechanism.bayes_vuln.min_vuln_given_max_loss <> | solve, MinimizeLeakage, LossBound | q.measure.bayes_vuln.posterior(pi, q.mechanism.bayes_vuln.min_vuln_given_max_loss(pi, len(pi), bound(pi), d)) | least(c, om.LossBound(c.bound), objective=om.MinimizeLeakage())
mechanism.bayes_risk.min_loss_given_min_risk <> | solve, DistortionPrivacy(r, hamming) | lost(q.mechanism.bayes_risk.min_loss_given_min_risk(pi, len(pi), (1 - max(pi)) / 2, d), pi) | least(c, om.DistortionPrivacy((1 - c.likeliest) / 2, om.distances.hamming()))
mechanism.bayes_risk.max_risk_given_max_loss <> | solve, MaximizeDistortion(hamming), LossBound | q.measure.bayes_risk.posterior(pi, q.mechanism.bayes_risk.max_risk_given_max_loss(pi, len(pi), bound(pi), d)) | least(c, om.LossBound(c.bound), objective=om.MaximizeDistortion(om.distances.hamming()))
mechanism.l_risk.min_loss_given_min_risk <> | solve, DistortionPrivacy(r, distance) | lost(q.mechanism.l_risk.min_loss_given_min_risk(pi, len(pi), len(pi), bound(pi), d, d), pi) | least(c, om.DistortionPrivacy(c.bound, steps(c.n)))
mechanism.l_risk.max_risk_given_max_loss <> | solve, MaximizeDistortion(distance), LossBound | q.measure.l_risk.posterior(np.array([[d(i, j) for j in range(len(pi))] for i in range(len(pi))]), pi, q.mechanism.l_risk.max_risk_given_max_loss(pi, len(pi), len(pi), bound(pi), d, d)) | least(c, om.LossBound(c.bound), objective=om.MaximizeDistortion(steps(c.n)))
mechanism.bayes_vuln.min_vuln_for_row | closed form: a row in proportion to max_s π(s) p(o∣s) | with_row(q.mechanism.bayes_vuln.min_vuln_for_row, pi, C) | max(Fraction(3, 4) * leak.posterior_vulnerability(c.m, c.prior).factor, Fraction(1, 4))
mechanism.bayes_risk.max_risk_for_row | the same | with_row(q.mechanism.bayes_risk.max_risk_for_row, pi, C) | max(Fraction(3, 4) * leak.posterior_vulnerability(c.m, c.prior).factor, Fraction(1, 4))
mechanism.shannon.max_entropy_given_same_loss ~1e-5 | solve, MutualInformation(its rate) | entropic(q, pi)[0] | least(c, om.constraints.MutualInformation(max(1e-6, entropic(q, c.prior.weights)[1]))).value
mechanism.d_privacy.geometric ~ | mechanisms.geometric | q.mechanism.d_privacy.geometric(len(pi), 0.7) | om.mechanisms.geometric(om.Domain.range(c.n), 0.7).matrix
mechanism.d_privacy.exponential ~ | mechanisms.exponential | q.mechanism.d_privacy.exponential(len(pi), line) | om.mechanisms.exponential(om.Domain.range(c.n), 1).matrix
mechanism.d_privacy.randomized_response ~ | mechanisms.randomized_response | q.mechanism.d_privacy.randomized_response(len(pi), 1.3) | om.mechanisms.randomized_response(om.Domain.range(c.n), 1.3).matrix
mechanism.d_privacy.tight_constraints ~ | mechanisms.tight_constraints | q.mechanism.d_privacy.tight_constraints(len(pi), line) | om.mechanisms.tight_constraints(om.Domain.range(c.n), 1).matrix
mechanism.geo_ind.planar_geometric_grid, square ~1e-6 | mechanisms.planar_geometric | q.mechanism.geo_ind.planar_geometric_grid(3, 3, 1.0, 0.5 + max(pi)) | om.mechanisms.planar_geometric(om.Grid(3, 3), 0.5 + max(c.prior.weights)).matrix
mechanism.geo_ind.planar_geometric_grid, 3 × 5 ~1e-6 | mechanisms.planar_geometric | q.mechanism.geo_ind.planar_geometric_grid(5, 3, 1.0, 0.5 + max(pi)) | om.mechanisms.planar_geometric(om.Grid(3, 5), 0.5 + max(c.prior.weights)).matrix
mechanism.geo_ind.planar_laplace_grid, square ~1e-4 | mechanisms.planar_laplace | q.mechanism.geo_ind.planar_laplace_grid(3, 3, 1.0, 0.5 + max(pi)) | om.mechanisms.planar_laplace(om.Grid(3, 3), 0.5 + max(c.prior.weights)).matrix
"""

ELSEWHERE = {
    "measure.bayes_vuln.mult_capacity_bound_cap": "a bound for k reports; `repeated(m, k)` has the numbers themselves",
    "measure.d_privacy.prior": "the same ratios of a prior; `measures.epsilon` has those of rows",
    "mechanism.d_privacy.exact_distance": "an example with ε equal to d for every pair, not a best mechanism",
    "refinement.add_metric_bound": "a bound of `add_metric`, which has its row",
    "channel.left_factorize": "pre-processing, A = XB; not an order of leakage. `max_refined_by`, which uses it, has its row",
    "metric.optimize.simplex_l1_min_enclosing_ball": "geometry of rows: no measure or order is made of it",
    "metric.optimize.l2_min_enclosing_ball": "geometry of rows",
    "metric.optimize.simplex_project": "geometry: the nearest distribution",
    "mechanism.geo_ind.planar_laplace_sample": "random draws; ours are `Mechanism.sample`, exact for designs",
    "mechanism.geo_ind.planar_geometric_sample": "random draws",
    "channel.sample": "random draws",
    "probab.sample": "random draws",
    "channel.randu": "random examples",
    "probab.randu": "random examples",
    "channel.identity": "a matrix",
    "channel.no_interference": "a matrix of ones",
    "channel.deterministic": "a matrix of zeros and ones",
    "channel.normalize": "rows over their sums: `Prior` and `Mechanism.of` do so",
    "channel.is_proper": "checks: `Mechanism` refuses what is none",
    "channel.assert_proper": "checks",
    "probab.is_proper": "checks: `Prior` refuses what is none",
    "probab.assert_proper": "checks",
    "probab.is_uniform": "checks",
    "probab.normalize": "`Prior` divides by the sum",
    "probab.uniform": "`Prior.uniform`",
    "probab.point": "weights with a single one",
    "probab.from_grid": "a reshaped array; `Grid` knows its rows",
    "probab.to_grid": "a reshaped array",
    "measure.g_vuln.G_id": "gains and losses that are written down: identity, predicate, complement",
    "measure.g_vuln.g_id": "the same",
    "measure.l_risk.L_zero_one": "the same",
    "measure.l_risk.l_zero_one": "the same",
    "measure.l_risk.loss_to_gain": "the same",
    "measure.pred_vuln.G_pred": "the same: `om.leakage.predicate`",
    "measure.pred_risk.L_pred": "the same",
    "measure.pred_risk.binary_channel": "that of `pred_vuln`, which has its row",
    "mechanism.d_privacy.distance_matrix": "e^-d, elementwise",
    "metric.discrete": "`distances.hamming`",
    "metric.euclidean": "`distances.euclidean`",
    "metric.manhattan": "`distances.manhattan`",
    "metric.euclidean_chain": "which pairs are implied by others: found for any distance",
    "metric.from_distance_matrix": "any array is a distance",
    "metric.to_distance_matrix": "`distances.matrix`",
    "metric.mult_reals": "|ln a - ln b| of two numbers",
    "metric.l2": "a norm",
    "metric.max": "functions of two numbers",
    "metric.min": "functions of two numbers",
    "metric.mirror": "functions of two numbers",
    "metric.scale": "functions of two numbers",
    "metric.threshold": "functions of two numbers",
    "metric.threshold_inf": "functions of two numbers",
    "lp.defaults": "settings",
    "set_default_type": "settings",
    "point": "a type",
}
"""Functions of libqif that no row calls, and why: name to reason."""


def names_of(qif: object) -> set[str]:
    """Everything that libqif offers, by introspection: dotted names of all that can be called."""
    from types import ModuleType

    found: set[str] = set()

    def walk(module: object, name: str) -> None:
        for part in dir(module):
            value, full = getattr(module, part), f"{name}.{part}".lstrip(".")
            if part.startswith("_"):
                continue
            if isinstance(value, ModuleType):
                if "qif" in value.__name__:
                    walk(value, full)
            else:
                found.add(full)

    walk(qif, "")
    walk(qif._qif, "")  # type: ignore[attr-defined]
    return found - {"double", "uint", "rat"}


def compared() -> set[str]:
    """The functions that have a row."""
    rows = (MEASURES + PROGRAMS).split("\n")
    return {row.split(" | ")[0].split(" ")[0].split(",")[0] for row in rows if row}

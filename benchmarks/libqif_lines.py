"""What ``libqif.py`` compares: a function of libqif, ours, and both calls.

In libqif's calls ``q`` is qif, C and D are two channels, pi is a prior, G a gain, P a predicate; in
ours ``c`` is the case. A name in ``EXACT`` is called with fractions too.
"""

MEASURES = """
measure.bayes_vuln.prior | prior_vulnerability | q.measure.bayes_vuln.prior(pi) | leak.prior_vulnerability(c.prior)
measure.bayes_vuln.posterior | posterior_vulnerability | q.measure.bayes_vuln.posterior(pi, C) | leak.posterior_vulnerability(c.m, c.prior)
measure.bayes_vuln.add_leakage | additive_leakage | q.measure.bayes_vuln.add_leakage(pi, C) | leak.additive_leakage(c.m, c.prior)
measure.bayes_vuln.mult_leakage | multiplicative_leakage | q.measure.bayes_vuln.mult_leakage(pi, C) | leak.multiplicative_leakage(c.m, c.prior)
measure.bayes_vuln.min_entropy_leakage ~ | log2 of it | q.measure.bayes_vuln.min_entropy_leakage(pi, C) | math.log2(leak.multiplicative_leakage(c.m, c.prior))
measure.bayes_vuln.mult_capacity | multiplicative_capacity, maximal_leakage | q.measure.bayes_vuln.mult_capacity(C) | leak.multiplicative_capacity(c.m)
measure.bayes_vuln.strategy | best_guesses, by what they earn | earned_by(q.measure.bayes_vuln.strategy(pi, C), np.eye(len(C), dtype=int), pi, C) | leak.posterior_vulnerability(c.m, c.prior)
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
measure.shannon.add_leakage ~ | mutual_information (nats) | q.measure.shannon.add_leakage(pi, C) * math.log(2) | leak.mutual_information(c.m, c.prior).lower
measure.shannon.mult_leakage ~ | quotient of entropies | q.measure.shannon.mult_leakage(pi, C) | over(c.prior.entropy, om.measures.conditional_entropy(c.m, c.prior))
measure.shannon.add_capacity ~1.1e-7 | shannon_capacity (nats; theirs to 1e-7) | q.measure.shannon.add_capacity(C)[0] * math.log(2) | leak.shannon_capacity(c.m).lower
measure.d_privacy.smallest_epsilon ~ | measures.epsilon(m, distance) | q.measure.d_privacy.smallest_epsilon(C, line) | om.measures.epsilon(c.m, steps(c.n))
measure.d_privacy.is_private ~ | measures.epsilon(m, distance) ≤ 1 | bool(q.measure.d_privacy.is_private(C, line)) | om.measures.epsilon(c.m, steps(c.n)) <= 1
channel.posteriors ~ | measures.posterior, of possible reports | np.asarray(q.channel.posteriors(C, pi)).T[pi @ C > 0] | om.measures.posterior(c.m, c.prior)[c.m.push(c.prior.weights) > 0]
channel.sum_column_min | 1 − additive_capacity(m) | q.channel.sum_column_min(C) | 1 - leak.additive_capacity(c.m).factor
channel.hyper | hyper, its outer distribution | positive(q.channel.hyper(C, pi)[0]) | positive(np.array(leak.hyper(c.m, c.prior).outer.fractions))
channel.reduced | reduced, its number of observables | int(np.asarray(q.channel.reduced(C), dtype=float).any(axis=0).sum()) | len(leak.reduced(c.m).observables)
channel.compose.repeated_independent ~ | repeated(m, 2).vulnerability(prior) | q.measure.bayes_vuln.posterior(pi, q.channel.compose.repeated_independent(C, 2)) | leak.repeated(c.m, 2).vulnerability(c.prior).lower
channel.iterative_bayesian_update ~1e-3 | estimate.prior, its likelihood per report | updated(q, pi, C) | estimated(c)
channel.factorize | refines(a, b).remap, whether there is one | q.channel.factorize(D, C).size > 0 | leak.refines(c.m, c.second).holds
refinement.refined_by | refines(a, b) | bool(q.refinement.refined_by(C, D)) | leak.refines(c.m, c.second).holds
refinement.refined_by_witness | refines(a, b), with witness | witnessed(q, C, D) | leak.refines(c.m, c.second).holds
refinement.max_refined_by | refines(a, b, "max") | bool(q.refinement.max_refined_by(C, D)) | leak.refines(c.m, c.second, "max").holds
refinement.priv_refined_by ~ | refines(a, b, "privacy") | bool(q.refinement.priv_refined_by(C, D)) | leak.refines(c.m, c.second, "privacy").holds
metric.optimize.l1_diameter | 2 (1 − 1 / bayes_risk_capacity) | q.metric.optimize.l1_diameter(C)[0] | 2 * (1 - over(1, leak.bayes_risk_capacity(c.m).value)) if leak.bayes_risk_capacity(c.m).value < math.inf else Fraction(2)
metric.total_variation ~ | divergences.total_variation | q.metric.total_variation()(C[0], C[1]) | om.divergences.total_variation(c.m.matrix[0], c.m.matrix[1])
metric.mult_total_variation ~ | measures.epsilon of the two rows | q.metric.mult_total_variation()(C[0], C[1]) | om.measures.epsilon(c.m, pairs=[[0, 1]])
metric.kantorovich, default ~1e-5 | transport.wasserstein | q.metric.kantorovich(line)(C[0], C[1]) | om.transport.wasserstein(c.m.matrix[0], c.m.matrix[1], steps(len(c.rows[0]))).value
metric.kantorovich, "lp" ~ | transport.wasserstein | q.metric.kantorovich(line, "lp")(C[0], C[1]) | om.transport.wasserstein(c.m.matrix[0], c.m.matrix[1], steps(len(c.rows[0]))).value
utility.expected_distance ~ | measures.expected_loss | q.utility.expected_distance(line, pi, C) | om.measures.expected_loss(c.m, c.prior, steps(c.n, len(c.rows[0])))
"""

PROGRAMS = """
mechanism.d_privacy.min_loss_given_d ~2e-6 | solve, MetricPrivacy | lost(q.mechanism.d_privacy.min_loss_given_d(pi, len(pi), line, line), pi) | least(c, om.MetricPrivacy(1, steps(c.n)))
mechanism.bayes_vuln.min_loss_given_max_vuln ~2e-6 | solve, DistortionPrivacy(1 − v, hamming) | lost(q.mechanism.bayes_vuln.min_loss_given_max_vuln(pi, len(pi), (1 + max(pi)) / 2, line), pi) | least(c, om.DistortionPrivacy((1 - max(c.prior.weights)) / 2, om.distances.hamming()))
mechanism.bayes_risk.min_loss_given_min_risk ~2e-6 | solve, DistortionPrivacy(r, hamming) | lost(q.mechanism.bayes_risk.min_loss_given_min_risk(pi, len(pi), (1 - max(pi)) / 2, line), pi) | least(c, om.DistortionPrivacy((1 - max(c.prior.weights)) / 2, om.distances.hamming()))
mechanism.l_risk.min_loss_given_min_risk ~2e-6 | solve, DistortionPrivacy(r, distance) | lost(q.mechanism.l_risk.min_loss_given_min_risk(pi, len(pi), len(pi), bound(pi), line, line), pi) | least(c, om.DistortionPrivacy(bound(c.prior.weights), steps(c.n)))
mechanism.bayes_vuln.min_vuln_given_max_loss ~2e-6 | solve, MaximizeDistortion(hamming), LossBound | q.measure.bayes_vuln.posterior(pi, q.mechanism.bayes_vuln.min_vuln_given_max_loss(pi, len(pi), bound(pi), line)) | 1 - largest(c, om.distances.hamming())
mechanism.bayes_risk.max_risk_given_max_loss ~2e-6 | solve, MaximizeDistortion(hamming), LossBound | q.measure.bayes_risk.posterior(pi, q.mechanism.bayes_risk.max_risk_given_max_loss(pi, len(pi), bound(pi), line)) | largest(c, om.distances.hamming())
mechanism.l_risk.max_risk_given_max_loss ~2e-6 | solve, MaximizeDistortion(distance), LossBound | q.measure.l_risk.posterior(steps(len(pi)), pi, q.mechanism.l_risk.max_risk_given_max_loss(pi, len(pi), len(pi), bound(pi), line, line)) | largest(c, steps(c.n))
mechanism.bayes_vuln.min_vuln_for_row ~ | closed form: a row in proportion to max_s π(s) p(o∣s) | float(np.maximum((0.75 * pi[:, None] * C).max(axis=0), 0.25 * np.asarray(q.mechanism.bayes_vuln.min_vuln_for_row(0.75 * pi, 0.25, C))).sum()) | max(0.75 * leak.posterior_vulnerability(c.m, c.prior), 0.25)
mechanism.d_privacy.geometric ~ | mechanisms.geometric | q.mechanism.d_privacy.geometric(len(pi), 0.7) | om.mechanisms.geometric(om.Domain.range(c.n), 0.7).matrix
mechanism.d_privacy.exponential ~ | mechanisms.exponential | q.mechanism.d_privacy.exponential(len(pi), line) | om.mechanisms.exponential(om.Domain.range(c.n), 1).matrix
mechanism.d_privacy.randomized_response ~ | mechanisms.randomized_response | q.mechanism.d_privacy.randomized_response(len(pi), 1.3) | om.mechanisms.randomized_response(om.Domain.range(c.n), 1.3).matrix
mechanism.d_privacy.tight_constraints ~ | mechanisms.tight_constraints | q.mechanism.d_privacy.tight_constraints(len(pi), line) | om.mechanisms.tight_constraints(om.Domain.range(c.n), 1).matrix
mechanism.geo_ind.planar_geometric_grid, square ~1e-6 | mechanisms.planar_geometric | q.mechanism.geo_ind.planar_geometric_grid(3, 3, 1.0, 0.5 + max(pi)) | om.mechanisms.planar_geometric(om.Grid(3, 3), 0.5 + max(c.prior.weights)).matrix
mechanism.geo_ind.planar_geometric_grid, 3 × 5 ~1e-6 | mechanisms.planar_geometric | q.mechanism.geo_ind.planar_geometric_grid(5, 3, 1.0, 0.5 + max(pi)) | om.mechanisms.planar_geometric(om.Grid(3, 5), 0.5 + max(c.prior.weights)).matrix
mechanism.geo_ind.planar_laplace_grid, square ~1e-4 | mechanisms.planar_laplace | q.mechanism.geo_ind.planar_laplace_grid(3, 3, 1.0, 0.5 + max(pi)) | om.mechanisms.planar_laplace(om.Grid(3, 3), 0.5 + max(c.prior.weights)).matrix
"""

"""Positions under Markov chains: sequential design, adversaries, leakage."""

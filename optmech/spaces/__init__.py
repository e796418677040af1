"""Finite sets and what lives on them: domains, priors, distances, losses, mechanisms."""

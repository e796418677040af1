"""Positions under Gaussian priors: proved losses and least noise."""

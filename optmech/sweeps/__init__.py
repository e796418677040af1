"""Sweeps: many designs from one template, into a run directory that survives anything."""

from optmech.sweeps.run import SweepResult, sweep

__all__ = ["SweepResult", "sweep"]

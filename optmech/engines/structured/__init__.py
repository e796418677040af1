"""Structured primal-dual interior point engine: see ``engine.StructuredEngine``."""

from optmech.engines.structured.engine import StructuredEngine

__all__ = ["StructuredEngine"]

"""Designs in whole numbers, for the checker in ``proofs/`` that is itself proved."""

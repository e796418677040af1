"""Packed files, what is drawn from them, reports that repeat, and the ledger."""

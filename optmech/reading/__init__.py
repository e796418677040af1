"""Bounded reading of other people's files, and errors that say where."""

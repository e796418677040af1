"""One solve, from a problem to a certified design."""

"""Results: the design, its file, its prices."""

"""The inequalities that are claimed, as plain arrays."""

"""The linear program of a statement, with its block structure kept."""

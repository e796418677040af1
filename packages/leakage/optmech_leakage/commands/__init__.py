"""Commands that this distribution adds to ``optmech``."""

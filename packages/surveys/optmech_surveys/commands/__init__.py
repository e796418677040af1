"""The commands ``optmech estimate`` and ``plan-survey``."""

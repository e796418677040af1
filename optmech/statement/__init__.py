"""What is to be proved: a design problem as plain arrays and families of inequalities."""

from optmech.statement.family import Family, ReadOnly, locked, read_only
from optmech.statement.statement import Objective, Statement

__all__ = ["Family", "Objective", "ReadOnly", "Statement", "locked", "read_only"]

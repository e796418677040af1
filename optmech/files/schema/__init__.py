"""The shape of problem files as pydantic models. Imported only when a file is read.

These say which keys exist and what type and range their values have. What the values mean
together is decided in ``optmech.files.make``.
"""

from optmech.files.schema.problem import ProblemSpec, problem_schema, problem_spec

__all__ = ["ProblemSpec", "problem_schema", "problem_spec"]

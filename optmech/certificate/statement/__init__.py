"""What is to be proved: a design problem as plain arrays and families of inequalities."""

from optmech.certificate.statement.spread import Spread as Spread
from optmech.certificate.statement.statement import (
    Family as Family,
    Held as Held,
    Objective as Objective,
    Statement as Statement,
)

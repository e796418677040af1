"""What is to be proved: a design problem as plain arrays and families of inequalities."""

from optmech.statement.family import Family as Family
from optmech.statement.held import Held as Held
from optmech.statement.spread import Spread as Spread
from optmech.statement.statement import Objective as Objective
from optmech.statement.statement import Statement as Statement

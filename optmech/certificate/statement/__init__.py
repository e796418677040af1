"""What is to be proved: a design problem as plain arrays and families of inequalities."""

from optmech.certificate.statement.spread import Spread as Spread
from optmech.certificate.statement.statement import Family as Family
from optmech.certificate.statement.statement import Held as Held
from optmech.certificate.statement.statement import Objective as Objective
from optmech.certificate.statement.statement import Statement as Statement

"""From an approximate matrix to one that satisfies the statement."""

from optmech.repair.cone import Cone as Cone
from optmech.repair.mixing import repair as repair
from optmech.repair.release import Implied as Implied

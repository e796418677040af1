"""Plain JSON values for problems and multipliers; design files are made of them."""

from optmech.designs.encoding.multipliers import OUTER as OUTER
from optmech.designs.encoding.multipliers import decode_multipliers as decode_multipliers
from optmech.designs.encoding.multipliers import decode_outer as decode_outer
from optmech.designs.encoding.multipliers import encode_multipliers as encode_multipliers
from optmech.designs.encoding.multipliers import encode_outer as encode_outer
from optmech.designs.encoding.numerators import decode_numerators as decode_numerators
from optmech.designs.encoding.numerators import encode_numerators as encode_numerators
from optmech.designs.encoding.problem import decode_problem as decode_problem
from optmech.designs.encoding.problem import encode_problem as encode_problem
from optmech.designs.encoding.result import RESULT as RESULT
from optmech.designs.encoding.result import StatedResult as StatedResult
from optmech.designs.encoding.result import decode_result as decode_result

"""Plain JSON values for problems and multipliers; design files are made of them."""

from optmech.designs.encoding.multipliers import decode_multipliers, encode_multipliers
from optmech.designs.encoding.numerators import decode_numerators, encode_numerators
from optmech.designs.encoding.problem import decode_problem, encode_problem
from optmech.designs.encoding.result import StatedResult, decode_result

__all__ = [
    "StatedResult",
    "decode_multipliers",
    "decode_numerators",
    "decode_problem",
    "decode_result",
    "encode_multipliers",
    "encode_numerators",
    "encode_problem",
]

"""How kernels are compiled, and BLAS and LAPACK inside them, through addresses given at run time.

Numba cannot cache a function that holds a C pointer as a global, so kernels receive the
addresses of scipy's routines in an array and call them by number.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

from optmech.base.arrays import Ints

POTRF, POTRI, GEMM, TRSM, SYRK = range(5)
_NAMES = (
    ("lapack", "dpotrf"),
    ("lapack", "dpotri"),
    ("blas", "dgemm"),
    ("blas", "dtrsm"),
    ("blas", "dsyrk"),
)
# characters go as integers: on little-endian machines the first byte of an int32 is the character
LOWER, NO, TRANSPOSED, LEFT = (ord(letter) for letter in "LNTL")
_OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "nsz"},
    "no_cfunc_wrapper": True,
}


def addresses() -> Ints:
    """Where scipy's routines live in this process, in the order of the constants above."""
    return np.array(
        [get_cython_function_address(f"scipy.linalg.cython_{lib}", name) for lib, name in _NAMES],
        dtype=np.int64,
    )


def _pointer(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """A Fortran argument: the data of an array, or a scalar's place on the stack."""
    if isinstance(kind, types.Array):
        data = context.make_array(kind)(context, builder, value).data
    elif isinstance(kind, types.Integer):
        data = cgutils.alloca_once_value(builder, builder.trunc(value, ir.IntType(32)))
    else:
        data = cgutils.alloca_once_value(builder, value)
    return builder.bitcast(data, cgutils.voidptr_t)


def _fortran(typing_context: Any, address: Any, arguments: Any) -> Any:
    """Call the void function at ``address`` with every member of a tuple by reference."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = signature.args[1].types
        members = cgutils.unpack_tuple(builder, values[1])
        pointers = [
            _pointer(context, builder, kind, value)
            for kind, value in zip(kinds, members, strict=True)
        ]
        shape = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t] * len(pointers))
        builder.call(builder.inttoptr(values[0], shape.as_pointer()), pointers)
        return context.get_dummy_value()

    return types.void(types.int64, arguments), generate


fortran = intrinsic(_fortran)


def jit(function: Any) -> Any:
    """Compile at the first call, without the interpreter's lock, and keep the code on disk."""
    return numba.njit(cache=True, **_OPTIONS)(function)


def part(function: Any) -> Any:
    """For what kernels call and Python does not: compiled and kept with them alone."""
    return numba.njit(no_cpython_wrapper=True, **_OPTIONS)(function)


def sums(function: Any) -> Any:
    """A ``part`` whose sums may be added up in any order, as vector instructions do."""
    options = {**_OPTIONS, "fastmath": {"contract", "nsz", "reassoc"}}
    return numba.njit(no_cpython_wrapper=True, **options)(function)

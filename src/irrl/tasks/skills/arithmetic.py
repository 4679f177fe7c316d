"""Exp, log and sums of our own, for Numba: the same bytes on every processor.

Those of the C library and of NumPy round as their version and the processor's instructions have
it, and sums that a compiler may reorder depend on how wide its vectors are. Here everything is
made of single additions, multiplications and divisions, which IEEE 754 rounds alike everywhere,
in an order that is written down. No function here may be compiled with ``fastmath``: a fused
multiply-add rounds once where two operations round twice.

Imported as a module, this is also the library (``xp``) with which shapes of rewards are compiled;
in double precision, since they are called once for an episode.
"""

import hashlib
from pathlib import Path

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

f32 = np.float32
LANES = 16  # that a sum has, whatever the width of the processor's vectors
DIGEST = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
"""Captured by what is compiled with these functions: Numba's cache knows one file only."""


# --- bits ---


@intrinsic
def _float_of_bits(typing_context, bits):
    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), codegen


@intrinsic
def _bits_of_float(typing_context, x):
    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), codegen


@intrinsic
def _double_of_bits(typing_context, bits):
    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@intrinsic
def _bits_of_double(typing_context, x):
    def codegen(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), codegen


# --- single precision, in loops that vectorise ---


@njit(cache=True, inline="always")
def exp32(x):
    """exp(x) in single precision without a library call, so that loops over it vectorise."""
    x = min(max(x, f32(-87.0)), f32(87.0))
    n = np.floor(x * f32(1.4426950408889634) + f32(0.5))
    r = x - n * f32(0.693359375) + n * f32(2.12194440e-4)
    p = f32(1.9875691500e-4)
    p = p * r + f32(1.3981999507e-3)
    p = p * r + f32(8.3334519073e-3)
    p = p * r + f32(4.1665795894e-2)
    p = p * r + f32(1.6666665459e-1)
    p = p * r + f32(5.0000001201e-1)
    p = p * r * r + r + f32(1.0)
    return p * _float_of_bits((np.int32(n) + np.int32(127)) << np.int32(23))


@njit(cache=True, inline="always")
def log32(x):
    """log(x) of a positive single, vectorising like ``exp32``."""
    bits = _bits_of_float(x) - np.int32(0x3F3504F3)  # exponent of x / sqrt(1/2)
    exponent = bits >> np.int32(23)
    mantissa = (bits & np.int32(0x007FFFFF)) + np.int32(0x3F3504F3)
    r = _float_of_bits(mantissa) - f32(1.0)
    p = f32(7.0376836292e-2)
    p = p * r - f32(1.1514610310e-1)
    p = p * r + f32(1.1676998740e-1)
    p = p * r - f32(1.2420140846e-1)
    p = p * r + f32(1.4249322787e-1)
    p = p * r - f32(1.6668057665e-1)
    p = p * r + f32(2.0000714765e-1)
    p = p * r - f32(2.4999993993e-1)
    p = p * r + f32(3.3333331174e-1)
    n = f32(exponent)
    small = p * r * r * r - f32(2.12194440e-4) * n - f32(0.5) * r * r
    return r + small + f32(0.693359375) * n


@intrinsic
def sum_lanes(typing_context, table, i, j):
    """The sum of ``table[i, j]``, a row of singles: lane by lane, then in a tree, then the rest."""
    if table != types.float32[:, :, ::1]:
        return None
    index = types.intp

    def codegen(context, builder, signature, arguments):
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, arguments[0])
        zero = context.get_constant(index, 0)
        row = cgutils.get_item_pointer(
            context, builder, kind, array, [arguments[1], arguments[2], zero]
        )
        size = cgutils.unpack_tuple(builder, array.shape)[2]
        lane, vector = ir.FloatType(), ir.VectorType(ir.FloatType(), LANES)
        lanes = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * LANES))
        whole = builder.udiv(size, ir.Constant(size.type, LANES))
        with cgutils.for_range(builder, whole) as loop:
            place = builder.gep(row, [builder.mul(loop.index, ir.Constant(size.type, LANES))])
            piece = builder.load(builder.bitcast(place, vector.as_pointer()), align=4)
            builder.store(builder.fadd(builder.load(lanes), piece), lanes)
        found, width = builder.load(lanes), LANES
        while width > 1:
            width //= 2
            halves = [
                builder.shuffle_vector(
                    found,
                    found,
                    ir.Constant(
                        ir.VectorType(ir.IntType(32), width), list(range(first, first + width))
                    ),
                )
                for first in (0, width)
            ]
            found = builder.fadd(*halves)
        total = cgutils.alloca_once_value(
            builder, builder.extract_element(found, ir.Constant(ir.IntType(32), 0))
        )
        first = builder.mul(whole, ir.Constant(size.type, LANES))
        with cgutils.for_range(builder, builder.sub(size, first)) as loop:
            place = builder.gep(row, [builder.add(first, loop.index)])
            builder.store(builder.fadd(builder.load(total), builder.load(place)), total)
        assert lane == total.type.pointee
        return builder.load(total)

    return types.float32(table, index, index), codegen


# --- double precision ---

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SQRT_HALF = 0x3FE6A09E667F3BCD


@njit(cache=True, forceinline=True)
def exp(x):
    """exp(x) of a double; beyond plus or minus 700 as there."""
    x = min(max(float(x), -700.0), 700.0)
    n = np.floor(x * 1.4426950408889634074 + 0.5)
    r = x - n * LN2_HIGH - n * LN2_LOW
    p = 1.0 + r * _expm1_tail(r)
    return p * _double_of_bits((np.int64(n) + np.int64(1023)) << np.int64(52))


@njit(cache=True, forceinline=True)
def _expm1_tail(r):
    """(exp(r) - 1) / r for r in -0.35..0.35: its series, in pairs, so that few wait for others."""
    r2 = r * r
    r4 = r2 * r2
    a = (1.0 + r / 2.0) + r2 * (1.0 / 6.0 + r * (1.0 / 24.0))
    b = (1.0 / 120.0 + r * (1.0 / 720.0)) + r2 * (1.0 / 5040.0 + r * (1.0 / 40320.0))
    c = (1.0 / 362880.0 + r * (1.0 / 3628800.0)) + r2 * (1.0 / 39916800.0 + r * (1.0 / 479001600.0))
    d = 1.0 / 6227020800.0 + r * (1.0 / 87178291200.0)
    return (a + r4 * b) + (r4 * r4) * (c + r4 * d)


@njit(cache=True)
def expm1(x):
    """exp(x) - 1, near zero as well."""
    x = float(x)
    return x * _expm1_tail(x) if -0.35 < x < 0.35 else exp(x) - 1.0


@njit(cache=True)
def log(x):
    """log(x) of a positive double that is not denormal."""
    bits = _bits_of_double(float(x)) - np.int64(SQRT_HALF)
    exponent = bits >> np.int64(52)
    mantissa = (bits & np.int64(0x000FFFFFFFFFFFFF)) + np.int64(SQRT_HALF)
    m = _double_of_bits(mantissa)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 1.0 / 23.0
    for odd in (21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        p = p * z + 1.0 / odd
    n = float(exponent)
    return n * LN2_HIGH + (2.0 * s + (2.0 * s * (z * p) + n * LN2_LOW))


@njit(cache=True)
def log1p(x):
    """log(1 + x), near zero as well."""
    u = 1.0 + float(x)
    return float(x) if u == 1.0 else log(u) * (float(x) / (u - 1.0))


@njit(cache=True)
def tanh(x):
    """The hyperbolic tangent."""
    t = expm1(2.0 * min(max(float(x), -20.0), 20.0))
    return t / (t + 2.0)


@njit(cache=True)
def maximum(a, b):
    return max(float(a), float(b))


@njit(cache=True)
def minimum(a, b):
    return min(float(a), float(b))


@njit(cache=True)
def abs(x):
    return max(float(x), -float(x))

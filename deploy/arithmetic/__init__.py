"""The integer arithmetic, defined once, in numpy.

The interpreter of a lowered network, the C on the host, the C on the device and the FPGA block all
compute what is written here, to the last bit. Nothing here knows of tensors' names or of networks.

A real number x is held as an integer q with ``x = scale * (q - zero_point)``.
"""

from __future__ import annotations

from entrain.deploy.arithmetic.division import (
    Quotient,
    leading_zeros,
    quotient,
    reciprocal,
)
from entrain.deploy.arithmetic.requantization import (
    FixedPoint,
    IntArray,
    RealArray,
    dequantize,
    fixed_point,
    integer_range,
    quantize,
    requantize,
)

__all__ = [
    "FixedPoint",
    "IntArray",
    "Quotient",
    "RealArray",
    "dequantize",
    "fixed_point",
    "integer_range",
    "leading_zeros",
    "quantize",
    "quotient",
    "reciprocal",
    "requantize",
]

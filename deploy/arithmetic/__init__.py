"""The integer arithmetic, defined once, in numpy.

The interpreter of a lowered network, the C on the host, the C on the device and the FPGA block all
compute what is written here, to the last bit. Nothing here knows of tensors' names or of networks.

A real number x is held as an integer q with ``x = scale * (q - zero_point)``.
"""

from __future__ import annotations

from entrain.deploy.arithmetic.coupling import (
    FieldSum,
    RectifiedCoupling,
    SeparableCoupling,
    TabulatedCoupling,
    field_sum,
    rectified_coupling,
    rounding_shift,
    table_scale,
    weight_bits,
)
from entrain.deploy.arithmetic.division import (
    Quotient,
    leading_zeros,
    quotient,
    reciprocal,
)
from entrain.deploy.arithmetic.exponential import Exponential, exponential
from entrain.deploy.arithmetic.interpolation import interpolate
from entrain.deploy.arithmetic.linear_average import (
    LinearAverage,
    feature_table,
    linear_average,
)
from entrain.deploy.arithmetic.oscillator import (
    FactorisedReadOut,
    PlainReadOut,
    factorised_read_out,
    plain_read_out,
)
from entrain.deploy.arithmetic.ratios import reciprocal_factor, root_factor, scaled
from entrain.deploy.arithmetic.requantization import (
    FixedPoint,
    IntArray,
    RealArray,
    dequantize,
    fixed_point,
    integer_range,
    narrow_fixed_point,
    quantize,
    requantize,
)
from entrain.deploy.arithmetic.roots import reciprocal_root
from entrain.deploy.arithmetic.settling import (
    FieldStrength,
    field_strength,
    settle,
)
from entrain.deploy.arithmetic.softmax import Softmax, softmax

__all__ = [
    "Exponential",
    "FactorisedReadOut",
    "FieldStrength",
    "FieldSum",
    "FixedPoint",
    "IntArray",
    "LinearAverage",
    "PlainReadOut",
    "Quotient",
    "RealArray",
    "RectifiedCoupling",
    "SeparableCoupling",
    "Softmax",
    "TabulatedCoupling",
    "dequantize",
    "exponential",
    "factorised_read_out",
    "feature_table",
    "field_strength",
    "field_sum",
    "fixed_point",
    "integer_range",
    "interpolate",
    "leading_zeros",
    "linear_average",
    "narrow_fixed_point",
    "plain_read_out",
    "quantize",
    "quotient",
    "reciprocal",
    "reciprocal_factor",
    "reciprocal_root",
    "rectified_coupling",
    "requantize",
    "root_factor",
    "rounding_shift",
    "scaled",
    "settle",
    "softmax",
    "table_scale",
    "weight_bits",
]

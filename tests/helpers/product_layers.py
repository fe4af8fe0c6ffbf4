"""Layers that multiply stored rows with weights, with any extents, scales and residuals."""

from __future__ import annotations

import numpy as np

from entrain.deploy.arithmetic import fixed_point, integer_range
from entrain.deploy.lowering.graph import Layer, Value
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import ADD_INTEGERS
from entrain.deploy.lowering.operators.layout import Reshape, Slice
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.operators.quantizers import Requantize
from entrain.deploy.lowering.translations.offsets import less

BYTES = 4000
STORED = {
    "signed": Value("signed", (BYTES,), "int8", 1.0, 5, "signed"),
    "unsigned": Value("unsigned", (BYTES,), "uint8", 1.0, 133, "unsigned"),
}


def stored_bytes(seed):
    values = np.random.default_rng(seed).integers(-128, 128, BYTES).astype(np.int8)
    return {"signed": values, "unsigned": (values.astype(int) + 128).astype(np.uint8)}


def matrix(source, first, rows, columns, stride):
    """Rows that lie ``stride`` bytes apart in a value, as integers without its zero point."""
    value = STORED[source]
    part = apply(Slice(0, first, 1, rows * stride), load(value))
    whole = apply(Reshape((rows, stride)), part)
    return less(apply(Slice(1, 0, 1, columns), whole), value.zero_point)


def weights_of(columns, depth, seed=0, bits=8):
    most = 2 ** (bits - 1)
    random = np.random.default_rng(seed)
    return constant(random.integers(-most, most, (columns, depth)).astype(np.int8))


def layer(
    sums,
    *,
    name="product",
    factors=0.0009,
    bias=None,
    residual=None,
    added=0.0,
    dtype="int8",
    zero_point=-3,
    bounds=None,
    residual_first=False,
):
    """The layer that rescales sums, with a residual and its factor if there is one."""
    if bias is not None:
        sums = apply(ADD_INTEGERS, sums, constant(np.asarray(bias, np.int32)))
    terms = [(sums, np.asarray(factors))]
    if residual is not None:
        terms.insert(0 if residual_first else 1, (residual[0], np.asarray(residual[1])))
    peaks = tuple(int(max(map(abs, node.interval))) for node, _ in terms)
    fixed = fixed_point(tuple(factor for _, factor in terms), np.asarray(added), peaks)
    low, high = bounds or integer_range(dtype)
    requantize = Requantize(
        *(sums.shape, dtype, len(terms), fixed.bias_shift, fixed.shift, zero_point, low, high)
    )
    multipliers = [constant(multiplier) for multiplier in fixed.multipliers]
    nodes = [node for node, _ in terms]
    expression = apply(requantize, *nodes, *multipliers, constant(fixed.bias))
    read = {node.operator.value for node in expression.walk() if hasattr(node.operator, "value")}
    inputs = tuple(sorted(read, key=lambda value: value.name))
    return Layer(
        name,
        "matrix product",
        inputs,
        Value(name, sums.shape, dtype, 1.0, zero_point, name),
        expression,
    )


def random_layer(name, choose):
    """Any extents, types, zero points, bounds and scales, with or without a residual."""
    rows, depth, columns = choose(1, 14), choose(1, 70), choose(1, 19)
    random = np.random.default_rng(choose(0, 2**30))
    source = ("signed", "unsigned")[choose(0, 1)]
    stride = depth + choose(0, 3)
    x = matrix(source, choose(0, BYTES - rows * stride), rows, depth, stride)
    sums = apply(MatMul(), x, weights_of(columns, depth, choose(0, 2**30)))
    dtype = ("int8", "uint8")[choose(0, 1)]
    least, most = integer_range(dtype)
    zero_point = choose(least, most)
    # from a factor that leaves little of the sums to one that clips most of them
    factor = 2.0 ** choose(-22, 2) * random.uniform(0.5, 1, columns if choose(0, 1) else ())
    other = ("signed", "unsigned")[choose(0, 1)]
    apart = columns + choose(0, 3)
    residual = matrix(other, choose(0, BYTES - rows * apart), rows, columns, apart)
    bias = (None, (columns,), (rows, columns))[choose(0, 2)]
    return layer(
        sums,
        name=name,
        factors=factor,
        bias=None if bias is None else random.integers(-30000, 30000, bias),
        residual=(residual, random.uniform(0.1, 4)) if choose(0, 1) else None,
        residual_first=bool(choose(0, 1)),
        added=random.uniform(-9, 9) if choose(0, 3) == 0 else 0.0,
        dtype=dtype,
        zero_point=zero_point,
        bounds=((least, most), (zero_point, most), (least, zero_point))[choose(0, 2)],
    )

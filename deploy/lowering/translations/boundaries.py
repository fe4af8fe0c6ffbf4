"""DequantizeLinear of a weight or bias, and QuantizeLinear of a constant.

Boundaries between layers are handled by the importer; what arrives here is constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.operators import constant
from entrain.deploy.lowering.quantity import Affine, Quantity, Reals, Term, known, value_of
from entrain.deploy.lowering.translations.contract import Translation, result_shape


def _along_axis(array: Reals, axis: int, rank: int) -> Reals:
    """A per-channel array shaped to broadcast along ``axis`` of a tensor of ``rank`` axes."""
    if array.size == 1:
        return array.reshape(())
    shape = [1] * rank
    shape[axis % rank] = -1
    return array.reshape(shape)


def _parameters(call: Any, operands: Sequence[Quantity]) -> tuple[Reals, Reals]:
    scale, zero_point = value_of(operands[1]), value_of(operands[2])
    if scale is None or zero_point is None:
        raise UnsupportedOperator(
            "a scale or zero point is computed at run time",
            remedy="export with static quantization parameters",
        )
    if not (np.isfinite(scale) & (scale > 0)).all():
        raise UnsupportedOperator(
            "a scale is not a positive number", remedy="calibrate the model again"
        )
    rank = len(result_shape(call))
    axis = int(call.attrs.axis)
    return _along_axis(scale, axis, rank), _along_axis(zero_point, axis, rank)


def _narrowest(integers: Array) -> Array:
    """In the smallest type that holds them, since they will lie in flash."""
    for dtype in ("int8", "int16", "int32"):
        low, high = integer_range(dtype)
        if low <= integers.min(initial=0) and integers.max(initial=0) <= high:
            return integers.astype(dtype)
    raise UnsupportedOperator(
        "integers wider than 32 bits", remedy="keep biases within 32 bits, zero point included"
    )


def dequantize_constant(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """Integers minus the zero point, with their scale: still integers."""
    scale, zero_point = _parameters(call, operands)
    stored = value_of(operands[0])
    if stored is None:
        raise UnsupportedOperator(
            "a DequantizeLinear reads something that no QuantizeLinear wrote",
            remedy="quantize every tensor that a layer reads",
        )
    node = constant(_narrowest(stored - zero_point))
    return Affine((Term(node, scale),), np.zeros(()), node.shape)


def quantize_constant(call: Any, operands: Sequence[Quantity]) -> Quantity:
    """A constant's integers, kept as the reals they are written as."""
    scale, zero_point = _parameters(call, operands)
    array = value_of(operands[0])
    if array is None:
        raise UnsupportedOperator(
            "a QuantizeLinear reads something that only the device can compute",
            remedy="please report this with the model",
        )
    low, high = integer_range(str(call.attrs.out_dtype))
    steps = np.rint(array.astype(np.float32) / scale.astype(np.float32))
    return known(np.clip(steps.astype(np.float64) + zero_point, low, high))


TRANSLATIONS: dict[str, Translation] = {
    "relax.dequantize": dequantize_constant,
    "relax.quantize": quantize_constant,
}
ONNX_OPERATORS = {"QuantizeLinear", "DequantizeLinear", "Constant", "Identity"}

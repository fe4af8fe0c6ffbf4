"""From a quantity to the 8 bits that a layer writes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from entrain.deploy.arithmetic import fixed_point, integer_range, quantize
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Node, Operator, Product, Value
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.elementwise import ADD_INTEGERS, DIVIDE, SQUARE_ROOT
from entrain.deploy.lowering.operators.gather import Gather
from entrain.deploy.lowering.operators.layout import Slice
from entrain.deploy.lowering.operators.lookup import Lookup
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.operators.quantizers import Quantize, Requantize
from entrain.deploy.lowering.operators.reduction import Peak, Sum
from entrain.deploy.lowering.quantity import Affine, Quantity, Reals, compressed, to_real
from entrain.deploy.lowering.tabulation import tabulated, untabulated
from entrain.deploy.lowering.views import MOVES

LARGEST_LOSS = 2.0**-10  # of a step, by a bias rounded to the steps of its sum


def quantized_expression(quantity: Quantity, value: Value) -> Node:
    """The expression whose result is ``value``.

    Integer where the quantity is affine, a table where it is a function of one 8-bit tensor, else
    single precision.

    Raises:
        UnsupportedOperator: a function is left that only a table could compute, or integers may
            grow too large.
    """
    if isinstance(quantity, Affine) and quantity.terms:
        expression = _requantized(quantity, value)
    else:
        low, high = integer_range(value.dtype)
        inverse = float(np.float32(1.0) / np.float32(value.scale))
        quantizer = Quantize(value.dtype, inverse, value.zero_point, low, high)
        expression = tabulated(apply(quantizer, to_real(quantity)))
    if untabulated(expression):
        raise UnsupportedOperator(
            "an exponential, logarithm or sigmoid of something that is not one 8-bit tensor",
            remedy="quantize its operand, and quantize its result before anything else joins",
        )
    _check_range(expression)
    return expression


def _requantized(quantity: Affine, value: Value) -> Node:
    factors = tuple(compressed(np.asarray(t.scale / value.scale)) for t in quantity.terms)
    bias = compressed(np.asarray(quantity.constant / value.scale))
    sums, bias = _with_bias([term.node for term in quantity.terms], factors, bias)
    peaks = tuple(int(max(map(abs, node.interval))) for node in sums)
    try:
        fixed = fixed_point(factors, bias, peaks)
    except OverflowError as error:
        raise UnsupportedOperator(
            f"its values may be {error} steps of {value.scale:.3g} away from 0",
            remedy="calibrate again: the step of this tensor is too small for what computes it",
        ) from error
    bounds = np.asarray([quantity.low, quantity.high])
    low, high = quantize(bounds, value.scale, value.zero_point, value.dtype)
    requantize = Requantize(
        value.shape,
        value.dtype,
        len(quantity.terms),
        fixed.bias_shift,
        fixed.shift,
        value.zero_point,
        int(low),
        int(high),
    )
    multipliers = [constant(multiplier) for multiplier in fixed.multipliers]
    return apply(requantize, *sums, *multipliers, constant(fixed.bias))


def _with_bias(
    nodes: list[Node], factors: tuple[Reals, ...], bias: Reals
) -> tuple[list[Node], Reals]:
    """The bias added to the first sum where that loses nothing, and what is left of it.

    A bias in steps of the sum (as int32 biases are) makes the requantization of a sum one
    multiplication and one shift.
    """
    first, *others = nodes
    if not bias.any() or not factors[0].all() or not _accumulates(first):
        return nodes, bias
    steps = np.rint(bias / factors[0])
    lost = float(np.abs(bias - steps * factors[0]).max())
    low, high = integer_range("int32")
    reach = [end + step for end in first.interval for step in (steps.min(), steps.max())]
    if lost > LARGEST_LOSS or min(reach) < low or max(reach) > high:
        return nodes, bias
    added = apply(ADD_INTEGERS, first, constant(steps.astype(np.int32)))
    return [added, *others], np.zeros(())


def _accumulates(node: Node) -> bool:
    """Whether a node is a sum of products, moved about at most."""
    while isinstance(node.operator, MOVES):
        (node,) = node.operands
    return isinstance(node.operator, Product)


def _check_range(expression: Node) -> None:
    """Every integer sum must fit its type, for any input whatever."""
    for node in expression.walk():
        if node.dtype == "int32":
            low, high = integer_range(node.dtype)
            if node.interval[0] < low or node.interval[1] > high:
                raise UnsupportedOperator(
                    "an integer sum that may exceed 32 bits",
                    remedy="split the sum in two, with a QuantizeLinear behind each",
                )


_TITLES: tuple[tuple[str, Callable[[Operator], bool]], ...] = (
    ("depthwise convolution", lambda kind: isinstance(kind, Convolution) and kind.groups > 1),
    ("convolution", lambda kind: isinstance(kind, Convolution)),
    ("softmax", lambda kind: isinstance(kind, Peak)),
    ("settle", lambda kind: kind == SQUARE_ROOT),
    ("read-out", lambda kind: kind == DIVIDE),
    ("matrix product", lambda kind: isinstance(kind, MatMul)),
    ("gather", lambda kind: isinstance(kind, Gather)),
    ("lookup", lambda kind: isinstance(kind, Lookup)),
    ("mean", lambda kind: isinstance(kind, Sum)),
    ("select", lambda kind: isinstance(kind, Slice)),
)


def title_of(expression: Node) -> str:
    """What a layer chiefly does, for people: its heaviest operator."""
    kinds = [node.operator for node in expression.walk()]
    titles = (title for title, is_kind in _TITLES if any(map(is_kind, kinds)))
    return next(titles, "add")

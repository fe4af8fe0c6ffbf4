"""From a quantity to the 8 bits that a layer writes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from entrain.deploy.arithmetic import fixed_point, integer_range, quantize
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import Node, Operator, Product, Value
from entrain.deploy.lowering.merging import merged
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.elementwise import ADD_INTEGERS
from entrain.deploy.lowering.operators.gather import Choose, Gather
from entrain.deploy.lowering.operators.interpolation import Interpolate
from entrain.deploy.lowering.operators.join import Join, Pad
from entrain.deploy.lowering.operators.layout import Slice
from entrain.deploy.lowering.operators.lookup import Lookup
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.operators.pool import PoolMax, PoolSum
from entrain.deploy.lowering.operators.quantizers import Requantize
from entrain.deploy.lowering.operators.ratio import ReciprocalFactor, RootFactor
from entrain.deploy.lowering.operators.reduction import Peak, Sum
from entrain.deploy.lowering.quantity import Affine, Quantity, Reals, compressed
from entrain.deploy.lowering.quantized import affine_of, check_integer
from entrain.deploy.lowering.tabulation import tabulated
from entrain.deploy.lowering.views import MOVES

LARGEST_LOSS = 2.0**-7  # of a step, by a bias rounded to the steps of its sum


def quantized_expression(quantity: Quantity, value: Value) -> Node:
    """The expression whose result is ``value``: integers from end to end.

    A table where it is a function of one 8-bit tensor, else integer tensors and their
    requantization.

    Raises:
        UnsupportedOperator: integers may grow too large, or a function is too steep for a table.
    """
    expression = tabulated(quantity, value)
    if expression is None:
        expression = merged(_requantized(affine_of(quantity, value), value))
    check_integer(expression)
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
    """The bias added to the first sum of products where that loses nothing, and what is left of it.

    A bias in steps of the sum (as int32 biases are) makes the requantization of a sum one
    multiplication and one shift.
    """
    place = next((k for k, node in enumerate(nodes) if _accumulates(node)), None)
    if place is None or not bias.any() or not factors[place].all():
        return nodes, bias
    total, factor = nodes[place], factors[place]
    steps = np.rint(bias / factor)
    lost = float(np.abs(bias - steps * factor).max())
    low, high = integer_range("int32")
    reach = [end + step for end in total.interval for step in (steps.min(), steps.max())]
    if lost > LARGEST_LOSS or min(reach) < low or max(reach) > high:
        return nodes, bias
    added = apply(ADD_INTEGERS, total, constant(steps.astype(np.int32)))
    return [*nodes[:place], added, *nodes[place + 1 :]], np.zeros(())


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
    ("normalization", lambda kind: isinstance(kind, RootFactor)),
    ("quotient", lambda kind: isinstance(kind, ReciprocalFactor)),
    ("matrix product", lambda kind: isinstance(kind, MatMul)),
    ("largest of a window", lambda kind: isinstance(kind, PoolMax)),
    ("mean of a window", lambda kind: isinstance(kind, PoolSum)),
    ("gather", lambda kind: isinstance(kind, Gather)),
    ("lookup", lambda kind: isinstance(kind, Lookup | Interpolate)),
    ("mean", lambda kind: isinstance(kind, Sum)),
    ("join", lambda kind: isinstance(kind, Join | Pad)),
    ("select", lambda kind: isinstance(kind, Slice | Choose)),
)


def title_of(expression: Node) -> str:
    """What a layer chiefly does, for people: its heaviest operator."""
    kinds = [node.operator for node in expression.walk()]
    titles = (title for title, is_kind in _TITLES if any(map(is_kind, kinds)))
    return next(titles, "add")

"""From a quantity to the 8 bits that a layer writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from entrain.deploy.arithmetic import (
    FixedPoint,
    fixed_point,
    integer_range,
    narrow_fixed_point,
    quantize,
)
from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.graph import BYTES, Node, Operator, Product, Value
from entrain.deploy.lowering.merging import merged
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.elementwise import ADD_INTEGERS
from entrain.deploy.lowering.operators.gather import Choose, Gather
from entrain.deploy.lowering.operators.interpolation import Interpolate
from entrain.deploy.lowering.operators.join import Join, Pad
from entrain.deploy.lowering.operators.layout import Broadcast, Permute, Slice
from entrain.deploy.lowering.operators.leaves import Load
from entrain.deploy.lowering.operators.lookup import Lookup
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.operators.pool import PoolMax, PoolSum
from entrain.deploy.lowering.operators.quantizers import Requantize
from entrain.deploy.lowering.operators.ratio import ReciprocalFactor, RootFactor
from entrain.deploy.lowering.operators.reduction import Peak, Sum
from entrain.deploy.lowering.quantity import Affine, Quantity, Reals, compressed, sole_term
from entrain.deploy.lowering.quantized import affine_of, check_integer
from entrain.deploy.lowering.tabulation import tabulated
from entrain.deploy.lowering.translations.offsets import stored
from entrain.deploy.lowering.views import MOVES, view_of

LARGEST_LOSS = 2.0**-7  # of a step, by a bias rounded to the steps of its sum


def quantized_expression(quantity: Quantity, value: Value) -> Node:
    """The expression whose result is ``value``: integers from end to end.

    Bytes as they are where they are only moved, a table where it is a function of one 8-bit tensor,
    else integer tensors and their requantization.

    Raises:
        UnsupportedOperator: integers may grow too large, or a function is too steep for a table.
    """
    expression = moved_bytes(quantity, value)
    if expression is None:
        expression = tabulated(quantity, value)
    if expression is None:
        expression = merged(_requantized(affine_of(quantity, value), value))
    check_integer(expression)
    _check_range(expression)
    return expression


def moved_bytes(quantity: Quantity, value: Value) -> Node | None:
    """The bytes of other values where ``value`` holds those in another order; None if it differs.

    That is to say: in the same steps, from the same zero point, and of the same type.
    """
    term = sole_term(quantity)
    if term is None or term.scale.size != 1 or np.float32(term.scale.item()) != value.scale:
        return None
    node, zero_point = stored(term.node)
    alike = (node.dtype, zero_point) == (value.dtype, value.zero_point)
    return node if alike and _only_moves([each.operator for each in node.walk()]) else None


def _requantized(quantity: Affine, value: Value) -> Node:
    factors = tuple(compressed(np.asarray(t.scale / value.scale)) for t in quantity.terms)
    bias = compressed(np.asarray(quantity.constant / value.scale))
    sums, bias = _with_bias([term.node for term in quantity.terms], factors, bias)
    try:
        fixed = _fixed_point(sums, factors, bias)
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


def _fixed_point(nodes: list[Node], factors: tuple[Reals, ...], bias: Reals) -> FixedPoint:
    """The integers of a requantization: of stored bytes with a total of 32 bits if that will do.

    Those are multiplied by so few bits that nothing on the way to the result is wider.
    """
    peaks = tuple(int(max(map(abs, node.interval))) for node in nodes)
    simple = all(map(_is_stored_bytes, nodes)) and all(factor.size == 1 for factor in factors)
    narrow = narrow_fixed_point(factors, bias, peaks) if simple else None
    return fixed_point(factors, bias, peaks) if narrow is None else narrow


def _is_stored_bytes(node: Node) -> bool:
    """Whether a node is bytes of a value, without its zero point."""
    view = view_of(node)
    return view is not None and view.value.dtype in BYTES


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


def _holds(*kinds: Any) -> Callable[[list[Operator]], bool]:
    """Whether there is an operator of every kind."""
    return lambda operators: all(
        any(isinstance(operator, kind) for operator in operators) for kind in kinds
    )


def _is_depthwise(operators: list[Operator]) -> bool:
    return any(isinstance(each, Convolution) and each.groups > 1 for each in operators)


def _only_moves(operators: list[Operator]) -> bool:
    return all(isinstance(each, (Load, Join, Pad, *MOVES)) for each in operators)


_TITLES: tuple[tuple[str, Callable[[list[Operator]], bool]], ...] = (
    ("depthwise convolution", _is_depthwise),
    ("convolution", _holds(Convolution)),
    ("softmax", _holds(Peak, Lookup | Interpolate, Sum)),
    ("normalization", _holds(RootFactor)),
    ("quotient", _holds(ReciprocalFactor)),
    ("matrix product", _holds(MatMul)),
    ("largest of a window", _holds(PoolMax)),
    ("mean of a window", _holds(PoolSum)),
    ("largest or smallest", _holds(Peak)),
    ("gather", _holds(Gather)),
    ("lookup", _holds(Lookup | Interpolate)),
    ("mean", _holds(Sum)),
    ("join", _holds(Join | Pad)),
    ("select", _holds(Slice | Choose)),
    ("repeat", lambda operators: _only_moves(operators) and _holds(Broadcast)(operators)),
    ("transpose", lambda operators: _only_moves(operators) and _holds(Permute)(operators)),
    ("reshape", _only_moves),
)


def title_of(expression: Node) -> str:
    """What a layer chiefly does, for people: its heaviest operator."""
    operators = [node.operator for node in expression.walk()]
    return next((title for title, is_it in _TITLES if is_it(operators)), "add")

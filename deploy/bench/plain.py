"""Layers as anyone would write them in C: plain loops.

A product is an int32 sum and one requantization, a function of a byte one look into its table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrain.deploy.lowering.codegen import C_TYPES
from entrain.deploy.lowering.functions import ARITHMETIC, LayerFunction
from entrain.deploy.lowering.graph import Array, Layer, Node
from entrain.deploy.lowering.kernels.bytes_in_order import bytes_in_order
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.elementwise import ADD_INTEGERS
from entrain.deploy.lowering.operators.leaves import Constant
from entrain.deploy.lowering.operators.lookup import Lookup
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.operators.quantizers import Requantize


@dataclass(frozen=True)
class _Product:
    """A layer that is one product by constant weights and one requantization."""

    operator: MatMul | Convolution
    weights: Array
    bias: Array
    multiplier: int
    requantize: Requantize
    zero_point: int


def plain_function(layer: Layer) -> LayerFunction | None:
    """The layer in plain loops; None if it is neither of the above."""
    return _lookup(layer) if isinstance(layer.expression.operator, Lookup) else _sums(layer)


def _lookup(layer: Layer) -> LayerFunction | None:
    """A function of stored bytes in their order; None if they lie in another order."""
    index, table = layer.expression.operands
    view = bytes_in_order(index)
    if view is None or view.offset or not isinstance(table.operator, Constant):
        return None
    source, result = (C_TYPES[value.dtype] for value in (view.value, layer.output))
    name, first = view.value.name, -view.zero_point
    text = (
        f"static NOINLINE void {layer.symbol}(const {source} *restrict {name}_in, "
        f"const {result} *restrict table, {result} *restrict output) {{\n"
        f"    for (int32_t i = 0; i < {layer.output.size}; ++i) {{\n"
        f"        output[i] = table[{name}_in[i] + {first}];\n"
        "    }\n}\n"
    )
    constants = (("table", _constant(table)),)
    return LayerFunction(layer, text, (view.value,), constants, frozenset({ARITHMETIC}))


def _sums(layer: Layer) -> LayerFunction | None:
    """A product by constant weights with one multiplier; None if it is none."""
    product = _product(layer)
    if product is None:
        return None
    write = _convolution if isinstance(product.operator, Convolution) else _matmul
    source = layer.inputs[0]
    text = (
        f"static NOINLINE void {layer.symbol}(const int8_t *restrict {source.name}_in, "
        "const int8_t *restrict weights, const int32_t *restrict bias, "
        f"int8_t *restrict output) {{\n{write(layer, product)}}}\n"
    )
    constants = (("weights", product.weights), ("bias", product.bias))
    return LayerFunction(layer, text, (source,), constants, frozenset({ARITHMETIC}))


def _product(layer: Layer) -> _Product | None:
    root = layer.expression
    nodes = list(root.walk())
    products = [node for node in nodes if isinstance(node.operator, MatMul | Convolution)]
    if not isinstance(root.operator, Requantize) or len(products) != 1 or len(layer.inputs) != 1:
        return None
    (node,) = products
    multiplier = root.operands[root.operator.terms]
    if multiplier.shape or not isinstance(node.operands[1].operator, Constant):
        return None
    bias = [_constant(n.operands[1]) for n in nodes if n.operator is ADD_INTEGERS]
    if not isinstance(node.operator, MatMul | Convolution):
        return None
    weights = _constant(node.operands[1])
    if isinstance(node.operator, Convolution):
        weights = np.ascontiguousarray(np.moveaxis(weights, 1, -1))
    return _Product(
        node.operator,
        weights,
        bias[0].reshape(-1) if bias else np.zeros(weights.shape[0], np.int32),
        int(_constant(multiplier).item()),
        root.operator,
        layer.inputs[0].zero_point,
    )


def _constant(node: Node) -> Array:
    return node.operator.reference()


def _requantized(product: _Product) -> str:
    r = product.requantize
    return (
        f"(int8_t)entrain_requantize((int64_t)sum * {product.multiplier}, {r.shift}, "
        f"{r.zero_point}, {r.low}, {r.high})"
    )


def _matmul(layer: Layer, product: _Product) -> str:
    outputs, inputs = product.weights.shape
    rows = layer.output.size // outputs
    return f"""    for (int32_t row = 0; row < {rows}; ++row) {{
        for (int32_t c = 0; c < {outputs}; ++c) {{
            int32_t sum = bias[c];
            for (int32_t k = 0; k < {inputs}; ++k) {{
                sum += ({layer.inputs[0].name}_in[row * {inputs} + k] - {product.zero_point}) *
                       weights[c * {inputs} + k];
            }}
            output[row * {outputs} + c] = {_requantized(product)};
        }}
    }}
"""


def _convolution(layer: Layer, product: _Product) -> str:
    operator = product.operator
    if not isinstance(operator, Convolution):
        raise TypeError("no convolution")
    outputs, tall, wide, deep = product.weights.shape
    _, rows, columns, channels = layer.inputs[0].shape
    _, height, width, _ = layer.output.shape
    (sy, sx), (top, left, _, _) = operator.strides, operator.padding
    first = "0" if operator.groups == 1 else f"c / {outputs // operator.groups} * {deep}"
    return f"""    for (int32_t y = 0; y < {height}; ++y) {{
        for (int32_t x = 0; x < {width}; ++x) {{
            for (int32_t c = 0; c < {outputs}; ++c) {{
                int32_t sum = bias[c];
                for (int32_t u = 0; u < {tall}; ++u) {{
                    const int32_t row = y * {sy} + u - {top};
                    for (int32_t v = 0; v < {wide}; ++v) {{
                        const int32_t column = x * {sx} + v - {left};
                        if (row < 0 || row >= {rows} || column < 0 || column >= {columns}) {{
                            continue;
                        }}
                        for (int32_t i = 0; i < {deep}; ++i) {{
                            sum += ({layer.inputs[0].name}_in[(row * {columns} + column) *
                                    {channels} + {first} + i] - {product.zero_point}) *
                                   weights[((c * {tall} + u) * {wide} + v) * {deep} + i];
                        }}
                    }}
                }}
                output[(y * {width} + x) * {outputs} + c] = {_requantized(product)};
            }}
        }}
    }}
"""

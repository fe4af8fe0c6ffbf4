"""Images with channels last: the order in which convolutions read and write fastest.

ONNX has an image as (batch, channels, rows, columns). Between layers it is stored as (batch, rows,
columns, channels): all channels of a pixel lie together, so that a convolution of one pixel is a
matrix product and any other reads runs of bytes. The model's input and output stay as they are; a
layer reads and writes those through a permutation. A convolution can write its channels apart, so
what leads from it to an output element by element stays as it is too.

Expressions stay definitions: whoever reads an image permutes it, and permutations move through
element-wise operators until they meet and vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod

import numpy as np

from entrain.deploy.lowering.graph import Array, Layer, LoweredGraph, Node, Shape, Value
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.elementwise import Elementwise
from entrain.deploy.lowering.operators.heads import AttentionOperator
from entrain.deploy.lowering.operators.layout import Reshape, permuted
from entrain.deploy.lowering.operators.leaves import Constant, Load, load
from entrain.deploy.lowering.operators.lookup import Lookup
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.operators.pool import PoolMax, PoolSum
from entrain.deploy.lowering.operators.quantizers import Requantize
from entrain.deploy.lowering.translations.offsets import less
from entrain.deploy.lowering.translations.offsets import stored as stored_integers
from entrain.deploy.lowering.views import result_places, strides_of, view_of

SPATIAL = (Convolution, PoolMax, PoolSum)
IN_ELEMENTWISE_LAYERS = (Constant, Elementwise, Load, Lookup, Requantize)


def channels_last(graph: LoweredGraph) -> LoweredGraph:
    """The network with its images stored with channels last; the same integers in another order."""
    images = _images(graph)
    stored = {value.name: _stored(value) for value in _values(graph) if value.name in images}
    return replace(graph, layers=tuple(_rewritten(layer, stored) for layer in graph.layers))


def _stored(value: Value) -> Value:
    axes = _to_last(len(value.shape))
    return replace(value, shape=tuple(value.shape[axis] for axis in axes), axes=axes)


def _to_last(rank: int) -> tuple[int, ...]:
    """Which axis of ONNX stands in each place: channels last."""
    return (0, *range(2, rank), 1)


def _from_last(rank: int) -> tuple[int, ...]:
    """The way back: which stored axis each axis of ONNX is."""
    return (0, rank - 1, *range(1, rank - 1))


def _values(graph: LoweredGraph) -> list[Value]:
    return [layer.output for layer in graph.layers]


# --- which values are images


def _images(graph: LoweredGraph) -> set[str]:
    """Names of the values to store with channels last.

    Those are images that a convolution or a pool reads or writes channel by channel, and whatever
    element-wise layers connect with them.
    """
    kept = _kept(graph)
    chosen = {name for layer in graph.layers for name in _channel_by_channel(layer)} - kept
    while True:
        more = set(chosen)
        for layer in graph.layers:
            names = {layer.output.name, *(value.name for value in layer.inputs)}
            if _is_elementwise(layer) and names & chosen:
                more |= names - kept
        if more == chosen:
            return chosen
        chosen = more


def _kept(graph: LoweredGraph) -> set[str]:
    """Names of the values that lie as they are in ONNX.

    Also of those that only element-wise layers read that write such values: to write each byte of
    them elsewhere would cost more there than in the convolution.
    """
    kept = {value.name for value in (*graph.inputs, *graph.outputs)}
    kept |= _by_strides_of_their_own(graph)
    for layer in reversed(graph.layers):
        readers = [other for other in graph.layers if layer.output in other.inputs]
        stay = all(_is_elementwise(other) and other.output.name in kept for other in readers)
        if readers and stay and (_is_elementwise(layer) or _is_convolution(layer)):
            kept.add(layer.output.name)
    return kept


def _is_convolution(layer: Layer) -> bool:
    spatial, _ = _spatial_result(layer)
    return spatial is not None and isinstance(spatial.operator, Convolution)


def _by_strides_of_their_own(graph: LoweredGraph) -> set[str]:
    """Values that an operator reads and writes by strides of its own: they lie as it knows them."""
    found = set()
    for layer in graph.layers:
        operator = layer.expression.operator
        if isinstance(operator, AttentionOperator):
            views = (operator.query, operator.key, operator.value)
            found |= {layer.output.name, *(view.value.name for view in views)}
    return found


def _channel_by_channel(layer: Layer) -> set[str]:
    """Values that a convolution or pool of the layer has one channel after the other."""
    found = set()
    for node in layer.expression.walk():
        if isinstance(node.operator, SPATIAL):
            view = view_of(node.operands[0])
            if view is not None and _is_image(view.value, view.shape, view.strides[1]):
                found.add(view.value.name)
    spatial, places = _spatial_result(layer)
    if spatial is not None and places is not None:
        strides = strides_of(places)
        if strides is not None and _is_image(layer.output, spatial.shape, strides[1]):
            found.add(layer.output.name)
    return found


def _is_image(value: Value, shape: Shape, channel_stride: int) -> bool:
    """Whether a value is all of an image, and its second axis the channels."""
    pixels = prod(value.shape[2:])
    return (
        len(value.shape) in (3, 4)
        and value.shape[0] == 1
        and value.size == prod(shape)
        and value.shape[1] == shape[1]
        and channel_stride in (0, pixels)
    )


def _spatial_result(layer: Layer) -> tuple[Node | None, Array | None]:
    """The layer's convolution or pool, and where in the output its elements go."""
    node, places = result_places(layer.expression)
    while isinstance(node.operator, (Requantize, Elementwise, Lookup)):
        wide = [o for o in node.operands if o.shape == node.shape]
        node = wide[0] if len(wide) == 1 else node
        if len(wide) != 1:
            return None, None
        node, inner = result_places(node)
        places = inner.reshape(-1)[places]
    if not isinstance(node.operator, SPATIAL) or places.size != prod(node.shape):
        return None, None
    addresses = np.empty(places.size, np.int64)
    addresses[places.reshape(-1)] = np.arange(places.size)
    return node, addresses.reshape(node.shape)


def _is_elementwise(layer: Layer) -> bool:
    """Whether every element of the output depends on the elements in the same place alone."""
    nodes = list(layer.expression.walk())
    same = all(value.shape == layer.output.shape for value in layer.inputs)
    return same and all(isinstance(node.operator, IN_ELEMENTWISE_LAYERS) for node in nodes)


# --- how expressions read and write them


def _rewritten(layer: Layer, stored: Mapping[str, Value]) -> Layer:
    """The layer with permutations around what it reads and writes, where there are any."""
    names = {layer.output.name, *(value.name for value in layer.inputs)}
    if not names & set(stored):
        return layer
    expression = _with_stored(layer.expression, stored)
    output = stored.get(layer.output.name, layer.output)
    if output.axes is not None:
        expression = moved_inwards(expression, output.axes)
    inputs = tuple(stored.get(value.name, value) for value in layer.inputs)
    return replace(layer, inputs=inputs, output=output, expression=expression)


def _with_stored(expression: Node, stored: Mapping[str, Value]) -> Node:
    """The same expression over the stored values."""
    done: dict[int, Node] = {}
    for node in expression.walk():
        operator = node.operator
        if isinstance(operator, Load) and operator.value.name in stored:
            leaf = load(stored[operator.value.name])
            done[id(node)] = permuted(leaf, _from_last(len(leaf.shape)))
            continue
        operands = tuple(done[id(operand)] for operand in node.operands)
        same = all(a is b for a, b in zip(operands, node.operands, strict=True))
        new = node if same else apply(operator, *operands)
        done[id(node)] = _in_order_of_storage(new) if isinstance(operator, MatMul) else new
    return done[id(expression)]


def moved_inwards(node: Node, axes: tuple[int, ...]) -> Node:
    """The node with permuted axes; through what works element by element, operands move instead."""
    done: dict[int, Node] = {}

    def move(inner: Node) -> Node:
        if id(inner) not in done:
            done[id(inner)] = _moved(inner, axes, move)
        return done[id(inner)]

    return move(node)


def _moved(node: Node, axes: tuple[int, ...], move: Callable[[Node], Node]) -> Node:
    operator = node.operator
    if isinstance(operator, Elementwise | Requantize):
        operands = (_aligned(operand, len(axes)) for operand in node.operands)
        if isinstance(operator, Requantize):
            shape = tuple(operator.shape[axis] for axis in axes)
            operator = replace(operator, shape=shape)
        return apply(operator, *(move(o) if o.shape else o for o in operands))
    if isinstance(operator, Lookup):
        index, table = node.operands
        return apply(operator, move(index), table)
    return permuted(node, axes)


def _aligned(node: Node, rank: int) -> Node:
    """A single number as it is, anything else with as many axes as the result has."""
    if isinstance(node.operator, Constant) and node.operator.array.size == 1:
        return constant(node.operator.array.reshape(()))
    shape = (1,) * (rank - len(node.shape)) + node.shape
    return node if node.shape == shape else apply(Reshape(shape), node)


def _in_order_of_storage(node: Node) -> Node:
    """A product with constant weights that sums up in the order in which its operand is stored.

    Flattening an image means (channel, row, column) in ONNX; the weights are permuted instead.
    """
    operand, weights = node.operands
    below, offset = stored_integers(operand)
    source, places = result_places(below)
    if not isinstance(weights.operator, Constant) or not isinstance(source.operator, Load):
        return node
    rows = places.reshape(-1, operand.shape[-1])
    order = np.argsort(rows[0])
    whole = np.arange(rows.size).reshape(rows.shape)
    if rows.size != prod(source.shape) or not np.array_equal(rows[:, order], whole):
        return node
    flat = less(apply(Reshape(operand.shape), source), offset)
    return apply(node.operator, flat, constant(weights.operator.array[..., order]))

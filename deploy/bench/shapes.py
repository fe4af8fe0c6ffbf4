"""The operators of the bench, as networks of one layer on random integers from a fixed seed.

Input zero point 5, output zero point -3, one multiplier 0.0009 for the whole tensor, int32 bias:
the inputs with which CMSIS-NN was counted.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erf

from entrain.deploy.lowering.composing import whole
from entrain.deploy.lowering.composites.function import Function
from entrain.deploy.lowering.composites.unit import Unit
from entrain.deploy.lowering.fusion.contract import Mechanism
from entrain.deploy.lowering.fusion.linear import LinearMechanism
from entrain.deploy.lowering.fusion.oscillator import UNIT_STEPS, OscillatorMechanism
from entrain.deploy.lowering.fusion.softmax import SoftmaxMechanism
from entrain.deploy.lowering.graph import Array, Layer, LoweredGraph, Node, Shape, Value
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.elementwise import SUBTRACT_INTEGERS
from entrain.deploy.lowering.operators.layout import Permute, Slice, permuted
from entrain.deploy.lowering.operators.leaves import Load, load
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.quantity import Affine, Reals, Term, rearrange
from entrain.deploy.lowering.requantization import quantized_expression
from entrain.deploy.lowering.translations.elementwise import scaled
from entrain.deploy.lowering.translations.reductions import without_mean
from entrain.deploy.lowering.views import View

INPUT_ZERO_POINT, OUTPUT_ZERO_POINT = 5, -3
MULTIPLIER = 0.0009
INPUT_SCALE = WEIGHT_SCALE = 0.01
OUTPUT_SCALE = INPUT_SCALE * WEIGHT_SCALE / MULTIPLIER
LARGEST_BIAS = 1000
TO_CHANNELS_FIRST, TO_CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
SCORE_STEP = 1 / 16  # of the scores, as the softmax of CMSIS-NN was given them


def _weights(*shape: int, largest: int = 127) -> Array:
    return np.random.default_rng(1).integers(-largest, largest + 1, shape).astype(np.int8)


def _bias(channels: int) -> Array:
    return np.random.default_rng(2).integers(-LARGEST_BIAS, LARGEST_BIAS, channels)


def _input(*shape: int) -> tuple[Value, Node]:
    value = Value("input", shape, "int8", INPUT_SCALE, INPUT_ZERO_POINT, "input")
    return value, apply(
        SUBTRACT_INTEGERS, load(value), constant(np.asarray(INPUT_ZERO_POINT, np.int32))
    )


def _output(shape: Shape) -> Value:
    return Value("ours", shape, "int8", OUTPUT_SCALE, OUTPUT_ZERO_POINT, "ours")


def _network(name: str, source: Value, quantity: Affine, title: str) -> LoweredGraph:
    output = _output(quantity.shape)
    layer = Layer("ours", title, (source,), output, quantized_expression(quantity, output))
    return LoweredGraph(name, (source,), (output,), (layer,))


def fully_connected(
    rows: int, inputs: int, outputs: int, *, largest_weight: int = 127
) -> LoweredGraph:
    """A linear map of each of some rows."""
    source, x = _input(1, rows, inputs)
    weights = constant(_weights(outputs, inputs, largest=largest_weight))
    product = apply(MatMul(), x, weights)
    step = np.asarray(INPUT_SCALE * WEIGHT_SCALE)
    quantity = Affine((Term(product, step),), _bias(outputs) * step, product.shape)
    return _network(f"fully connected {rows}x{inputs} -> {outputs}", source, quantity, "product")


def convolution(
    name: str, image: tuple[int, int, int], kernel: Shape, operator: Convolution
) -> LoweredGraph:
    """A convolution of an image (rows, columns, channels) that lies with its channels last."""
    source, x = _input(1, *image)
    product = apply(operator, permuted(x, TO_CHANNELS_FIRST), constant(_weights(*kernel)))
    step = np.asarray(INPUT_SCALE * WEIGHT_SCALE)
    bias = _bias(kernel[0]).reshape(-1, 1, 1) * step
    first = Affine((Term(product, step),), bias, product.shape)
    shape = tuple(product.shape[axis] for axis in TO_CHANNELS_LAST)
    last = rearrange(first, lambda node: apply(Permute(TO_CHANNELS_LAST), node), shape)
    if not isinstance(last, Affine):
        raise TypeError("a convolution is affine")
    return _network(name, source, last, "convolution")


def residual_add(rows: int, columns: int) -> LoweredGraph:
    """The sum of two tensors of one step."""
    source, x = _input(2, rows, columns)
    parts = [apply(Slice(0, part, 1, 1), x) for part in range(2)]
    step = np.asarray(OUTPUT_SCALE / 2)
    quantity = Affine(tuple(Term(part, step) for part in parts), np.zeros(()), parts[0].shape)
    return _network(f"residual add {rows}x{columns}", source, quantity, "add")


def layer_norm(rows: int, columns: int, epsilon: float = 1e-5) -> LoweredGraph:
    """Each row without its mean, divided by its standard deviation; 64 steps of the result."""
    source, x = _input(1, rows, columns)
    values = Affine((Term(x, np.asarray(INPUT_SCALE)),), np.zeros(()), x.shape)
    unit = whole(Unit(without_mean(values, (2,)), (2,), epsilon * columns))
    quantity = scaled(unit, np.asarray(64 * OUTPUT_SCALE * np.sqrt(columns)), x.shape)
    return _network(f"layer norm {rows}x{columns}", source, quantity, "normalization")


def gelu(rows: int, columns: int) -> LoweredGraph:
    """GELU from about -4 to 4, element by element; 32 steps of the result are 1."""
    source, x = _input(1, rows, columns)
    values = Affine((Term(x, np.asarray(1 / 32)),), np.zeros(()), x.shape)
    quantity = scaled(whole(Function(values, _gelu)), np.asarray(32 * OUTPUT_SCALE), x.shape)
    return _network(f"gelu {rows}x{columns}", source, quantity, "lookup")


def _gelu(x: Reals) -> Reals:
    value: Reals = 0.5 * x * (1.0 + erf(x / np.sqrt(2.0)))
    return value


def attention(
    name: str, mechanism: Mechanism, heads: int, tokens: int, d_head: int
) -> LoweredGraph:
    """An attention core: queries, keys and values of full range, one after the other."""
    width = heads * d_head
    scale = float(np.sqrt(SCORE_STEP / np.sqrt(d_head)))
    source = Value("input", (3, tokens, width), "int8", scale, 0, "input")
    strides = (d_head, width, 1)
    query, key, value = (
        View(source, 0, part * tokens * width, strides, (heads, tokens, d_head))
        for part in range(3)
    )
    output = Value("ours", (1, tokens, width), "int8", scale, 0, "ours")
    node = mechanism.node(query, key, value, output, strides)
    loads = [leaf for leaf in node.walk() if isinstance(leaf.operator, Load)]
    if not loads:
        raise LookupError(f"{name} reads nothing")
    layer = Layer("ours", mechanism.title, (source,), output, node)
    return LoweredGraph(name, (source,), (output,), (layer,))


def softmax_core(heads: int, tokens: int, d_head: int) -> LoweredGraph:
    """Softmax attention."""
    mechanism = SoftmaxMechanism(float(d_head**-0.5))
    return attention("attention core softmax", mechanism, heads, tokens, d_head)


def base2_core(heads: int, tokens: int, d_head: int) -> LoweredGraph:
    """Softmax attention with powers of two."""
    mechanism = SoftmaxMechanism(float(np.log(2.0) * d_head**-0.5))
    return attention("attention core softmax base 2", mechanism, heads, tokens, d_head)


def linear_core(feature: str, heads: int, tokens: int, d_head: int) -> LoweredGraph:
    """Linear attention."""
    mechanism = LinearMechanism(feature, 1 / 64)
    return attention(f"attention core linear {feature}", mechanism, heads, tokens, d_head)


def oscillator_core(
    coupling: str, heads: int, tokens: int, d_head: int, d_osc: int = 2
) -> LoweredGraph:
    """Oscillator attention on random anchors, p = 1."""
    vectors = np.random.default_rng(3).normal(size=(heads, tokens, d_osc))
    radius = (UNIT_STEPS - 0.5 * np.sqrt(d_osc)) / np.linalg.norm(vectors, axis=-1, keepdims=True)
    anchors = np.rint(vectors * radius).astype(np.int8)
    mechanism = OscillatorMechanism(anchors, coupling, float(d_head**-0.5), 1 / 64, 1)
    return attention(f"attention core oscillator {coupling}", mechanism, heads, tokens, d_head)

"""Layers of each kind whose result may take the bytes of what it reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import window_layers

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.lowering.composing import whole
from entrain.deploy.lowering.composites.unit import Unit
from entrain.deploy.lowering.graph import Layer, Value
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.layout import Reshape, Slice
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.operators.lookup import Lookup
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.quantity import Affine, Term
from entrain.deploy.lowering.requantization import quantized_expression
from entrain.deploy.lowering.translations.elementwise import scaled
from entrain.deploy.lowering.translations.offsets import less
from entrain.deploy.lowering.translations.reductions import without_mean

BYTES = 4000
GIVEN = Value("given", (BYTES,), "int8", 1.0, 0, "given")
OTHER = Value("other", (BYTES,), "int8", 1.0, -20, "other")


def source(name, choose):
    dtype, zero_point = (("int8", 5), ("uint8", 133))[choose(0, 1)]
    return Value(name, (BYTES,), dtype, 1.0, zero_point, name)


def from_the_first_byte(choose):
    """The same choices, but images begin with their value."""

    def chosen(low, high):
        return low if BYTES // 4 < high < BYTES else choose(low, high)

    return chosen


def same_size(name, value, choose, groups):
    """A window that moves by one, and padding that keeps the image's size and its channels."""
    rows, columns, channels = choose(1, 11), choose(1, 7), choose(1, 40)
    count = {"one": 1, "two": 2, "depthwise": channels}[groups]
    channels = channels + channels % count
    kernel = choose(1, min(5, 2 * rows)), choose(1, min(5, 2 * columns))
    dilation = choose(1, 2)
    reach = [dilation * (k - 1) for k in kernel]
    before = [choose(0, r) for r in reach]
    padding = (*before, *(r - b for r, b in zip(reach, before, strict=True)))
    operator = Convolution((1, 1), padding, (dilation, dilation), count)
    random = np.random.default_rng(choose(0, 2**30))
    weights = random.integers(-128, 128, (channels, channels // count, *kernel)).astype(np.int8)
    operand = window_layers.image(value, (rows, columns, channels), choose)
    summed = apply(operator, operand, constant(weights))
    step = 1 / (80 * float(np.sqrt(weights[0].size)))
    return window_layers.rescaled(name, value, summed, choose, bias=True, step=step)


def pointwise(name, value, choose):
    rows, columns, inputs = choose(1, 9), choose(1, 5), choose(1, 70)
    random = np.random.default_rng(choose(0, 2**30))
    shape = (choose(1, inputs), inputs, 1, 1)
    weights = constant(random.integers(-128, 128, shape).astype(np.int8))
    stride = choose(1, 2)
    operator = Convolution((stride, stride), (0, 0, 0, 0), (1, 1), 1)
    summed = apply(operator, window_layers.image(value, (rows, columns, inputs), choose), weights)
    step = 1 / (80 * float(np.sqrt(inputs)))
    return window_layers.rescaled(
        name, value, summed, choose, bias=True, step=step, positions=bool(choose(0, 1))
    )


def matrix(value, rows, columns):
    part = apply(Slice(0, 0, 1, rows * columns), load(value))
    return less(apply(Reshape((1, rows, columns)), part), value.zero_point)


def product(name, value, choose, joins=(None, "input", "other")):
    """A product with weights, at times joined by its own input, or by another value."""
    rows, depth = choose(1, 13), choose(1, 90)
    joined = joins[choose(0, len(joins) - 1)]
    columns = depth if joined == "input" else choose(1, depth)
    random = np.random.default_rng(choose(0, 2**30))
    weights = constant(random.integers(-128, 128, (columns, depth)).astype(np.int8))
    x = matrix(value, rows, depth)
    terms = [Term(apply(MatMul(), x, weights), np.asarray(0.2 / (80 * np.sqrt(depth))))]
    residual = {None: None, "input": value, "other": OTHER}[joined]
    inputs = [value]
    if residual is not None:
        terms.append(Term(matrix(residual, rows, columns), np.asarray(0.4)))
        inputs = list(dict.fromkeys([value, residual]))
    output = Value(name, (1, rows, columns), "int8", 1.0, -3, name)
    quantity = Affine(tuple(terms), np.zeros(()), output.shape)
    return Layer(name, "product", tuple(inputs), output, quantized_expression(quantity, output))


def looked_up(name, value, choose):
    """A function of bytes from any one on."""
    rows, columns = choose(1, 9), choose(1, 70)
    part = apply(Slice(0, choose(0, 900), 1, rows * columns), load(value))
    index = apply(Reshape((rows, columns)), less(part, integer_range(value.dtype)[0]))
    dtype = ("int8", "uint8")[choose(0, 1)]
    ends, random = integer_range(dtype), np.random.default_rng(choose(0, 2**30))
    table = constant(random.integers(*ends, 256, endpoint=True).astype(dtype))
    output = Value(name, index.shape, dtype, 1.0, 0, name)
    return Layer(name, "lookup", (value,), output, apply(Lookup(), index, table))


def normalized(name, value, choose):
    """Rows drawn to one length, with one factor for all columns or one for each."""
    rows, columns = choose(1, 9), choose(2, 70)
    x = matrix(value, rows, columns)
    random = np.random.default_rng(choose(0, 2**30))
    each = random.uniform(20, 40, columns) if choose(0, 1) else np.asarray(30.0)
    affine = Affine((Term(x, np.asarray(0.05)),), np.zeros(()), x.shape)
    vector = without_mean(affine, (2,)) if choose(0, 1) else affine
    unit = whole(Unit(vector, (2,), 1e-5 * columns))
    output = Value(name, x.shape, "int8", 1.0, -3, name)
    quantity = scaled(unit, each * np.sqrt(columns), x.shape)
    expression = quantized_expression(quantity, output)
    return Layer(name, "normalization", (value,), output, expression)


def layers_of(choose, turn):
    """One of each kind that may overwrite what it reads, each of a value of its own."""
    choose = from_the_first_byte(choose)

    def given_to(kind):
        return source(f"{kind}_{turn}_given", choose)

    made = [
        pointwise(f"pointwise_{turn}", given_to("pointwise"), choose),
        product(f"product_{turn}", given_to("product"), choose),
        looked_up(f"looked_up_{turn}", given_to("looked_up"), choose),
        normalized(f"normalized_{turn}", given_to("normalized"), choose),
        *(
            same_size(f"same_{groups}_{turn}", given_to(f"same_{groups}"), choose, groups)
            for groups in ("one", "two", "depthwise")
        ),
    ]
    for one in window_layers.layers((source("any", choose),), choose):
        name, value = f"{one.name}_{turn}", given_to(one.name)
        made.append(renamed(one, name, replace(one.inputs[0], name=value.name)))
    return made


def renamed(one, name, value):
    """The same layer of another value; only that value's name may differ."""
    (before,) = one.inputs

    def rewritten(node):
        if getattr(node.operator, "value", None) == before:
            return load(value)
        operands = tuple(rewritten(operand) for operand in node.operands)
        return replace(node, operands=operands)

    expression = rewritten(one.expression)
    return Layer(name, one.title, (value,), replace(one.output, name=name), expression)

"""Which values a kernel offers to be overwritten, and what the planner makes of the offer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import window_layers
from in_place_layers import (
    GIVEN,
    from_the_first_byte,
    product,
    source,
)

from entrain.deploy.lowering.artifact import describe
from entrain.deploy.lowering.emit import emit_model
from entrain.deploy.lowering.functions import layer_function
from entrain.deploy.lowering.graph import Layer, LoweredGraph, Value
from entrain.deploy.lowering.host import HostModel
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.kernels import find_kernel
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.operators.pool import PoolSum, Window
from entrain.deploy.lowering.program import build_program
from entrain.deploy.lowering.quantity import Affine, Term
from entrain.deploy.lowering.requantization import quantized_expression
from entrain.deploy.lowering.translations.offsets import less


def always(number):
    """Choices as low as can be, but of at least this number."""
    return lambda low, high: min(high, max(low, number))


def convolved(shape, kernel, outputs, strides=(1, 1), padding=(0, 0, 0, 0), dilation=1, groups=1):
    choose = from_the_first_byte(always(0))
    operand = window_layers.image(GIVEN, shape, choose)
    weights = np.ones((outputs, shape[2] // groups, *kernel), np.int8)
    operator = Convolution(strides, padding, (dilation, dilation), groups)
    summed = apply(operator, operand, constant(weights))
    return window_layers.rescaled("y", GIVEN, summed, choose, bias=True, step=0.01)


def pooled(shape, kernel, strides, padding=(0, 0, 0, 0)):
    choose = from_the_first_byte(always(0))
    window = Window(kernel, strides, padding, (1, 1))
    summed = apply(PoolSum(window), window_layers.image(GIVEN, shape, choose))
    return window_layers.rescaled("y", GIVEN, summed, choose, bias=False, step=0.1)


AROUND = (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("layer", "offered"),
    [
        (convolved((5, 4, 8), (1, 1), 8), True),
        (convolved((5, 4, 8), (1, 1), 7), True),
        (convolved((5, 4, 8), (1, 1), 9), False),
        (convolved((6, 4, 8), (1, 1), 8, strides=(2, 2)), True),
        (convolved((5, 4, 8), (3, 3), 8, padding=AROUND), True),
        (convolved((5, 4, 8), (3, 3), 16, padding=AROUND), False),
        (convolved((5, 4, 8), (3, 3), 8), True),
        (convolved((5, 4, 8), (3, 3), 8, padding=(2, 2, 2, 2)), False),
        (convolved((5, 4, 8), (3, 3), 8, padding=AROUND, groups=2), True),
        (convolved((5, 4, 8), (3, 3), 8, padding=AROUND, groups=8), True),
        (convolved((5, 4, 8), (3, 3), 16, padding=AROUND, groups=8), False),
        (convolved((9, 9, 8), (3, 3), 8, padding=(2, 2, 2, 2), dilation=2, groups=8), True),
        (convolved((9, 9, 16), (3, 3), 16, padding=(2, 2, 2, 2), dilation=2, groups=16), False),
        (convolved((9, 9, 8), (5, 5), 8, padding=(2, 2, 2, 2), groups=8), True),
        (convolved((9, 9, 8), (3, 3), 8, (2, 2), AROUND, groups=8), True),
        (pooled((5, 4, 8), (3, 3), (1, 1), AROUND), False),
        (pooled((6, 4, 8), (2, 2), (2, 2)), True),
    ],
)
def test_a_value_is_offered_only_if_no_byte_is_read_after_it_was_written(layer, offered):
    assert find_kernel(layer).overwrites == (("given",) if offered else ())


def test_a_residual_is_overwritten_byte_by_byte():
    value = source("x", always(0))
    own = find_kernel(product("y", value, always(12), ["input"]))
    assert own.overwrites == ("x",)
    other = find_kernel(product("y", value, always(12), ["other"]))
    assert set(other.overwrites) == {"x", "other"}
    assert [name for name, _ in other.in_place_calls] == ["x"]


def test_what_is_read_later_stays(tmp_path):
    """The second of two products of a value may overwrite it, the first may not."""
    given_to_it = replace(source("input", always(0)), shape=(1, 40, 16))
    x = on("x", given_to_it)
    left, right = on("left", x.output), on("right", x.output)
    both = Affine(
        tuple(Term(less(load(each.output), -3), np.asarray(0.5)) for each in (left, right)),
        np.zeros(()),
        x.output.shape,
    )
    read = (left.output, right.output)
    expression = quantized_expression(both, replace(x.output, name="sum"))
    total = Layer("sum", "add", read, replace(x.output, name="sum"), expression)
    end = on("end", total.output)
    layers = (x, left, right, total, end)
    graph = LoweredGraph("later", (given_to_it,), (end.output,), layers)
    made = build_program(graph)
    assert made.functions[1].overwrites == ("x",)
    assert made.plan.overwritten["right"] == "x"
    assert "left" not in made.plan.overwritten
    for name, text in emit_model(made, "kws01").files:
        (tmp_path / name).write_text(text)
    host = HostModel(describe(made, "kws01"), tmp_path)
    one = np.random.default_rng(0).integers(-128, 128, given_to_it.shape).astype(np.int8)
    right_values = interpret(graph, one)
    for name, found in host.trace(one).items():
        np.testing.assert_array_equal(found, right_values[name], err_msg=name)


def on(name, value):
    """A product that keeps the shape of a value."""
    _, _, width = value.shape
    weights = np.random.default_rng(len(name)).integers(-128, 128, (width, width)).astype(np.int8)
    x = less(load(value), value.zero_point)
    output = Value(name, value.shape, "int8", 1.0, -3, name)
    term = Term(apply(MatMul(), x, constant(weights)), np.asarray(0.003))
    quantity = Affine((term,), np.zeros(()), value.shape)
    return Layer(name, "product", (value,), output, quantized_expression(quantity, output))


def test_only_the_two_pointers_that_share_bytes_lose_restrict():
    value = source("x", always(0))
    function = layer_function(product("y", value, always(12), ["other"]))
    head = function.text_where("x").split("{")[0]
    assert "*x_in" in head
    assert "*output" in head
    assert "*restrict other_in" in head
    assert "*restrict weights" in head
    assert "*restrict x_in" in function.text_where(None)
    assert "*restrict output" in function.text_where(None)

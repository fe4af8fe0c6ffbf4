"""Sums of bytes are kernels: to the bit what numpy computes, on every instruction set."""

from __future__ import annotations

from dataclasses import replace
from math import inf, prod

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_programs import check_on_board, check_sanitized, expected, sanitized
from stored_values import BYTES, STORED, stored_bytes, tensor

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.lowering.artifact import describe
from entrain.deploy.lowering.emit import emit_model
from entrain.deploy.lowering.graph import Layer, LoweredGraph, Value
from entrain.deploy.lowering.host import HostModel
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.kernels import find_kernel
from entrain.deploy.lowering.kernels.add import MOST_ADDENDS, match_add
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.layout import Broadcast, Permute, Slice
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.program import build_program
from entrain.deploy.lowering.quantity import Affine, Term
from entrain.deploy.lowering.requantization import quantized_expression
from entrain.deploy.lowering.translations.offsets import less

INSTRUCTION_SETS = {"scalar": (), "dsp": ("-DENTRAIN_EMULATE_DSP",)}
BOARDS = ("mps2-an386", "mps3-an547")


def layer(
    terms,
    *,
    name="sum",
    bias=0.0,
    dtype="int8",
    zero_point=-3,
    bounds=(-inf, inf),
    shape=None,
):
    """The layer that adds ``factor * node`` and a bias, in steps of its result."""
    shape = shape or terms[0][0].shape
    made = tuple(Term(node, np.asarray(factor)) for node, factor in terms)
    output = Value(name, shape, dtype, 1.0, zero_point, name)
    quantity = Affine(made, np.asarray(bias, float), shape, *bounds)
    expression = quantized_expression(quantity, output)
    read = {node.operator.value for node in expression.walk() if hasattr(node.operator, "value")}
    inputs = tuple(sorted(read, key=lambda value: value.name))
    return Layer(name, "add", inputs, output, expression)


def random_layer(name, choose):
    """Any shape, types, zero points, bounds, factors and constants; always a kernel."""
    shape = (choose(1, 5), choose(1, 40))
    random = np.random.default_rng(choose(0, 2**30))
    count = (2, 2, 2, 1, 3, MOST_ADDENDS)[choose(0, 5)]
    most = 0.5 if count == MOST_ADDENDS else 2.0 ** choose(-8, 1)
    terms = [
        (
            tensor(sorted(STORED)[choose(0, 5)], choose(0, BYTES - prod(shape)), shape),
            random.choice([-1, 1]) * random.uniform(0.3, 1) * most,
        )
        for _ in range(count)
    ]
    dtype = ("int8", "uint8")[choose(0, 1)]
    ends = integer_range(dtype)
    bias_shape = ((), (), shape[1:], shape, (1, *shape))[choose(0, 4)]
    return layer(
        terms,
        name=name,
        bias=random.uniform(-40, 40, bias_shape) * choose(0, 1),
        dtype=dtype,
        zero_point=(*ends, choose(*ends))[choose(0, 2)],
        bounds=((-inf, inf), (0.0, inf), (-inf, 0.0), (-30.0, 40.0))[choose(0, 3)],
        shape=(1, *shape) if len(bias_shape) == 3 else shape,
    )


def is_kernel(one):
    return match_add(one) is not None


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_sum_is_what_numpy_computes(tmp_path, instruction_set, data):
    def choose(low, high):
        return data.draw(st.integers(low, high))

    layers = [random_layer(f"layer_{number}", choose) for number in range(8)]
    assert all(map(is_kernel, layers))
    stored = stored_bytes(data.draw(st.integers(0, 99)))
    check_sanitized(tmp_path, layers, stored, *INSTRUCTION_SETS[instruction_set])


def residual(name, count):
    """The layer of the bench, for so many elements: two tensors of about one step, each halved."""
    parts = [tensor("int8_middle", part * count, (count,)) for part in range(2)]
    return layer([(part, 0.5 + 0.01 * k) for k, part in enumerate(parts)], name=name)


def fixed_layers():
    random = np.random.default_rng(0)

    def choose(low, high):
        return int(random.integers(low, high, endpoint=True))

    # all that may be left of a round of the loop, on either instruction set
    counts = (*range(1, 10), 12, 15, 16, 17, 29, 31, 32, 33, 63, 64, 65)
    odd = [residual(f"odd_{count}", count) for count in counts]
    return [*odd, *(random_layer(f"random_{number}", choose) for number in range(30))]


# instructions an element at most
GOALS = {"mps2-an386": 6.5, "mps3-an547": 2.0}


@pytest.mark.parametrize("board", BOARDS)
def test_boards_compute_the_same_in_few_instructions(tmp_path, board):
    large = residual("large", 1568)
    layers = [*fixed_layers(), large]
    assert all(map(is_kernel, layers))
    counts = check_on_board(tmp_path, board, layers, stored_bytes(1))
    assert counts[large.symbol] / large.output.size < GOALS[board]


@pytest.mark.long
@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an385-m0"])
def test_small_cores_compute_the_same(tmp_path, board):
    check_on_board(tmp_path, board, fixed_layers(), stored_bytes(2))


def test_every_pair_of_bytes(tmp_path):
    pairs = {
        "left": Value("left", (256, 256), "uint8", 1.0, 0, "left"),
        "right": Value("right", (256, 256), "int8", 1.0, 0, "right"),
    }
    terms = [(load(pairs["left"]), 0.731), (load(pairs["right"]), -1.207)]
    one = layer(terms, dtype="uint8", zero_point=40)
    left, right = np.mgrid[:256, -128:128]
    stored = {"left": left.astype(np.uint8), "right": right.astype(np.int8)}
    (found,) = sanitized(tmp_path, [one], stored)
    np.testing.assert_array_equal(found, expected([one], stored)[0])
    exact = 40 + 0.731 * left - 1.207 * right
    rounded = np.clip(np.floor(exact + 0.5), 0, 255)
    nearly_half = np.abs(exact - np.floor(exact) - 0.5) < 2.0**-12
    np.testing.assert_array_equal(found[~nearly_half], rounded[~nearly_half])
    assert nearly_half.mean() < 0.002


def test_a_value_that_is_added_to_itself(tmp_path):
    x = tensor("int8_middle", 17, (5, 9))
    shifted = layer([(x, 0.4), (tensor("int8_middle", 18, (5, 9)), 0.4)], name="shifted")
    check_sanitized(tmp_path, [shifted, layer([(x, 0.4), (x, 0.3)])], stored_bytes(0))


def test_constants_of_each_channel_lie_in_flash_once():
    x, y = (tensor("int8_middle", first, (7, 12)) for first in (0, 300))
    ((name, array),) = match_add(layer([(x, 0.5), (y, 0.4)], bias=np.arange(12.0))).constants
    assert (name, array.shape, array.dtype) == ("constants", (12,), np.int32)
    assert match_add(layer([(x, 0.5), (y, 0.4)], bias=3.0)).constants == ()


def test_operands_in_another_order_or_broadcast_are_no_kernel():
    x = tensor("int8_middle", 0, (6, 6))
    assert is_kernel(layer([(x, 0.5), (tensor("uint8_low", 0, (6, 6)), 0.5)]))
    assert not is_kernel(layer([(x, 0.5), (apply(Permute((1, 0)), x), 0.5)]))
    assert not is_kernel(layer([(x, 0.5), (tensor("uint8_low", 0, (6,)), 0.5)]))
    row = apply(Broadcast((6, 6)), tensor("uint8_low", 0, (6,)))
    assert not is_kernel(layer([(x, 0.5), (row, 0.5)]))


def test_factors_that_are_large_or_differ_are_no_kernel(tmp_path):
    x, y = (tensor("int8_middle", first, (6, 8)) for first in (0, 300))
    steep = layer([(x, 90.0), (y, 110.0)], name="steep")
    each = layer([(x, np.linspace(0.1, 0.9, 8)), (y, 1.0)], name="each")
    many = layer([(x, 0.1)] * (MOST_ADDENDS + 1), name="many")
    assert not any(map(is_kernel, (steep, each, many)))
    check_sanitized(tmp_path, [steep, each, many], stored_bytes(0))


def test_sums_of_products_keep_thirty_bits():
    x, y = tensor("int8_middle", 0, (6, 8)), tensor("int8_middle", 300, (6, 6))
    sums = apply(MatMul(), x, constant(np.full((6, 8), 3, np.int8)))
    alone, joined = layer([(sums, 0.01)]), layer([(sums, 0.01), (y, 0.7)])
    for one in (alone, joined):
        multipliers = one.expression.operands[one.expression.operator.terms :]
        assert max(abs(int(m.operator.reference())) for m in multipliers[:-1]) > 2**28
        assert not is_kernel(one)
        assert find_kernel(one).header == "entrain_matmul.h"


def test_the_result_may_take_the_bytes_of_an_addend(tmp_path):
    source = replace(STORED["int8_low"], name="source", shape=(2, 301))
    left, right = (apply(Slice(0, part, 1, 1), load(source)) for part in range(2))
    layers = [layer([(left, 0.7), (right, 0.4)], name="first")]
    for name in ("second", "third", "last"):
        before = layers[-1].output
        layers.append(layer([(right, 0.3), (less(load(before), -3), 0.8)], name=name))
    program = build_program(LoweredGraph("sums", (source,), (layers[-1].output,), tuple(layers)))
    assert program.plan.overwritten == {"second": "first", "third": "second"}
    for name, text in emit_model(program, "sums").files:
        (tmp_path / name).write_text(text)
    host = HostModel(describe(program, "sums"), tmp_path)
    one = stored_bytes(4)["int8_low"][:602].reshape(2, 301)
    for name, values in host.trace(one).items():
        np.testing.assert_array_equal(values, interpret(program.graph, one)[name], err_msg=name)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_residual_block_of_a_users_model(model, lower, dtype, relu):
    x = model.quantized(model.input(1, 8, 6, 5), 0.0313, 3)
    table = model.constant(np.linspace(-1, 1, 40).reshape(1, 8, 1, 5))
    branch = model.quantized(model.node("Mul", x, table), 0.0237, -7)
    total = model.node("Add", x, branch)
    total = model.node("Relu", total) if relu else total
    zero = {"int8": -11, "uint8": 0 if relu else 120}[dtype]
    lowered = lower(model, model.quantized(total, 0.0411, zero, dtype))
    assert "entrain_add(" in dict(lowered.source.files)["model.c"]
    lowered.check(equal=0.999)

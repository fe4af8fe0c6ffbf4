"""Kernels whose result takes the bytes of what they read: to the bit what numpy computes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import window_layers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_programs import check_sanitized
from programs import require_emulator

from entrain.deploy.arithmetic import integer_range
from entrain.deploy.boards import find_board
from entrain.deploy.build import build_firmware
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.lowering.artifact import describe
from entrain.deploy.lowering.composing import whole
from entrain.deploy.lowering.composites.unit import Unit
from entrain.deploy.lowering.emit import emit_model
from entrain.deploy.lowering.functions import layer_function
from entrain.deploy.lowering.graph import Layer, LoweredGraph, Value
from entrain.deploy.lowering.host import HostModel
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.kernels import find_kernel
from entrain.deploy.lowering.memory import MemoryPlan, Placement, aligned
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.convolution import Convolution
from entrain.deploy.lowering.operators.layout import Reshape, Slice
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.operators.lookup import Lookup
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.operators.pool import PoolSum, Window
from entrain.deploy.lowering.operators.quantizers import Requantize
from entrain.deploy.lowering.program import Program, build_program
from entrain.deploy.lowering.quantity import Affine, Term
from entrain.deploy.lowering.requantization import quantized_expression
from entrain.deploy.lowering.translations.elementwise import scaled
from entrain.deploy.lowering.translations.offsets import less
from entrain.deploy.lowering.translations.reductions import without_mean

BYTES = 4000
GIVEN = Value("given", (BYTES,), "int8", 1.0, 0, "given")
OTHER = Value("other", (BYTES,), "int8", 1.0, -20, "other")
INSTRUCTION_SETS = {"scalar": (), "dsp": ("-DENTRAIN_EMULATE_DSP",)}
BOARDS = ("mps2-an386", "mps3-an547")
SMALL_CORES = ("mps2-an385", "mps2-an385-m0")


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


def stored_of(layers, seed):
    random = np.random.default_rng(seed)
    return {
        value.name: random.integers(-128, 128, BYTES).astype(np.int8).view(value.dtype)
        for one in layers
        for value in one.inputs
    }


def check_overwritten(folder, instruction_set, data):
    def choose(low, high):
        return data.draw(st.integers(low, high))

    offered = {one: layer_function(one).overwrites for one in layers_of(choose, 0)}
    layers = [one for one, names in offered.items() if names]
    names = [offered[one][choose(0, len(offered[one]) - 1)] for one in layers]
    stored = stored_of(layers, choose(0, 9))
    options = INSTRUCTION_SETS[instruction_set]
    check_sanitized(folder, layers, stored, *options, overwritten=names)


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_whatever_is_overwritten_the_result_is_what_numpy_computes(tmp_path, instruction_set, data):
    check_overwritten(tmp_path, instruction_set, data)


@pytest.mark.long
@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_many_overwritten_layers_are_what_numpy_computes(tmp_path, instruction_set, data):
    check_overwritten(tmp_path, instruction_set, data)


# --- on the emulated boards: every layer after one that makes what it overwrites


def overwriting_program(turns):
    """Layers of fixed seeds, each of which overwrites its input."""
    random = np.random.default_rng(7)

    def choose(low, high):
        return int(random.integers(low, high, endpoint=True))

    layers, values, scratch, overwritten = [], [], [], {}
    for turn in range(turns):
        for one in layers_of(choose, turn):
            function = layer_function(one)
            value = one.inputs[0]
            if function.overwrites != (value.name,) or len(one.inputs) > 1:
                continue
            step = len(layers)
            layers += [copied(value), one]
            overwritten[one.name] = value.name
            values.append(Placement(value.name, BYTES, 0, step, step + 1))
            values.append(Placement(one.name, one.output.size, 0, step + 1, step + 1))
            if function.scratch_bytes:
                place = Placement(one.name, function.scratch_bytes, BYTES, step + 1, step + 1)
                scratch.append(place)
    last = copied(Value("last", (BYTES,), "int8", 1.0, 0, "last"))
    layers.append(last)
    graph = LoweredGraph("in_place", (GIVEN,), (last.output,), tuple(layers))
    arena = BYTES + max(aligned(each.size) for each in scratch)
    plan = MemoryPlan(tuple(values), tuple(scratch), overwritten, arena, arena)
    return Program(graph, tuple(map(layer_function, layers)), plan)


def copied(value):
    """The model's input, as integers of the value's type."""
    offset, limits = (128, (0, 255)) if value.dtype == "uint8" else (0, (-128, 127))
    requantize = Requantize((BYTES,), value.dtype, 1, 0, 29, offset, *limits)
    one = constant(np.full((), 2**29, np.int32))
    expression = apply(requantize, load(GIVEN), one, constant(np.zeros((), np.int32)))
    return Layer(value.name, "copy", (GIVEN,), value, expression)


@pytest.fixture(scope="module")
def program():
    return overwriting_program(5)


@pytest.mark.parametrize(
    "board", [*BOARDS, *(pytest.param(each, marks=pytest.mark.long) for each in SMALL_CORES)]
)
def test_the_boards_compute_the_same_in_place(program, tmp_path, board):
    require_emulator()
    assert len(program.plan.overwritten) >= 30
    lowered, image = tmp_path / "lowered", tmp_path / "firmware.elf"
    lowered.mkdir()
    for name, text in emit_model(program, "kws01").files:
        (lowered / name).write_text(text)
    build_firmware(find_board(board), lowered, image, trace=True)
    given_bytes = np.random.default_rng(1).integers(-128, 128, BYTES).astype(np.int8)
    right = interpret(program.graph, given_bytes)
    with connect(QemuAddress(board), image) as client:
        traced = client.trace(given_bytes.tobytes())
    for number, one in enumerate(program.graph.layers):
        found = np.frombuffer(traced[number], one.output.dtype).reshape(one.output.shape)
        np.testing.assert_array_equal(found, right[one.name], err_msg=one.name)


# --- what is offered


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
        (convolved((9, 9, 8), (3, 3), 8, padding=(2, 2, 2, 2), dilation=2, groups=8), False),
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

"""Overwriting an input: offered only where no output element needs another one's place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrain.deploy.lowering import functions
from entrain.deploy.lowering.artifact import describe
from entrain.deploy.lowering.emit import emit_model
from entrain.deploy.lowering.functions import generated_function
from entrain.deploy.lowering.graph import Layer, LoweredGraph, Value
from entrain.deploy.lowering.host import HostModel
from entrain.deploy.lowering.in_place import overwritable
from entrain.deploy.lowering.interpreter import interpret, run_layer
from entrain.deploy.lowering.kernels.contract import Kernel
from entrain.deploy.lowering.operators import apply, constant
from entrain.deploy.lowering.operators.elementwise import ADD_INTEGERS, SUBTRACT_INTEGERS
from entrain.deploy.lowering.operators.layout import Broadcast, Permute, Reshape, Slice
from entrain.deploy.lowering.operators.leaves import load
from entrain.deploy.lowering.operators.lookup import Lookup
from entrain.deploy.lowering.operators.matmul import MatMul
from entrain.deploy.lowering.operators.quantizers import Requantize
from entrain.deploy.lowering.operators.reduction import Sum
from entrain.deploy.lowering.program import planned

SHAPE = (4, 4)  # square, so that transposing keeps it


def value(name, shape=SHAPE, dtype="int8"):
    return Value(name, shape, dtype, 1.0, 0, name)


A, B = value("a"), value("b")
TABLE = constant(np.random.default_rng(0).permutation(256).astype(np.uint8).view(np.int8))


def looked_up(node):
    shifted = apply(ADD_INTEGERS, node, constant(np.full((1, 1), 128)))
    return apply(Lookup(), shifted, TABLE)


def added(x, y):
    return apply(ADD_INTEGERS, x, y)


def transposed(x):
    return apply(Permute((1, 0)), x)


def turned(x):
    """Rows in reverse order."""
    return apply(Slice(0, 3, -1, 4), x)


def flattened(x):
    return apply(Reshape(SHAPE), apply(Reshape((16,)), x))


def row_sums(x):
    return apply(Broadcast(SHAPE), apply(Sum((1,)), x))


def product(x, y):
    return apply(MatMul(), x, y)


def layer(expression, reads=(A, B), dtype="int8", shape=SHAPE, name="y"):
    """The expression, narrowed to 8 bits."""
    operator = Requantize(shape, dtype, 1, 0, 4, 0, *(-128, 127) if dtype == "int8" else (0, 255))
    one = constant(np.array([[11]], np.int32))
    narrowed = apply(operator, expression, one, constant(np.zeros((1, 1), np.int32)))
    return Layer(name, "test", tuple(reads), value(name, shape, dtype), narrowed)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (added(load(A), load(B)), {"a", "b"}),
        (added(load(A), transposed(load(B))), {"a"}),
        (added(load(A), transposed(load(A))), {"b"}),
        (added(transposed(transposed(load(A))), flattened(load(B))), {"a", "b"}),
        (added(load(A), turned(load(B))), {"a"}),
        (added(load(A), turned(turned(load(A)))), {"a", "b"}),
        (added(load(A), row_sums(load(A))), {"b"}),
        (added(load(A), row_sums(load(B))), {"a"}),
        (added(load(A), product(load(B), load(B))), {"a"}),
        (looked_up(load(A)), {"a", "b"}),
        (looked_up(transposed(load(A))), {"b"}),
        (apply(SUBTRACT_INTEGERS, load(A), constant(np.arange(4))), {"a", "b"}),
    ],
)
def test_a_value_is_offered_if_each_element_needs_only_its_own_place_of_it(expression, expected):
    assert set(overwritable(layer(expression))) == expected


def test_a_value_of_another_size_is_not_offered():
    short = value("short", (1, 4))
    assert overwritable(layer(added(load(A), load(short)), (A, short))) == ("a",)


def test_signs_do_not_matter_but_widths_do():
    assert "a" in overwritable(layer(load(A), (A,), "uint8"))
    wide = value("wide", dtype="int16")
    assert overwritable(layer(load(wide), (wide,))) == ()


EXPRESSIONS = st.recursive(
    st.sampled_from([load(A), load(B)]),
    lambda inner: st.one_of(
        inner.map(transposed),
        inner.map(turned),
        inner.map(flattened),
        inner.map(row_sums),
        st.builds(added, inner, inner),
    ),
    max_leaves=5,
)


@given(EXPRESSIONS)
@settings(max_examples=150, deadline=None)
def test_changing_one_place_of_what_is_offered_changes_no_other_place_of_the_output(expression):
    made = layer(expression)
    random = np.random.default_rng(1)
    values = {name: random.integers(-9, 9, SHAPE).astype(np.int8) for name in ("a", "b")}
    before = run_layer(made, values)
    for name in overwritable(made):
        for place in np.ndindex(SHAPE):
            changed = {**values, name: values[name].copy()}
            changed[name][place] += 20
            elsewhere = np.ones(SHAPE, bool)
            elsewhere[place] = False
            after = run_layer(made, changed)
            np.testing.assert_array_equal(after[elsewhere], before[elsewhere])


def test_bytes_that_no_pointer_of_the_function_has_cannot_be_shared(monkeypatch):
    """Or the compiler would go on assuming that nothing else points to them."""
    kernel = Kernel(layer(load(A), (A,)), "entrain_add.h", "", (), overwrites=("missing",))
    monkeypatch.setattr(functions, "find_kernel", lambda _: kernel)
    with pytest.raises(LookupError, match="missing_in"):
        functions.layer_function(kernel.layer)


def test_generated_c_that_overwrites_its_input_computes_the_same(tmp_path):
    given_to_it = value("input")
    x = layer(transposed(load(given_to_it)), (given_to_it,), name="x")
    h = layer(product(load(x.output), load(x.output)), (x.output,), name="h")
    y = layer(added(load(x.output), looked_up(load(h.output))), (x.output, h.output), name="y")
    out = layer(row_sums(load(y.output)), (y.output,), name="out")
    layers = (x, h, y, out)
    graph = LoweredGraph("residual", (given_to_it,), (out.output,), layers)
    program = planned(graph, tuple(generated_function(each) for each in layers))
    assert set(program.plan.overwritten) == {"y"}
    assert program.plan.arena_bytes == 32
    for name, text in emit_model(program, "kws01").files:
        (tmp_path / name).write_text(text)
    host = HostModel(describe(program, "kws01"), tmp_path)
    for seed in range(5):
        one = np.random.default_rng(seed).integers(-128, 128, SHAPE).astype(np.int8)
        expected = interpret(graph, one)
        for name, found in host.trace(one).items():
            np.testing.assert_array_equal(found, expected[name], err_msg=name)
        np.testing.assert_array_equal(host.run(one), expected["out"])

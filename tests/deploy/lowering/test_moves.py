"""What only moves: shapes, orders, repetitions; and moves that are no layer at all."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.operators.join import Join
from entrain.deploy.lowering.operators.layout import Broadcast, Permute, Reshape
from entrain.deploy.lowering.operators.leaves import Load

RANDOM = np.random.default_rng(29)
X = 0.05, 3  # scale and zero point


def operand(model, *shape):
    return model.quantized(model.input(*shape), *X)


MOVES = {
    "tile": ("Tile", [[1, 2, 3]], {}, (1, 6, 12)),
    "expand": ("Expand", [[2, 3, 4]], {}, (2, 3, 4)),
    "flatten": ("Flatten", [], {"axis": 2}, (3, 4)),
    "squeeze": ("Squeeze", [[0]], {}, (3, 4)),
    "squeeze whatever is one": ("Squeeze", [], {}, (3, 4)),
    "unsqueeze": ("Unsqueeze", [[0, -1]], {}, (1, 1, 3, 4, 1)),
    "transpose": ("Transpose", [], {"perm": [2, 0, 1]}, (4, 1, 3)),
    "transpose all": ("Transpose", [], {}, (4, 3, 1)),
    "reshape": ("Reshape", [[0, 2, -1]], {}, (1, 2, 6)),
    "identity": ("Identity", [], {}, (1, 3, 4)),
}


@pytest.mark.parametrize("case", MOVES)
def test_a_move_of_integers(model, lower, case):
    operator, parameters, attributes, shape = MOVES[case]
    names = [model.constant(p, "int64") for p in parameters]
    moved = model.node(operator, operand(model, 1, 3, 4), *names, **attributes)
    lowered = lower(model, model.quantized(model.node("Neg", moved), 0.0531))
    lowered.check()
    assert lowered.graph.output.shape == shape


@pytest.mark.parametrize(
    ("operator", "shape", "attributes"),
    [
        ("DepthToSpace", (1, 8, 2, 3), {"mode": "DCR"}),
        ("DepthToSpace", (1, 8, 2, 3), {"mode": "CRD"}),
        ("SpaceToDepth", (1, 2, 4, 6), {}),
    ],
)
def test_blocks_of_pixels_and_channels(model, lower, operator, shape, attributes):
    moved = model.node(operator, operand(model, *shape), blocksize=2, **attributes)
    lower(model, model.quantized(moved, 0.0531)).check()


def test_weights_that_are_repeated(model, lower):
    w = model.weights(RANDOM.integers(-127, 128, (2, 3)), RANDOM.uniform(0.01, 0.02, 3), axis=1)
    tiled = model.node("Tile", w, model.constant([2, 1], "int64"))
    product = model.node("MatMul", operand(model, 1, 4), tiled)
    lower(model, model.quantized(product, 0.0531)).check()


@pytest.mark.parametrize("dtype", [TensorProto.INT32, TensorProto.INT64])
def test_ids_of_another_width(model, lower, dtype):
    """A Cast of integers changes nothing, whether it is one or not."""
    model.inputs.append(helper.make_tensor_value_info("ids", TensorProto.INT32, (1, 4)))
    table = model.weights(RANDOM.integers(-127, 128, (9, 3)), 0.01)
    rows = model.node("Gather", table, model.node("Cast", "ids", to=dtype))
    lowered = lower(model, model.quantized(rows, 0.0131))
    ids = np.array([[0, 8, 3, 5]], np.uint8)
    theirs = lowered.onnx.run(ids.astype(np.int32))[lowered.graph.output.onnx_output]
    ours = interpret(lowered.graph, ids)[lowered.graph.output.name]
    assert np.abs(ours.astype(int) - theirs).max() <= 1
    lowered.check_c([ids])


# moves that tools quantize, before and behind alike


@pytest.mark.parametrize("case", [*MOVES, "concat"])
def test_a_move_of_the_same_quantization_computes_nothing(model, lower, case):
    """Not even the zero point is taken off: bytes are copied."""
    x = model.quantized(model.node("Neg", operand(model, 1, 3, 4)), *X)
    operator, parameters, attributes, _ = MOVES.get(case, ("Concat", [], {"axis": 1}, ()))
    operands = [model.constant(p, "int64") for p in parameters] + [x] * (case == "concat")
    lowered = lower(model, model.quantized(model.node(operator, x, *operands, **attributes), *X))
    title = {"expand": "repeat", "tile": "repeat", "concat": "join"}.get(case, operator.lower())
    shaped = title in ("flatten", "squeeze", "unsqueeze", "identity")
    layer = lowered.graph.layers[-1]
    assert layer.title == ("reshape" if shaped else title)
    moves = (Load, Join, Broadcast, Permute, Reshape)
    assert all(isinstance(node.operator, moves) for node in layer.expression.walk())
    lowered.check(equal=1.0)


def layers_behind(model, lower, move, *, scale=X[0], zero=X[1]):
    """The layers of: a move, quantized, and then a Relu."""
    moved = model.quantized(move(operand(model, 1, 4, 6)), scale, zero)
    lowered = lower(model, model.quantized(model.node("Relu", moved), 0.0531))
    lowered.check()
    return len(lowered.graph.layers)


def reshaped(model):
    return lambda x: model.node("Reshape", x, model.constant([1, 24], "int64"))


def test_a_reshape_of_the_same_quantization_is_no_layer(model, lower):
    assert layers_behind(model, lower, reshaped(model)) == 1


def test_a_reshape_to_another_step_is_one(model, lower):
    assert layers_behind(model, lower, reshaped(model), scale=0.04) == 2


def test_a_reshape_to_another_zero_point_is_one(model, lower):
    assert layers_behind(model, lower, reshaped(model), zero=4) == 2


def test_a_part_that_lies_whole_is_no_layer(model, lower):
    bounds = [model.constant([n], "int64") for n in (1, 3, 1)]
    assert layers_behind(model, lower, lambda x: model.node("Slice", x, *bounds)) == 1


def test_a_part_of_each_row_is_one(model, lower):
    bounds = [model.constant([n], "int64") for n in (1, 3, 2)]
    assert layers_behind(model, lower, lambda x: model.node("Slice", x, *bounds)) == 2


def test_a_transpose_is_one(model, lower):
    turned = lambda x: model.node("Transpose", x, perm=[0, 2, 1])  # noqa: E731
    assert layers_behind(model, lower, turned) == 2


def test_a_relu_of_the_same_quantization_is_one(model, lower):
    assert layers_behind(model, lower, lambda x: model.node("Relu", x)) == 2


def test_a_reshape_that_the_model_returns_is_one(model, lower):
    x = model.quantized(model.node("Neg", operand(model, 1, 4)), *X)
    y = model.node("Reshape", x, model.constant([2, 2], "int64"))
    lowered = lower(model, model.quantized(y, *X))
    lowered.check(equal=1.0)
    assert lowered.graph.output.shape == (2, 2)


def test_a_reshape_of_the_input_is_no_layer(model, lower):
    x = operand(model, 1, 4)
    y = model.quantized(model.node("Reshape", x, model.constant([2, 2], "int64")), *X)
    lowered = lower(model, model.quantized(model.node("Neg", y), 0.05))
    lowered.check()
    assert [value.name for value in lowered.graph.layers[0].inputs] == [lowered.graph.input.name]

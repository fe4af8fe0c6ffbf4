"""Matrix products of tensors that no quantizer has brought to 8 bits, down to a whole attention."""

from __future__ import annotations

import numpy as np
import pytest

from entrain.deploy.lowering.importer import import_onnx
from entrain.deploy.lowering.passes import PASSES
from entrain.deploy.lowering.program import build_program

RANDOM = np.random.default_rng(31)
TOKENS, CHANNELS = 11, 8


def projections(model):
    """Queries, keys and values, in 8 bits each."""
    x = model.quantized(model.input(1, TOKENS, 12), 0.05, 3)
    results = []
    for _ in range(3):
        w = model.weights(RANDOM.integers(-127, 128, (12, CHANNELS)), 0.005)
        results.append(model.quantized(model.node("MatMul", x, w), 0.04))
    return results


def transposed(model, x):
    return model.node("Transpose", x, perm=[0, 2, 1])


def total(model, x, axis=-1):
    return model.node("ReduceSum", x, model.constant([axis], "int64"), keepdims=1)


def scores(model, query, key):
    return model.node(
        "Mul", model.node("MatMul", query, transposed(model, key)), model.constant(0.35)
    )


def softmax_attention(model, query, key, value):
    return model.node("MatMul", model.node("Softmax", scores(model, query, key), axis=-1), value)


def linear_attention(model, query, key, value):
    """elu + 1 of queries and keys."""
    q, k = (model.node("Add", model.node("Elu", x), model.constant(1.0)) for x in (query, key))
    moments = model.node("MatMul", transposed(model, k), value)
    weight = total(model, model.node("Mul", q, total(model, k, axis=1)))
    return model.node("Div", model.node("MatMul", q, moments), weight)


def anchors(model):
    angles = RANDOM.uniform(0, 2 * np.pi, TOKENS)
    circle = 126 * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return model.weights(np.rint(circle), 1 / 127)


def state(model, coupling, r):
    field = model.node("MatMul", coupling, r)
    length = total(model, model.node("Mul", field, field))
    length = model.node("Sqrt", model.node("Add", length, model.constant(1e-12)))
    return model.node("Div", field, length)


def oscillator(exponent, function):
    """(1 + z.r)^p as weights, z settled by couplings of a function of the scores."""

    def attention(model, query, key, value):
        r = anchors(model)
        coupling = model.node(function, scores(model, query, key))
        z = state(model, model.node("Add", coupling, model.constant(1e-3)), r)
        aligned = model.node("MatMul", z, model.node("Transpose", r, perm=[1, 0]))
        close = model.node("Add", aligned, model.constant(1.0))
        weights = model.node("Pow", close, model.constant(float(exponent)))
        shares = model.node("Div", weights, total(model, weights))
        return model.node("MatMul", shares, value)

    return attention


def factorised(model, query, key, value):
    """(mean v + z.M) / (1 + z.R), coupling relu(q).relu(k)."""
    r = anchors(model)
    q, k = (model.node("Relu", x) for x in (query, key))
    turned = model.node("Transpose", r, perm=[1, 0])
    drive = model.node("MatMul", turned, k)
    field = model.node("MatMul", q, transposed(model, drive))
    length = total(model, model.node("Mul", field, field))
    z = model.node(
        "Div", field, model.node("Sqrt", model.node("Add", length, model.constant(1e-9)))
    )
    share = model.constant(1.0 / TOKENS)
    moments = model.node("Mul", model.node("MatMul", turned, value), share)
    mean = model.node("ReduceMean", value, axes=[1], keepdims=1)
    alignment = total(
        model, model.node("Mul", z, model.node("ReduceMean", r, axes=[0], keepdims=1))
    )
    above = model.node("Add", mean, model.node("MatMul", z, moments))
    return model.node("Div", above, model.node("Add", alignment, model.constant(1.0)))


ATTENTIONS = {
    "softmax": softmax_attention,
    "linear": linear_attention,
    "relu, p = 1": oscillator(1, "Relu"),
    "softplus, p = 2": oscillator(2, "Softplus"),
    "relu, p = 3": oscillator(3, "Relu"),
    "separable, factorised": factorised,
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_an_attention_that_nobody_recognises_is_one_layer(model, tmp_path, road, name):
    """Straight from the importer, so that no recogniser takes it away."""
    query, key, value = projections(model)
    context = ATTENTIONS[name](model, query, key, value)
    model.output(model.quantized(context, 0.012, name="context"))
    graph = import_onnx(model.save(tmp_path / "small.onnx"), "small")
    for transform in PASSES:
        graph = transform(graph)
    lowered = road.from_program(build_program(graph), tmp_path / "small.onnx", tmp_path / "made")
    lowered.check(equal=0.97)
    assert len(graph.layers) == 4


def test_a_product_of_a_relu_that_was_not_quantized(model, lower):
    x = model.quantized(model.input(1, 5, 16), 0.05, 3)
    w = model.weights(RANDOM.integers(-127, 128, (16, 6)), 0.01)
    lower(model, model.quantized(model.node("MatMul", model.node("Relu", x), w), 0.07)).check()


def test_a_product_of_a_product(model, lower):
    """Two linear layers with nothing between them."""
    x = model.quantized(model.input(1, 5, 16), 0.05, 3)
    first = model.weights(RANDOM.integers(-127, 128, (16, 30)), 0.01)
    second = model.weights(RANDOM.integers(-127, 128, (30, 6)), 0.01)
    product = model.node("MatMul", model.node("MatMul", x, first), second)
    lower(model, model.quantized(product, 0.5)).check(equal=0.98)


def test_a_row_too_long_for_the_stack_is_made_for_each_element(model, lower):
    x = model.quantized(model.input(1, 2, 2000), 0.1)
    y = model.node("Softmax", model.node("Transpose", x, perm=[0, 2, 1]), axis=-1)
    y = model.node("Transpose", y, perm=[0, 2, 1])
    lower(model, model.quantized(y, 1 / 255, 0, "uint8")).check()

"""A mechanism is told from others by random inputs: they must bring out what tells them apart."""

from __future__ import annotations

import numpy as np
import pytest

from entrain.deploy.lowering.fusion import formulas
from entrain.deploy.lowering.fusion.contract import TOLERANCE, Sample, matches
from entrain.deploy.lowering.operators.oscillator_attention import OscillatorAttention

TOKENS, HEADS, D_HEAD = 3, 3, 4
WIDTH = HEADS * D_HEAD


def weights_of_oscillators(model, queries, keys, random):
    """Relu coupling of scores, 1/64 at least; plain read-out of the first power."""
    vectors = random.normal(size=(1, HEADS, TOKENS, 3))
    codes = np.rint(vectors * 126 / np.linalg.norm(vectors, axis=-1, keepdims=True))
    anchors = model.weights(codes, 1 / 127)
    last = model.constant([-1], "int64")

    def turned(tensor):
        return model.node("Transpose", tensor, perm=[0, 1, 3, 2])

    def total(tensor):
        return model.node("ReduceSum", tensor, last, keepdims=1)

    scores = model.node("MatMul", queries, turned(keys))
    scores = model.node("Relu", model.node("Mul", scores, model.constant(0.0023)))
    field = model.node("MatMul", model.node("Add", scores, model.constant(1 / 64)), anchors)
    state = model.node("Div", field, model.node("Sqrt", total(model.node("Mul", field, field))))
    near = model.node("Add", model.node("MatMul", state, turned(anchors)), model.constant(1.0))
    return model.node("Div", near, total(near))


@pytest.mark.parametrize("key", [(103, "int8"), (127, "int8"), (250, "uint8")])
def test_one_sided_queries_and_keys_keep_their_roles(model, lower, key):
    """Nearly all scores are negative, where a relu lets nothing of queries and keys through."""
    random = np.random.default_rng(3)
    x = model.quantized(model.input(1, TOKENS, 20), 0.05, 165, "uint8")
    quantizers = {"query": (0.47, 89, "uint8"), "key": (0.27, *key), "value": (0.23, 85)}
    apart = model.constant([1, TOKENS, HEADS, D_HEAD], "int64")
    parts = []
    for name, quantizer in quantizers.items():
        y = model.node("MatMul", x, model.weights(random.integers(-127, 128, (20, WIDTH)), 0.01))
        y = model.node("Reshape", model.quantized(y, *quantizer, name=name), apart)
        parts.append(model.node("Transpose", y, perm=[0, 2, 1, 3]))
    queries, keys, values = parts
    weights = weights_of_oscillators(model, queries, keys, random)
    context = model.node("Transpose", model.node("MatMul", weights, values), perm=[0, 2, 1, 3])
    y = model.node("Reshape", context, model.constant([1, TOKENS, WIDTH], "int64"))
    lowered = lower(model, model.quantized(y, 0.28, 94, "uint8"))
    operator = lowered.graph.layers[-1].expression.operator
    assert isinstance(operator, OscillatorAttention)
    assert operator.query.value.onnx_output == "query"
    assert operator.key.value.onnx_output == "key"


def linear_sample(random, reach, keep=1.0):
    """Linear attention as a graph in single precision computes it, elu(x) + 1 in two steps."""
    queries, keys = (random.uniform(-reach, reach, (1, 49, 3)) for _ in range(2))
    values = random.normal(size=(1, 49, 8))

    def feature(x):
        x = x.astype(np.float32)
        return np.where(x > 0, x, np.exp(x) - np.float32(1)) + np.float32(1)

    weights = feature(queries) @ feature(keys).transpose(0, 2, 1) * keep
    context = weights @ values / weights.sum(axis=-1, keepdims=True)
    return Sample(queries, keys, values, context)


def linear_attention(sample):
    return formulas.linear(sample.queries, sample.keys, sample.values, "elu", 0.0)


def test_a_few_readings_off_by_what_single_precision_cancels_are_no_other_mechanism():
    random = np.random.default_rng(2)
    sample = linear_sample(random, 25.0)
    off = np.abs(linear_attention(sample) - sample.context).max() / np.abs(sample.context).max()
    assert off > 3 * TOLERANCE
    assert matches((sample, linear_sample(random, 1.0)), linear_attention)


def test_a_mask_is_another_mechanism():
    random = np.random.default_rng(1)
    sample = linear_sample(random, 1.0, keep=np.tril(np.ones((49, 49))))
    assert not matches((sample,), linear_attention)

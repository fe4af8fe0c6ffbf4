"""Attention over several layers is recognised by what it computes, whoever exported it."""

from __future__ import annotations

import numpy as np
import pytest

from entrain.deploy.lowering.fusion import formulas
from entrain.deploy.lowering.interpreter import interpret

TOKENS, HEADS, D_HEAD = 6, 2, 4
WIDTH = HEADS * D_HEAD
STEP = 1 / 32


def projected(model, x, name, seed, dtype="int8", width=WIDTH):
    """A quantized linear map of tokens."""
    weights = np.random.default_rng(seed).integers(-127, 128, (WIDTH, width))
    y = model.node("MatMul", x, model.weights(weights, np.full(width, 0.004), axis=1))
    y = model.node("Relu", y) if dtype == "uint8" else y
    return model.quantized(y, STEP, 0, dtype, name=name)


def split(model, x):
    """[1, T, width] to [1, H, T, D]."""
    shape = model.constant([1, TOKENS, HEADS, D_HEAD], "int64")
    return model.node("Transpose", model.node("Reshape", x, shape), perm=[0, 2, 1, 3])


def merged(model, x):
    """[1, H, T, D] to [1, T, width]."""
    moved = model.node("Transpose", x, perm=[0, 2, 1, 3])
    return model.node("Reshape", moved, model.constant([1, TOKENS, WIDTH], "int64"))


def transposed(model, x):
    return model.node("Transpose", x, perm=[0, 1, 3, 2])


def heads_of(tensor):
    """[1, T, width] to [H, T, D], in numpy."""
    return tensor.reshape(TOKENS, HEADS, -1).transpose(1, 0, 2)


def real_values(lowered, given):
    """Every value of the lowered network in real numbers."""
    values = interpret(lowered.graph, given)
    tensors = [lowered.graph.input, *(layer.output for layer in lowered.graph.layers)]
    return {t.onnx_output: t.scale * (values[t.name].astype(float) - t.zero_point) for t in tensors}


def check_against(lowered, formula, steps=1.0):
    """The fused layer is within a step of the formula in double precision; the C equals it."""
    inputs = lowered.random_inputs(6)
    output = lowered.graph.output
    for given in inputs:
        values = real_values(lowered, given)
        q, k, v = (heads_of(values[name]) for name in ("query", "key", "value"))
        expected = formula(q, k, v).transpose(1, 0, 2).reshape(1, TOKENS, WIDTH)
        reachable = np.clip(expected / output.scale, -128, 127)
        assert np.abs(values["context"] / output.scale - reachable).max() <= steps
    lowered.check_c(inputs)


def titles(lowered):
    """What each layer does, by the ONNX tensor that it computes."""
    return {layer.output.onnx_output: layer.title for layer in lowered.graph.layers}


def softmax_node(model, scores):
    return model.node("Softmax", scores, axis=-1)


def softmax_of_exponentials(model, scores):
    e = model.node("Exp", scores)
    total = model.node("ReduceSum", e, model.constant([-1], "int64"), keepdims=1)
    return model.node("Div", e, total)


def softmax_after_its_peak(model, scores):
    peak = model.node("ReduceMax", scores, axes=[-1], keepdims=1)
    return softmax_of_exponentials(model, model.node("Sub", scores, peak))


def attention(model, weights, scale=D_HEAD**-0.5, *, quantized_between=False, dtype="int8"):
    """Three projections and what ``weights`` makes of their scores."""
    x = model.quantized(model.input(1, TOKENS, WIDTH), STEP)
    names = (("query", dtype), ("key", dtype), ("value", "int8"))
    projections = [projected(model, x, name, i, d) for i, (name, d) in enumerate(names)]
    q, k, v = (split(model, each) for each in projections)
    scores = model.node("MatMul", q, transposed(model, k))
    scores = model.node("Mul", scores, model.constant(scale))
    if quantized_between:
        scores = model.quantized(scores, 0.05)
    weighed = weights(model, scores)
    if quantized_between:
        weighed = model.quantized(weighed, 1 / 255, 0, "uint8")
    context = merged(model, model.node("MatMul", weighed, v))
    return model.quantized(context, STEP, name="context")


@pytest.mark.parametrize("quantized_between", [False, True])
@pytest.mark.parametrize("weights", [softmax_node, softmax_of_exponentials, softmax_after_its_peak])
def test_softmax_attention_in_whatever_operators(model, lower, weights, quantized_between):
    lowered = lower(model, attention(model, weights, quantized_between=quantized_between))
    assert titles(lowered)["context"] == "softmax attention"
    assert set(titles(lowered)) == {"query", "key", "value", "context"}
    check_against(lowered, lambda q, k, v: formulas.softmax(q, k, v, D_HEAD**-0.5))


@pytest.mark.parametrize("scale", [1.0, 0.37, 2.0])
def test_any_scale_of_the_scores_is_found(model, lower, scale):
    lowered = lower(model, attention(model, softmax_node, scale))
    assert titles(lowered)["context"] == "softmax attention"
    check_against(lowered, lambda q, k, v: formulas.softmax(q, k, v, scale))


def powers_of_two(model, scores):
    e = model.node("Pow", model.constant(2.0), scores)
    total = model.node("ReduceSum", e, model.constant([-1], "int64"), keepdims=1)
    return model.node("Div", e, total)


def test_powers_of_two_are_a_softmax_of_another_scale(model, lower):
    lowered = lower(model, attention(model, powers_of_two))
    scale = float(np.log(2.0)) * D_HEAD**-0.5
    check_against(lowered, lambda q, k, v: formulas.softmax(q, k, v, scale))


def test_queries_keys_and_values_may_lie_in_one_packed_tensor(model, lower):
    x = model.quantized(model.input(1, TOKENS, WIDTH), STEP)
    packed = projected(model, x, "packed", 0, width=3 * WIDTH)
    ends = [model.constant([part * WIDTH], "int64") for part in range(4)]
    axis = model.constant([2], "int64")
    parts = [model.node("Slice", packed, ends[i], ends[i + 1], axis) for i in range(3)]
    q, k, v = (split(model, part) for part in parts)
    scores = model.node("MatMul", q, transposed(model, k))
    weights = softmax_node(model, model.node("Div", scores, model.constant(D_HEAD**0.5)))
    context = merged(model, model.node("MatMul", weights, v))
    lowered = lower(model, model.quantized(context, STEP, name="context"))
    assert set(titles(lowered)) == {"packed", "context"}
    output = lowered.graph.output
    for given in lowered.random_inputs(4):
        values = real_values(lowered, given)
        parts = np.split(values["packed"], 3, axis=-1)
        expected = formulas.softmax(*map(heads_of, parts), D_HEAD**-0.5)
        expected = expected.transpose(1, 0, 2).reshape(1, TOKENS, WIDTH)
        assert np.abs(values["context"] - expected).max() <= output.scale
    lowered.check_c(lowered.random_inputs(4))


def anchors_of(d_osc, heads=HEADS):
    vectors = np.random.default_rng(7).normal(size=(1, heads, TOKENS, d_osc))
    radius = (127 - 0.5 * np.sqrt(d_osc)) / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.rint(vectors * radius).astype("int8")


def settled(model, field):
    squared = model.node("Mul", field, field)
    total = model.node("ReduceSum", squared, model.constant([-1], "int64"), keepdims=1)
    return model.node("Div", field, model.node("Sqrt", total))


def plain_read_out(exponent):
    def read(model, state, anchors):
        closeness = model.node("MatMul", state, transposed(model, anchors))
        closeness = model.node("Add", closeness, model.constant(1.0))
        power = model.node("Pow", closeness, model.constant(float(exponent)))
        total = model.node("ReduceSum", power, model.constant([-1], "int64"), keepdims=1)
        return model.node("Div", power, total)

    return read


def oscillating(coupling, epsilon, exponent, d_osc, heads=HEADS):
    def weights(model, scores):
        codes = anchors_of(d_osc, heads)
        anchors = model.weights(codes, 1 / 127)
        strength = model.node(coupling, scores)
        if epsilon:
            strength = model.node("Add", strength, model.constant(epsilon))
        state = settled(model, model.node("MatMul", strength, anchors))
        return plain_read_out(exponent)(model, state, anchors)

    return weights


@pytest.mark.parametrize("exponent", [1, 2, 3])
@pytest.mark.parametrize("d_osc", [2, 3])
@pytest.mark.parametrize(
    ("operator", "coupling", "epsilon"), [("Relu", "relu", 1 / 64), ("Softplus", "softplus", 0.0)]
)
def test_an_oscillator_in_its_plain_form(
    model, lower, operator, coupling, epsilon, d_osc, exponent
):
    weights = oscillating(operator, epsilon, exponent, d_osc)
    lowered = lower(model, attention(model, weights))
    assert titles(lowered)["context"] == "oscillator attention"
    anchors = anchors_of(d_osc)[0] / 127

    def formula(q, k, v):
        state = formulas.settled(q, k, anchors, coupling, D_HEAD**-0.5, epsilon)
        return formulas.read_out(state, anchors, v, exponent)

    check_against(lowered, formula, steps=1.5)


def test_heads_may_share_their_anchors(model, lower):
    lowered = lower(model, attention(model, oscillating("Relu", 1 / 64, 1, 2, heads=1)))
    assert titles(lowered)["context"] == "oscillator attention"


def test_what_resembles_attention_and_is_none_stays_as_it_is(model, lower):
    def masked(model, scores):
        mask = np.triu(np.full((TOKENS, TOKENS), -1e4), 1)
        return softmax_node(model, model.node("Add", scores, model.constant(mask)))

    lowered = lower(model, attention(model, masked, quantized_between=True))
    assert "attention" not in titles(lowered)["context"]


def attended(model):
    """Softmax attention of quantized projections, its heads side by side: [1, T, width]."""
    x = model.quantized(model.input(1, TOKENS, WIDTH), STEP)
    q, k, v = (
        split(model, projected(model, x, name, seed))
        for seed, name in enumerate(("query", "key", "value"))
    )
    scores = model.node("Mul", model.node("MatMul", q, transposed(model, k)), model.constant(0.5))
    return model.node("MatMul", softmax_node(model, scores), v)


@pytest.mark.parametrize(("inner", "fused_into"), [(STEP / 4, "context"), (STEP, "out")])
def test_a_context_that_saturates_is_not_fused_past_its_quantizer(model, lower, inner, fused_into):
    """Fused into the tensor behind the moves, what the first quantizer clips would come through."""
    context = model.quantized(attended(model), inner, name="context")
    lowered = lower(model, model.quantized(merged(model, context), STEP, name="out"))
    assert titles(lowered)[fused_into] == "softmax attention"
    inputs = lowered.random_inputs(6)
    worst, _ = lowered.difference_from_onnxruntime(inputs)
    assert worst <= 1
    lowered.check_c(inputs)


def test_a_context_scaled_behind_its_quantizer_is_fused_before_it(model, lower):
    context = model.quantized(attended(model), STEP, name="context")
    scaled = model.node("Mul", context, model.constant(3.0))
    lowered = lower(model, model.quantized(merged(model, scaled), 3 * STEP, name="out"))
    assert titles(lowered)["context"] == "softmax attention"
    assert lowered.difference_from_onnxruntime(lowered.random_inputs(6))[0] <= 1

"""An ONNX file in simpler terms: the same results, whatever the exporter wrote."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from rewritten import check_unchanged, operators
from static_quantization import quantized_statically

from entrain.deploy.errors import ModelError, UnsupportedOperator
from entrain.deploy.lowering.importer import import_onnx
from entrain.deploy.lowering.onnx_file import read_onnx

RANDOM = np.random.default_rng(17)


def extents(model, tensor, *places):
    """Some extents of a tensor, as PyTorch's exporter computes them."""
    shape = model.node("Shape", tensor)
    return [
        model.node(
            "Unsqueeze",
            model.node("Gather", shape, model.constant(place, "int64"), axis=0),
            model.constant([0], "int64"),
        )
        for place in places
    ]


def test_a_shape_that_is_computed_from_a_symbolic_batch(model, lower, tmp_path):
    x = model.quantized(model.input("batch", 6, 4), 0.05, 3)
    batch, time = extents(model, x, 0, 1)
    shape = model.node("Concat", batch, time, model.constant([2, 2], "int64"), axis=0)
    y = model.node("Reshape", x, shape)
    y = model.quantized(model.node("Transpose", y, perm=[0, 2, 1, 3]), 0.0531)
    lowered = lower(model, y)
    lowered.check()
    assert lowered.graph.output.shape == (1, 2, 6, 2)
    check_unchanged(tmp_path / "small.onnx")
    assert not set(operators(tmp_path / "small.onnx")) & {"Shape", "Gather", "Concat", "Unsqueeze"}


@pytest.mark.parametrize("shape", [[-1, 12, 2], [0, -1, 2], [0, 0, -1], [-1, 24]])
def test_a_symbolic_batch_in_the_constant_of_a_reshape(model, lower, shape):
    x = model.quantized(model.input("batch", 6, 4), 0.05, 3)
    y = model.node("Reshape", x, model.constant(shape, "int64"))
    lowered = lower(model, model.quantized(y, 0.0531))
    lowered.check()
    assert lowered.graph.output.shape[0] == 1


def test_a_shape_of_a_shape_that_had_to_be_known_first(model, lower):
    x = model.quantized(model.input("batch", 6, 4), 0.05, 3)
    (batch,) = extents(model, x, 0)
    flat = model.node(
        "Reshape", x, model.node("Concat", batch, model.constant([-1], "int64"), axis=0)
    )
    (width,) = extents(model, flat, 1)
    halves = model.node("Div", width, model.constant(2, "int64"))
    again = model.node("Concat", model.constant([2], "int64"), halves, axis=0)
    y = model.node("Reshape", flat, again)
    lowered = lower(model, model.quantized(y, 0.0531))
    assert lowered.graph.output.shape == (2, 12)


def test_an_expansion_by_a_computed_shape(model, lower):
    """A class token for each of the batch."""
    x = model.quantized(model.input("batch", 6, 4), 0.05, 3)
    token = model.weights(RANDOM.integers(-127, 128, (1, 1, 4)), 0.01)
    (batch,) = extents(model, x, 0)
    shape = model.node("Concat", batch, model.constant([1, 4], "int64"), axis=0)
    joined = model.node("Concat", model.node("Expand", token, shape), x, axis=1)
    lowered = lower(model, model.quantized(joined, 0.0531))
    lowered.check()
    assert lowered.graph.output.shape == (1, 7, 4)


def test_names_of_a_symbolic_batch_in_the_file_do_not_stay(model, tmp_path):
    x = model.quantized(model.input("batch", 4), 0.05)
    model.output(model.quantized(model.node("Relu", x), 0.05))
    path = model.save(tmp_path / "small.onnx")
    whole = onnx.load(path)
    named = helper.make_tensor_value_info(whole.graph.output[0].name, 1, ["batch", 4])
    whole.graph.output[0].CopyFrom(named)
    onnx.save(whole, path)
    assert import_onnx(path, "small").output.shape == (1, 4)


def test_weights_that_are_quantized_in_the_file(model, lower, tmp_path):
    """As PyTorch's fake quantization is exported: floats, QuantizeLinear, DequantizeLinear."""
    x = model.quantized(model.input(1, 4), 0.05)
    w = model.quantized(model.constant(RANDOM.normal(size=(4, 3))), 0.02)
    lowered = lower(model, model.quantized(model.node("MatMul", x, w), 0.1))
    lowered.check()
    check_unchanged(tmp_path / "small.onnx")
    assert "int8_t" in lowered.source["weights.h"]
    assert "float" not in lowered.source["weights.h"]


def test_weights_that_are_quantized_for_each_channel_in_the_file(model, lower, tmp_path):
    x = model.quantized(model.input(1, 4), 0.05)
    scales = model.constant(RANDOM.uniform(0.01, 0.03, 3))
    zeros = model.constant([0, 3, -2], "int8")
    weights = model.constant(RANDOM.normal(size=(3, 4)))
    q = model.node("QuantizeLinear", weights, scales, zeros, axis=0)
    w = model.node("DequantizeLinear", q, scales, zeros, axis=0)
    y = model.node("Gemm", x, w, transB=1)
    lower(model, model.quantized(y, 0.1)).check()
    check_unchanged(tmp_path / "small.onnx")


def test_batch_normalization_is_a_factor_and_an_offset(model, lower, tmp_path):
    x = model.quantized(model.input(1, 2, 6, 6), 0.05, 3)
    w = model.weights(RANDOM.integers(-127, 128, (3, 2, 3, 3)), 0.01)
    y = model.node("Conv", x, w)
    parameters = [model.constant(RANDOM.uniform(0.5, 2, 3)) for _ in range(4)]
    y = model.node("Relu", model.node("BatchNormalization", y, *parameters, epsilon=0.01))
    lowered = lower(model, model.quantized(y, 0.2, -128))
    lowered.check()
    check_unchanged(tmp_path / "small.onnx", atol=0.21)
    assert len(lowered.graph.layers) == 1, "it costs nothing"


def test_batch_normalization_by_the_batchs_own_statistics_is_refused(model, lower):
    x = model.quantized(model.input(1, 3, 4), 0.05)
    parameters = [model.constant(np.ones(3)) for _ in range(4)]
    y = model.node("BatchNormalization", x, *parameters, training_mode=1)
    model.nodes[-1].output.extend(["mean", "variance"])
    with pytest.raises(UnsupportedOperator, match="by its own statistics") as caught:
        lower(model, model.quantized(y, 0.1))
    assert "eval" in caught.value.remedy


def test_dropout_is_nothing(model, lower, tmp_path):
    x = model.quantized(model.input(1, 4), 0.05, 3)
    y = model.node("Dropout", x, model.constant(0.5))
    y = model.node("Identity", model.node("Dropout", model.node("Neg", y)))
    lower(model, model.quantized(y, 0.0531)).check()
    check_unchanged(tmp_path / "small.onnx")


def test_dropout_that_drops_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.05, 3)
    y = model.node("Dropout", x, model.constant(0.5), model.constant(True, "bool"))
    with pytest.raises(UnsupportedOperator, match="a Dropout that drops"):
        lower(model, model.quantized(y, 0.1))


@pytest.mark.parametrize("operator", ["Sum", "Mean"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_sum_or_a_mean_of_several_tensors(model, lower, tmp_path, operator, count):
    x = model.quantized(model.input(1, 4, 3), 0.05, 3)
    others = [model.quantized(model.node("Neg", x), 0.021, k) for k in range(count - 1)]
    y = model.node(operator, x, *others)
    lower(model, model.quantized(y, 0.0531)).check()
    check_unchanged(tmp_path / "small.onnx", atol=0.0532)


def test_max_and_min_with_a_number_are_a_clip(model, lower, tmp_path):
    """ReLU6, as Keras writes it."""
    x = model.quantized(model.input(1, 9), 0.1, 3)
    y = model.node("Max", model.node("Min", x, model.constant(6.0)), model.constant([0.0]))
    lower(model, model.quantized(y, 0.0431, -128)).check()
    check_unchanged(tmp_path / "small.onnx")


def test_a_narrowed_input_is_clipped_by_a_layer_of_its_own(model, lower, tmp_path):
    q = model.quantize(model.input(1, 9), 0.1, 3)
    q = model.node("Clip", q, model.constant(-7, "int8"), model.constant(100, "int8"))
    x = model.node("DequantizeLinear", q, model.constant(0.1), model.constant(3, "int8"))
    lowered = lower(model, model.quantized(model.node("Neg", x), 0.1))
    lowered.check(equal=1.0)
    assert len(lowered.graph.layers) == 2
    check_unchanged(tmp_path / "small.onnx")


def test_a_function_of_the_file_itself_is_written_out(model, tmp_path):
    x = model.quantized(model.input(1, 4), 0.05, 3)
    model.output(model.quantized(model.node("Neg", x), 0.05))
    path = model.save(tmp_path / "small.onnx")
    whole = onnx.load(path)
    (negation,) = (node for node in whole.graph.node if node.op_type == "Neg")
    body = [helper.make_node("Neg", ["a"], ["b"])]
    imports = [helper.make_opsetid("", 17)]
    whole.functions.append(helper.make_function("mine", "Turn", ["a"], ["b"], body, imports))
    whole.opset_import.append(helper.make_opsetid("mine", 1))
    negation.op_type, negation.domain = "Turn", "mine"
    onnx.save(whole, path)
    assert import_onnx(path, "small").layers


@pytest.mark.parametrize("version", [12, 30])
def test_an_opset_beyond_what_is_known_is_refused(model, tmp_path, version):
    x = model.quantized(model.input(1, 4), 0.05, 3)
    model.output(model.quantized(model.node("Neg", x), 0.05))
    path = model.save(tmp_path / "small.onnx")
    whole = onnx.load(path)
    whole.opset_import[0].version = version
    path.write_bytes(whole.SerializeToString())
    with pytest.raises(ModelError) as caught:
        import_onnx(path, "small")
    assert "opset" in str(caught.value) or "valid" in str(caught.value)


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("ConstantOfShape", ([1 << 20, 1 << 20],)),
        ("Tile", (np.zeros((4, 4)), [1 << 20, 1 << 20])),
        ("Expand", (np.zeros(1), [1 << 20, 1 << 20])),
    ],
)
def test_a_constant_that_would_fill_the_memory_is_refused(model, lower, operator, inputs):
    x = model.quantized(model.input(1, 4), 0.05, 3)
    names = [
        model.constant(array, "int64" if isinstance(array, list) else "float32") for array in inputs
    ]
    y = model.node("ReduceSum", model.node(operator, *names))
    y = model.quantized(model.node("Add", x, y), 0.05)
    with pytest.raises(UnsupportedOperator, match=f"{operator}.* makes a constant"):
        lower(model, y)


def test_a_computation_of_constants_that_fails_is_refused_with_its_node(model, lower):
    x = model.quantized(model.input(1, 4), 0.05, 3)
    product = model.node("MatMul", model.constant(np.ones((2, 3))), model.constant(np.ones((2, 3))))
    whole = model.node("Add", x, product)
    model.output(model.quantized(whole, 0.05))
    with pytest.raises((UnsupportedOperator, ModelError)):
        lower(model)


def test_nodes_have_different_names_afterwards(model, tmp_path):
    x = model.quantized(model.input(1, 4), 0.05, 3)
    parts = [model.node("Neg", x) for _ in range(3)]
    model.output(model.quantized(model.node("Sum", *parts), 0.05))
    names = [node.name for node in read_onnx(model.save(tmp_path / "small.onnx")).graph.node]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("opset", range(13, 22))
def test_every_opset_says_the_same_in_its_own_way(model, lower, tmp_path, opset):
    x = model.quantized(model.input("batch", 2, 6, 6), 0.05, 3)
    w = model.weights(RANDOM.integers(-127, 128, (4, 2, 3, 3)), RANDOM.uniform(0.01, 0.02, 4))
    y = model.quantized(model.node("Relu", model.node("Conv", x, w)), 0.1, -128)
    y = model.node("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    if opset < 18:
        y = model.node("ReduceMean", y, axes=[3], keepdims=0)
    else:
        y = model.node("ReduceMean", y, model.constant([3], "int64"), keepdims=0)
    y = model.node("Unsqueeze", model.quantized(y, 0.07), model.constant([0], "int64"))
    y = model.node("Squeeze", y, model.constant([0], "int64"))
    y = model.node("Pad", y, model.constant([0, 0, 1, 0, 0, 0], "int64"))
    y = model.node("Softmax", model.quantized(y, 0.07), axis=-1)
    lower(model, model.quantized(y, 0.0061), opset=opset).check()
    check_unchanged(tmp_path / "small.onnx", atol=0.0062)


def test_integers_of_four_bits_stay_within_them(model, lower, tmp_path):
    """INT4 weights, and activations quantized to UINT4."""
    x = model.quantized(model.input(1, 6), 0.05)
    w = model.node(
        "DequantizeLinear",
        "weights",
        model.constant([0.1, 0.2, 0.3]),
        "zeros",
        axis=1,
    )
    model.constants += [
        helper.make_tensor("weights", TensorProto.INT4, [6, 3], [*range(-8, 8), 1, -1]),
        helper.make_tensor("zeros", TensorProto.INT4, [3], [0, 1, -2]),
        helper.make_tensor("zero", TensorProto.UINT4, [], [5]),
    ]
    scale = model.constant(0.3)
    q = model.node("QuantizeLinear", model.node("MatMul", x, w), scale, "zero")
    y = model.node("DequantizeLinear", q, scale, "zero")
    lowered = lower(model, model.quantized(model.node("Neg", y), 0.05), opset=21)
    lowered.check()
    check_unchanged(tmp_path / "small.onnx")
    values = lowered.host.trace(lowered.random_inputs(1)[0])[lowered.graph.layers[0].name]
    assert 0 <= values.min() <= values.max() <= 15


def renamed(path, operator, other):
    """The file with an operator called by another name."""
    whole = onnx.load(path)
    for node in whole.graph.node:
        if node.op_type == operator:
            node.op_type = other
    return whole.SerializeToString()


def in_onnxruntimes_domain(path, *operators):
    """Nodes of these operators, moved into the domain of what onnxruntime adds."""
    whole = onnx.load(path)
    for node in whole.graph.node:
        if node.op_type in operators:
            node.domain = "com.microsoft"
    whole.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(whole, path)


def test_onnxruntimes_own_quantizers_give_integers_of_four_bits_below_opset_21(
    model, road, tmp_path
):
    """As its quantize_static writes them for INT4 weights."""
    x = model.quantized(model.input(1, 6), 0.05, 3)
    w = model.node("DequantizeLinear", "weights", model.constant(0.1), "zero")
    model.constants += [
        helper.make_tensor("weights", TensorProto.INT4, [6, 3], [*range(-8, 8), 1, -1]),
        helper.make_tensor("zero", TensorProto.INT4, [], [1]),
    ]
    model.output(model.quantized(model.node("MatMul", x, w), 0.3, -5))
    path = model.save(tmp_path / "small.onnx", opset=17)
    in_onnxruntimes_domain(path, "QuantizeLinear", "DequantizeLinear")
    road.from_file(path, tmp_path / "lowered").check()
    check_unchanged(path)
    (kept,) = {node.domain for node in read_onnx(path).graph.node}
    assert kept == ""


@pytest.mark.parametrize("bits", [4, 8])
def test_what_onnxruntimes_tool_makes_of_a_file_of_opset_17_is_lowered(model, road, tmp_path, bits):
    from onnxruntime.quantization import QuantType

    features = model.input(1, 8, name="x")
    hidden = model.node("Gemm", features, model.constant(RANDOM.normal(size=(8, 16))))
    weights = model.constant(RANDOM.normal(size=(16, 4)))
    model.output(model.node("Gemm", model.node("Relu", hidden), weights))
    source = model.save(tmp_path / "floats.onnx", opset=17)
    kind = {4: QuantType.QInt4, 8: QuantType.QInt8}[bits]
    way = {"weight_type": kind, "extra_options": {"UseQDQContribOps": True}}
    path = quantized_statically(source, tmp_path / "small.onnx", (8,), 4, **way)
    assert {node.domain for node in onnx.load(path).graph.node} == {"", "com.microsoft"}
    road.from_file(path, tmp_path / "lowered").check()
    check_unchanged(path)


def test_activations_of_sixteen_bits_are_refused_as_such_in_any_domain(model, tmp_path):
    x = model.quantized(model.input(1, 4), 0.05)
    model.output(model.quantized(model.node("Neg", x), 0.001, dtype="int16"))
    path = model.save(tmp_path / "small.onnx", opset=17)
    in_onnxruntimes_domain(path, "QuantizeLinear", "DequantizeLinear")
    with pytest.raises(UnsupportedOperator, match="an activation of type int16") as caught:
        import_onnx(path, "small")
    assert "int8 or uint8" in caught.value.remedy


@pytest.mark.parametrize("operator", ["Attention", "Gelu", "FusedMatMul"])
def test_an_operator_that_onnxruntime_adds_is_refused_with_its_domain_whatever_its_name(
    model, tmp_path, operator
):
    x = model.quantized(model.input(1, 4), 0.05)
    model.output(model.quantized(model.node("Neg", x), 0.05))
    path = model.save(tmp_path / "small.onnx")
    in_onnxruntimes_domain(path, "Neg")
    path.write_bytes(renamed(path, "Neg", operator))
    with pytest.raises(UnsupportedOperator) as caught:
        read_onnx(path)
    assert f"operator {operator} of node node_" in caught.value.what
    assert "domain com.microsoft" in caught.value.what
    assert "ONNX's own operators" in caught.value.remedy
    assert caught.value.where == str(path)


def test_a_file_without_names_of_nodes_lends_its_tensors_names_even_if_they_are_words_of_c(
    model, road, tmp_path
):
    x = model.quantized(model.input(1, 6), 0.05)
    words = ("int", "float", "input", "output", "arena", "model_run", "main")
    for word in words:
        x = model.quantized(model.node("Neg", x, name=word), 0.05)
    first, second = model.node("Split", x, axis=1, num_outputs=2, name="half"), "other"
    model.nodes[-1].output.append(second)
    model.output(model.quantized(model.node("Sum", first, second), 0.1))
    path = model.save(tmp_path / "small.onnx", opset=18)
    whole = onnx.load(path)
    for node in whole.graph.node:
        node.ClearField("name")
    onnx.save(whole, path)
    lowered = road.from_file(path, tmp_path / "lowered")
    lowered.check()
    names = [layer.name for layer in lowered.graph.layers]
    assert set(words) - set(names) == {"input"}, "that is the network's own"
    assert "input_2" in names
    assert not any("unnamed" in text for _, text in lowered.source.files)

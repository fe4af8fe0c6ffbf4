"""What cannot be lowered is refused with what, where and what to do."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from entrain.deploy.errors import ModelError, UnsupportedOperator
from entrain.deploy.lowering.importer import import_onnx


def refusal(lower, *arguments, error=ModelError, **options):
    """The error's three parts, each of which must be there."""
    with pytest.raises(error) as caught:
        lower(*arguments, **options)
    assert caught.value.what
    assert "small.onnx" in caught.value.where
    assert caught.value.remedy
    return caught.value


def test_an_unknown_operator_is_named_with_its_node(model, lower):
    x = model.quantized(model.input(1, 4, 4), 0.1)
    y = model.quantized(model.node("Det", x), 0.1)
    error = refusal(lower, model, y, error=UnsupportedOperator)
    assert "operator Det of node node_det_" in error.what
    assert "MatMul" in error.remedy
    assert "Pad" in error.remedy, "what is rewritten counts among what is supported"


def test_a_quantizers_other_format_is_refused_with_the_name_of_the_right_one(model, lower):
    parameters = [model.constant(0.1), model.constant(0, "int8")]
    x = model.node("QuantizeLinear", model.input(1, 4), *parameters)
    w = model.constant(np.ones((4, 3)), "int8")
    product = model.node("QLinearMatMul", x, *parameters, w, *parameters, *parameters)
    y = model.node("DequantizeLinear", product, *parameters)
    error = refusal(lower, model, y, error=UnsupportedOperator)
    assert "operator QLinearMatMul" in error.what
    assert "format QDQ" in error.remedy


def test_an_operator_of_another_domain_is_refused(model, tmp_path):
    x = model.quantized(model.input(1, 4), 0.1)
    model.output(model.quantized(model.node("Neg", x), 0.1))
    path = model.save(tmp_path / "small.onnx")
    whole = onnx.load(path)
    whole.graph.node[-1].domain = "com.example"
    whole.opset_import.append(helper.make_opsetid("com.example", 1))
    path.write_bytes(whole.SerializeToString())
    with pytest.raises(UnsupportedOperator, match="DequantizeLinear of node"):
        import_onnx(path, "small")


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_product_with_an_unquantized_operand_names_node_and_tensor(model, lower, side):
    x = model.quantized(model.input(1, 4, 4), 0.1)
    real = model.constant(np.ones((4, 4)))
    operands = (real, x) if side == "left" else (x, real)
    product = model.node("MatMul", *operands)
    q = model.quantize(product, 0.1, name="boundary")
    y = model.node("DequantizeLinear", q, model.constant(0.1), model.constant(0, "int8"))
    error = refusal(lower, model, y, error=UnsupportedOperator)
    assert "matrix product has an operand that is not quantized" in error.what
    assert f"node_{product}" in error.where
    assert "boundary" in error.where


def test_a_convolution_of_a_relu_that_was_not_quantized_is_refused(model, lower):
    x = model.node("Relu", model.quantized(model.input(1, 2, 4, 4), 0.1))
    y = model.quantized(model.node("Conv", x, model.weights(np.ones((3, 2, 3, 3)), 0.1)), 0.1)
    assert "not quantized" in refusal(lower, model, y, error=UnsupportedOperator).what


def test_a_convolution_with_unquantized_weights_is_refused(model, lower):
    x = model.quantized(model.input(1, 2, 4, 4), 0.1)
    y = model.quantized(model.node("Conv", x, model.constant(np.ones((3, 2, 3, 3)))), 0.1)
    error = refusal(lower, model, y, error=UnsupportedOperator)
    assert "convolution has an operand that is not quantized" in error.what


def test_a_convolution_over_three_axes_is_refused_by_name(model, lower):
    x = model.quantized(model.input(1, 2, 4, 4, 4), 0.1)
    w = model.weights(np.ones((3, 2, 3, 3, 3)), 0.1)
    y = model.quantized(model.node("Conv", x, w), 0.1)
    assert "conv3d" in refusal(lower, model, y, error=UnsupportedOperator).what


@pytest.mark.parametrize("columns", [3, 4])
def test_a_scale_for_each_summed_element_is_refused_square_or_not(model, lower, columns):
    x = model.quantized(model.input(1, 4), 0.1)
    w = model.weights(np.ones((4, columns)), np.array([0.1, 0.2, 0.3, 0.4]), axis=0)
    y = model.quantized(model.node("MatMul", x, w), 0.1)
    error = refusal(lower, model, y, error=UnsupportedOperator)
    assert "each element of the summed axis" in error.what


def test_a_convolution_with_a_scale_for_each_input_channel_is_refused(model, lower):
    x = model.quantized(model.input(1, 3, 4, 4), 0.1)
    w = model.weights(np.ones((3, 3, 3, 3)), np.array([0.1, 0.2, 0.3]), axis=1)
    y = model.quantized(model.node("Conv", x, w), 0.1)
    assert "each input channel" in refusal(lower, model, y, error=UnsupportedOperator).what


def test_a_convolution_that_reads_nothing_but_its_padding_is_refused(model, lower):
    x = model.quantized(model.input(1, 1, 1, 4), 0.1)
    w = model.weights(np.ones((1, 1, 1, 1)), 0.1)
    y = model.node("Conv", x, w, strides=[2, 1], pads=[1, 0, 0, 0])
    y = model.quantized(y, 0.1)
    assert "padding" in refusal(lower, model, y, error=UnsupportedOperator).what


def test_an_activation_quantized_per_channel_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.1)
    scales, zeros = model.constant([0.1] * 3 + [0.2]), model.constant([0] * 4, "int8")
    q = model.node("QuantizeLinear", model.node("Neg", x), scales, zeros)
    y = model.node("DequantizeLinear", q, scales, zeros)
    assert "per channel" in refusal(lower, model, y, error=UnsupportedOperator).what


@pytest.mark.parametrize("scale", [0.0, -0.1, np.inf, np.nan, 1e-42])
def test_a_scale_that_is_no_positive_number_is_refused(model, lower, scale):
    x = model.quantized(model.input(1, 4), 0.1)
    y = model.quantized(model.node("Neg", x), scale)
    assert "scale" in refusal(lower, model, y, error=UnsupportedOperator).what


def test_a_weight_with_a_scale_of_zero_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.1)
    y = model.quantized(model.node("MatMul", x, model.weights(np.ones((4, 4)), 0.0)), 0.1)
    assert "scale" in refusal(lower, model, y, error=UnsupportedOperator).what


def test_an_unquantized_input_is_refused(model, lower):
    x = model.node("Relu", model.input(1, 4))
    error = refusal(lower, model, model.quantized(x, 0.1))
    assert "input features is not quantized" in error.what


def test_an_input_that_is_also_read_unquantized_is_refused(model, lower):
    features = model.input(1, 4)
    y = model.node("Add", model.quantized(features, 0.1), features)
    error = refusal(lower, model, model.quantized(y, 0.1))
    assert "also read unquantized" in error.what


def test_an_input_quantized_in_two_ways_is_refused(model, lower):
    features = model.input(1, 4)
    y = model.node("Add", model.quantized(features, 0.1), model.quantized(features, 0.2))
    error = refusal(lower, model, model.quantized(y, 0.1), error=UnsupportedOperator)
    assert "two ways" in error.what


@pytest.mark.parametrize("scale", [0.0, np.full(6, 0.1)], ids=["none", "for each channel"])
def test_an_input_of_bytes_with_steps_that_cannot_be_used_is_named(model, lower, scale):
    model.inputs.append(helper.make_tensor_value_info("bytes", TensorProto.INT8, (1, 6)))
    zeros = model.constant(np.zeros_like(scale), "int8")
    x = model.node("DequantizeLinear", "bytes", model.constant(scale), zeros)
    y = model.quantized(model.node("Neg", x), 0.1)
    error = refusal(lower, model, y, error=UnsupportedOperator)
    assert error.where.endswith("small.onnx: input bytes")


@pytest.mark.parametrize(
    ("shape", "given"), [((1, 4, 6), {}), ((1, 4, 6), {"q_num_heads": 2}), ((4, 6), {})], ids=str
)
def test_an_attention_whose_heads_are_unknown_is_named(model, tmp_path, shape, given):
    x = model.quantized(model.input(*shape), 0.1)
    y = model.quantized(model.node("Attention", x, x, x, name="context", **given), 0.1)
    model.outputs.append(helper.make_tensor_value_info(y, TensorProto.FLOAT, shape))
    path = model.save(tmp_path / "small.onnx", opset=23)
    with pytest.raises(UnsupportedOperator, match="node node_context") as caught:
        import_onnx(path, "small")
    assert "q_num_heads" in caught.value.remedy


def test_an_unquantized_output_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.1)
    error = refusal(lower, model, model.node("Neg", x))
    assert "output is not quantized" in error.what


def test_a_model_that_does_nothing_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.1)
    assert "nothing lies between" in refusal(lower, model, x).what


def test_a_second_symbolic_axis_is_named(model, lower):
    x = model.quantized(model.input("batch", "time", 4), 0.1)
    error = refusal(lower, model, model.quantized(model.node("Neg", x), 0.1))
    assert "axis 1 of input features" in error.what


def test_sixteen_bit_activations_are_refused(model, tmp_path):
    x = model.quantized(model.input(1, 4), 0.1)
    model.output(model.quantized(model.node("Neg", x), 0.1, 0, "int16"))
    with pytest.raises(ModelError) as caught:
        import_onnx(model.save(tmp_path / "small.onnx", opset=21), "small")
    assert "int16" in str(caught.value)


def test_a_power_that_is_not_whole_of_a_negative_number_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.1)
    y = model.quantized(model.node("Pow", x, model.constant(0.7)), 0.1)
    assert (
        "the power 0.7 of what may be negative"
        in refusal(lower, model, y, error=UnsupportedOperator).what
    )


def test_a_division_by_the_constant_zero_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.1)
    y = model.quantized(model.node("Div", x, model.constant(0.0)), 0.1)
    assert "constant 0" in refusal(lower, model, y, error=UnsupportedOperator).what


def test_a_sum_that_may_exceed_32_bits_is_refused(model, lower):
    summed = 2**31 // (255 * 255) + 1
    x = model.quantized(model.input(1, summed), 0.1, 255, "uint8")
    w = model.weights(np.zeros((summed, 2)), 0.1, 255, "uint8")
    y = model.quantized(model.node("MatMul", x, w), 1000.0)
    error = refusal(lower, model, y, error=UnsupportedOperator)
    assert "32 bits" in error.what


def test_a_step_far_too_small_for_its_values_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 1.0)
    w = model.weights(np.ones((4, 4)), 1.0)
    y = model.quantized(model.node("MatMul", x, w), 1e-7)
    error = refusal(lower, model, y, error=UnsupportedOperator)
    assert "steps" in error.what
    assert "calibrate" in error.remedy


def test_sums_that_would_fill_the_stack_are_refused_with_the_layer(model, lower):
    """A product without a quantizer, of which the largest element is taken away from all."""
    x = model.quantized(model.input(1, 2000, 1), 0.1)
    product = model.node("MatMul", x, model.weights([[1]], 0.1))
    y = model.node("Sub", product, model.node("ReduceMax", product, axes=[1]))
    with pytest.raises(UnsupportedOperator, match="bytes of stack") as caught:
        lower(model, model.quantized(y, 0.1))
    assert "layer" in caught.value.where


def test_a_missing_file(tmp_path):
    with pytest.raises(ModelError, match="no such ONNX file"):
        import_onnx(tmp_path / "absent.onnx", "absent")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "the file is empty"),
        (
            b"version https://git-lfs\n",
            "24 bytes of text, which begin with 'version https://git-lfs",
        ),
        (bytes(range(256)) * 9, "2,304 bytes that are cut short, or of another format"),
    ],
    ids=["empty", "text", "binary"],
)
def test_a_broken_file(tmp_path, content, fault):
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="not a valid ONNX model") as caught:
        import_onnx(path, "broken")
    assert fault in caught.value.what
    assert caught.value.where == str(path)
    assert "entrain export" not in caught.value.remedy


def test_a_truncated_file(model, tmp_path):
    x = model.quantized(model.input(1, 4), 0.1)
    model.output(model.quantized(model.node("Neg", x), 0.1))
    path = model.save(tmp_path / "cut.onnx")
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ModelError, match=r"valid ONNX model: [\d,]+ bytes that are cut"):
        import_onnx(path, "cut")


@pytest.mark.parametrize("location", ["../outside.bin", "/etc/hostname"])
def test_external_data_outside_the_models_folder_is_refused(model, tmp_path, location):
    x = model.quantized(model.input(1, 4), 0.1)
    y = model.node("Add", x, model.constant(np.ones(4), name="bias"))
    model.output(model.quantized(y, 0.1))
    (tmp_path / "outside.bin").write_bytes(np.ones(4, "float32").tobytes())
    (tmp_path / "inside").mkdir()
    path = model.save(tmp_path / "inside" / "small.onnx")
    whole = onnx.load(path)
    (bias,) = (tensor for tensor in whole.graph.initializer if tensor.name == "bias")
    bias.ClearField("raw_data")
    bias.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": "0", "length": "16"}.items():
        bias.external_data.add(key=key, value=value)
    path.write_bytes(whole.SerializeToString())
    with pytest.raises(ModelError, match="not a valid ONNX model"):
        import_onnx(path, "small")


def test_what_tvm_cannot_import_is_a_model_error(model, tmp_path):
    x = model.quantized(model.input(1, 4), 0.1)
    shape = model.node("Identity", model.input(1, name="shape"))
    model.inputs[-1].type.tensor_type.elem_type = TensorProto.INT64
    y = model.node("Reshape", x, shape)
    model.output(model.quantized(y, 0.1))
    graph = helper.make_graph(model.nodes, "g", model.inputs, model.outputs, model.constants)
    graph.output[0].type.tensor_type.shape.dim.add().dim_value = 4
    path = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    with pytest.raises(ModelError) as caught:
        import_onnx(path, "small")
    assert caught.value.where == str(path)


@pytest.mark.parametrize("operator", ["Relu", "LSTM"])
def test_a_model_of_floats_is_told_at_once_and_how_to_quantize_it(model, tmp_path, operator):
    """And what would be refused once it is quantized."""
    x = model.input(1, 2, 4)
    weights = [model.constant(np.ones((1, 4, width))) for width in (4, 1)]
    y = (
        model.node("Relu", x)
        if operator == "Relu"
        else model.node("LSTM", x, *weights, hidden_size=1)
    )
    model.output(model.node("Reshape", y, model.constant([1, -1], "int64")))
    path = model.save(tmp_path / "floats.onnx")
    with pytest.raises(ModelError, match="the model is not quantized") as caught:
        import_onnx(path, "floats")
    assert caught.value.where == str(path)
    assert caught.value.exit_code == 2
    for way in ("QuantFormat.QDQ", "Brevitas"):
        assert way in caught.value.remedy
    assert ("do without LSTM" in caught.value.remedy) == (operator == "LSTM")
    assert "Reshape" not in caught.value.remedy


def test_a_network_quantized_in_brevitas_own_format_is_told_the_one_that_is_read(model, tmp_path):
    model.output(model.node("Relu", model.node("Neg", model.input(1, 4))))
    path = model.save(tmp_path / "qonnx.onnx")
    whole = onnx.load(path)
    whole.graph.node[0].op_type, whole.graph.node[0].domain = "Quant", "qonnx.custom_op.general"
    whole.opset_import.append(helper.make_opsetid("qonnx.custom_op.general", 1))
    path.write_bytes(whole.SerializeToString())
    with pytest.raises(UnsupportedOperator, match="domain qonnx") as caught:
        import_onnx(path, "qonnx")
    assert "export_onnx_qcdq" in caught.value.remedy

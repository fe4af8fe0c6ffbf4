"""What users of such tools run into: Brevitas's export, QDQ import, integer kernels, memory.

Each test is called as its complaint is.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import warnings

import numpy as np
import pytest
from many_networks import CORES, ManyNetworks, Network
from programs import require_emulator
from rewritten import check_unchanged

from entrain.deploy.boards import find_board
from entrain.deploy.build import build_firmware
from entrain.deploy.errors import DoesNotFit, EntrainError, ModelError
from entrain.deploy.lowering.host import KERNELS
from entrain.deploy.lowering.interpreter import interpret

RANDOM = np.random.default_rng(19)


def integers(*shape, low=-127, high=127):
    return RANDOM.integers(low, high, shape, endpoint=True)


# Brevitas's export


def test_brevitas_weight_only_quantization_is_refused_by_the_inputs_name(model, lower):
    """Weights alone are quantized: nobody knows which integers the device would get."""
    product = model.node("MatMul", model.input(1, 4), model.weights(integers(4, 3), 0.01))
    with pytest.raises(ModelError) as caught:
        lower(model, model.quantized(product, 0.1))
    assert "input features is not quantized" in caught.value.what
    assert "begin the model with QuantizeLinear" in caught.value.remedy


def test_brevitas_weight_only_quantization_of_a_later_layer_stays_integer(model, lower):
    """What the layer reads was never quantized: its integers are as wide as they have to be."""
    x = model.quantized(model.input(1, 4), 0.1)
    hidden = model.node("Relu", model.node("MatMul", x, model.weights(integers(4, 3), 0.01)))
    product = model.node("MatMul", hidden, model.weights(integers(3, 3), 0.01))
    lower(model, model.quantized(product, 1.31)).check()


def test_brevitas_a_bias_without_an_input_scale_is_a_float(model, lower):
    """Where Int32Bias would need an input scale the bias is exported unquantized."""
    x = model.quantized(model.input(1, 9), 0.05)
    gemm = model.node(
        "Gemm", x, model.weights(integers(9, 5), 0.01), model.constant(RANDOM.normal(size=5))
    )
    lower(model, model.quantized(gemm, 0.0531)).check()


@pytest.mark.parametrize("channels", [1, 5])
def test_brevitas_four_bit_weights_with_a_clip(model, lower, tmp_path, channels):
    """INT8 constant, Clip(-8, 7), DequantizeLinear; the constant may lie beyond the Clip."""
    x = model.quantized(model.input(1, 9), 0.05)
    stored = model.constant(integers(5, 9, low=-20, high=20), "int8")
    bounds = [model.constant(bound, "int8") for bound in (-8, 7)]
    scales = model.constant(RANDOM.uniform(0.05, 0.2, channels) if channels > 1 else 0.1)
    zeros = model.constant(np.zeros(channels) if channels > 1 else 0, "int8")
    w = model.node("DequantizeLinear", model.node("Clip", stored, *bounds), scales, zeros, axis=0)
    lowered = lower(model, model.quantized(model.node("Gemm", x, w, transB=1), 0.1))
    lowered.check()
    check_unchanged(tmp_path / "small.onnx")
    ((name, array),) = [
        (node.operator, node.operator.array)
        for node in lowered.graph.layers[0].expression.walk()
        if type(node.operator).__name__ == "Constant" and node.shape == (5, 9)
    ]
    assert array.min() == -8, name
    assert array.max() == 7


def test_brevitas_four_bit_activations_with_a_clip(model, lower, tmp_path):
    x = model.quantized(model.input(1, 9), 0.05)
    product = model.node("MatMul", x, model.weights(integers(9, 5), 0.01))
    q = model.quantize(product, 0.3, 0, "uint8")
    q = model.node("Clip", q, model.constant(0, "uint8"), model.constant(15, "uint8"))
    y = model.node("DequantizeLinear", q, model.constant(0.3), model.constant(0, "uint8"))
    lower(model, model.quantized(model.node("Neg", y), 0.3)).check()
    check_unchanged(tmp_path / "small.onnx")


@pytest.mark.parametrize("off", [0.49, -0.3, 0.01])
def test_brevitas_a_bias_off_its_grid_by_less_than_a_step(model, lower, off):
    """An int32 bias whose scale is not quite that of input times weight."""
    x = model.quantized(model.input(1, 9), 0.05)
    scales = RANDOM.uniform(0.001, 0.02, 5).astype("float32")
    w = model.weights(integers(5, 9), scales)
    b = model.weights(integers(5, low=1, high=9), scales * 0.05 * (1 + off), dtype="int32")
    lowered = lower(model, model.quantized(model.node("Gemm", x, w, b, transB=1), 0.0431))
    lowered.check()


def test_brevitas_a_bias_on_its_grid_costs_no_second_term(model, lower):
    x = model.quantized(model.input(1, 9), 0.05)
    scales = RANDOM.uniform(0.001, 0.02, 5).astype("float32")
    w = model.weights(integers(5, 9), scales)
    step = np.float32(0.05) * scales
    b = model.weights(integers(5, low=-3000, high=3000), step, dtype="int32")
    lowered = lower(model, model.quantized(model.node("Gemm", x, w, b, transB=1), 0.0431))
    lowered.check()
    (requantize,) = (
        node.operator
        for node in lowered.graph.layers[0].expression.walk()
        if type(node.operator).__name__ == "Requantize"
    )
    assert requantize.terms == 1


def test_brevitas_a_network_with_two_inputs(road, tmp_path):
    """Exported by Brevitas itself; each input has a quantizer of its own."""
    import brevitas.nn as qnn
    import torch
    from brevitas.export import export_onnx_qcdq
    from brevitas.quant import Int8ActPerTensorFloat, Int8WeightPerChannelFloat

    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.total = (
                qnn.QuantIdentity(act_quant=Int8ActPerTensorFloat) for _ in range(3)
            )
            self.linear = qnn.QuantLinear(6, 4, bias=True, weight_quant=Int8WeightPerChannelFloat)

        def forward(self, features, more):
            return self.total(self.linear(self.first(features)) + self.second(more))

    torch.manual_seed(0)
    network = Both()
    inputs = (torch.randn(8, 6), torch.randn(8, 4))
    network.train()(*inputs)
    path = tmp_path / "two.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export_onnx_qcdq(
            network.eval(), tuple(x[:1] for x in inputs), export_path=str(path), dynamo=False
        )
    lowered = road.from_file(path, tmp_path / "lowered")
    assert [value.shape for value in lowered.graph.inputs] == [(1, 6), (1, 4)]
    lowered.check()


# QDQ import


@pytest.mark.parametrize("opset", [13, 17, 19, 21])
def test_qdq_tensors_of_one_element_as_scale_and_zero_point(model, lower, tmp_path, opset):
    scale, zero = model.constant([0.05]), model.constant([3], "int8")
    q = model.node("QuantizeLinear", model.input(1, 4), scale, zero)
    x = model.node("DequantizeLinear", q, scale, zero)
    w = model.node(
        "DequantizeLinear",
        model.constant(integers(4, 3), "int8"),
        model.constant([0.01]),
        model.constant([0], "int8"),
    )
    b = model.node(
        "DequantizeLinear", model.constant(integers(3), "int32"), model.constant([0.0005])
    )
    y = model.node("Add", model.node("MatMul", x, w), b)
    out, shift = model.constant([0.0431]), model.constant([-2], "int8")
    q = model.node("QuantizeLinear", y, out, shift)
    lower(model, model.node("DequantizeLinear", q, out, shift), opset=opset).check()
    check_unchanged(tmp_path / "small.onnx")


def test_qdq_no_zero_point_at_all(model, lower):
    """Zero, and of type uint8 for a QuantizeLinear."""
    scale = model.constant(0.05)
    q = model.node("QuantizeLinear", model.input(1, 4), scale)
    x = model.node("DequantizeLinear", q, scale)
    q = model.node("QuantizeLinear", model.node("Mul", x, model.constant(0.3)), scale)
    lowered = lower(model, model.node("DequantizeLinear", q, scale))
    lowered.check()
    assert lowered.graph.input.dtype == lowered.graph.output.dtype == "uint8"


def test_qdq_zero_points_for_each_channel(model, lower):
    x = model.quantized(model.input(1, 3, 6, 6), 0.05, -9)
    scales, zeros = RANDOM.uniform(0.01, 0.03, 4), integers(4, low=-20, high=20)
    w = model.weights(integers(4, 3, 3, 3, low=-100, high=100), scales, zeros)
    lower(model, model.quantized(model.node("Conv", x, w), 0.2)).check()


def test_qdq_a_matmul_quantized_for_each_channel(model, lower):
    x = model.quantized(model.input(1, 5, 13), 0.05, 4)
    zeros = integers(7, low=-9, high=9)
    w = model.weights(
        integers(13, 7, low=-100, high=100), RANDOM.uniform(0.01, 0.03, 7), zeros, axis=1
    )
    b = model.constant(RANDOM.normal(size=7))
    y = model.node("Add", model.node("MatMul", x, w), b)
    lower(model, model.quantized(y, 0.2)).check()


def test_qdq_a_matmul_of_transposed_weights_quantized_for_each_row(model, lower):
    """A Linear layer of the dynamo exporter: DequantizeLinear(axis=0), Transpose, MatMul."""
    x = model.quantized(model.input(1, 5, 13), 0.05, 4)
    w = model.weights(integers(7, 13), RANDOM.uniform(0.01, 0.03, 7), axis=0)
    y = model.node("MatMul", x, model.node("Transpose", w, perm=[1, 0]))
    lower(model, model.quantized(y, 0.2)).check()


def test_qdq_a_missing_axis_attribute_means_axis_1(model, lower):
    x = model.quantized(model.input(1, 5, 13), 0.05, 4)
    w = model.node(
        "DequantizeLinear",
        model.constant(integers(13, 7), "int8"),
        model.constant(RANDOM.uniform(0.01, 0.03, 7)),
        model.constant(np.zeros(7), "int8"),
    )
    lower(model, model.quantized(model.node("MatMul", x, w), 0.2)).check()


def test_qdq_a_missing_axis_attribute_of_a_vector_means_its_only_axis(model, lower):
    """Onnxruntime refuses it for several scales and takes it for one; so it is a bias's one."""
    x = model.quantized(model.input(1, 4), 0.05)
    b = model.node("DequantizeLinear", model.constant(integers(3), "int32"), model.constant([0.01]))
    y = model.node("Gemm", x, model.weights(integers(4, 3), 0.01), b)
    lower(model, model.quantized(y, 0.0431)).check()


def test_qdq_a_missing_axis_attribute_where_only_axis_0_would_fit_is_refused(model, lower):
    x = model.quantized(model.input(1, 3, 6, 6), 0.05)
    w = model.node(
        "DequantizeLinear",
        model.constant(integers(4, 3, 3, 3), "int8"),
        model.constant(RANDOM.uniform(0.01, 0.03, 4)),
        model.constant(np.zeros(4), "int8"),
    )
    with pytest.raises(EntrainError) as caught:
        lower(model, model.quantized(model.node("Conv", x, w), 0.2, name="out"))
    assert "4 scales along axis 1" in caught.value.what
    assert "axis" in caught.value.remedy


@pytest.mark.parametrize("symbol", ["batch", "N", "unk__0"])
def test_qdq_a_symbolic_batch_dimension_is_one(model, lower, symbol):
    x = model.quantized(model.input(symbol, 5, 4), 0.05)
    w = model.weights(integers(4, 3), 0.01)
    lowered = lower(model, model.quantized(model.node("MatMul", x, w), 0.1))
    lowered.check()
    assert lowered.graph.input.shape == (1, 5, 4)


def test_qdq_parameters_shared_by_two_tensors(model, lower):
    scale, zero = model.constant(0.05), model.constant(3, "int8")
    q = model.node("QuantizeLinear", model.input(1, 4), scale, zero)
    x = model.node("DequantizeLinear", q, scale, zero)
    q = model.node("QuantizeLinear", model.node("Neg", x), scale, zero)
    lower(model, model.node("DequantizeLinear", q, scale, zero)).check()


def test_qdq_two_dequantizers_of_one_tensor(model, lower):
    """As onnxruntime's tool writes with dedicated pairs."""
    scale, zero = model.constant(0.05), model.constant(3, "int8")
    q = model.node("QuantizeLinear", model.input(1, 4), scale, zero)
    a, b = (model.node("DequantizeLinear", q, scale, zero) for _ in range(2))
    y = model.node("Add", model.node("Relu", a), b)
    lower(model, model.quantized(y, 0.11)).check()


def test_qdq_layer_normalization_of_opset_17(model, lower):
    """One node, between quantizers; its scale and bias may come from DequantizeLinear as well."""
    x = model.quantized(model.input(1, 4, 9), 0.05, 7)
    scale = model.weights(integers(9, low=20), 0.01)
    bias = model.weights(integers(9), 0.005)
    y = model.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
    lowered = lower(model, model.quantized(y, 0.03, -4), opset=17)
    lowered.check()
    assert [layer.title for layer in lowered.graph.layers] == ["normalization"]


def test_qdq_a_blocked_scale_is_refused(model, lower):
    x = model.quantized(model.input(1, 4), 0.05)
    w = model.node(
        "DequantizeLinear",
        model.constant(integers(4, 4), "int8"),
        model.constant(RANDOM.uniform(0.01, 0.03, (2, 4))),
        axis=0,
        block_size=2,
    )
    with pytest.raises(EntrainError) as caught:
        lower(model, model.quantized(model.node("MatMul", x, w), 0.1), opset=21)
    assert "block" in str(caught.value)


# integer kernels


@pytest.mark.parametrize("summed", [1, 3, 5, 15, 17, 31, 33])
def test_kernels_a_sum_over_no_multiple_of_the_vector(model, lower, summed):
    x = model.quantized(model.input(1, 3, summed), 0.05, 5)
    w = model.weights(integers(summed, 5), 0.01)
    lower(model, model.quantized(model.node("MatMul", x, w), 0.0731)).check()


def many_channels(model):
    x = model.quantized(model.input(1, 2, 3, 3), 0.05, 5)
    w = model.weights(integers(259, 2, 3, 3), RANDOM.uniform(0.01, 0.03, 259))
    y = model.quantized(model.node("Conv", x, w), 0.2)
    w = model.weights(integers(3, 259, 1, 1), 0.01)
    return model.quantized(model.node("Conv", y, w), 0.5)


def rows_of_logits(model, scale=0.09):
    x = model.quantized(model.input(1, 3, 7), scale, 3)
    return model.quantized(model.node("Softmax", x, axis=-1), 1 / 255, 0, "uint8")


def spread_logits(model):
    """Their differences reach 255 steps, more than a byte holds."""
    return rows_of_logits(model, scale=4.0)


def folded_biases(model):
    """Zero points at the ends of both types, in the input, the weights and the output."""
    x = model.quantized(model.input(1, 3, 17), 0.05, 255, "uint8")
    w = model.weights(integers(17, 9, low=-100, high=100), RANDOM.uniform(0.01, 0.03, 9), 9, axis=1)
    y = model.node("Add", model.node("MatMul", x, w), model.constant(RANDOM.normal(size=9) * 5))
    y = model.quantized(y, 0.31, -128)
    b = model.weights(integers(33) * 40, 0.31 * 0.01, dtype="int32")
    y = model.node("Add", model.node("MatMul", y, model.weights(integers(9, 33), 0.01)), b)
    return model.quantized(y, 0.9, 0, "uint8")


def odd_places(model):
    """The second input begins behind three bytes, and no value has a whole number of words."""
    left = model.quantized(model.input(1, 3, name="left"), 0.05, 5)
    right = model.quantized(model.input(1, 5, name="right"), 0.04, -6)
    parts = [
        model.quantized(
            model.node("MatMul", x, model.weights(integers(extent, 7), 0.01)), 0.0431, extent
        )
        for x, extent in ((left, 3), (right, 5))
    ]
    y = model.quantized(model.node("Add", *parts), 0.0531)
    return model.quantized(
        model.node("MatMul", y, model.weights(integers(7, 5), 0.01)), 0.0631, 9, "uint8"
    )


def odd_sums(model):
    """Over 17, 33 and 3 numbers."""
    x = model.quantized(model.input(1, 3, 17), 0.05, 5)
    for summed, columns in ((17, 33), (33, 3), (3, 5)):
        y = model.node("MatMul", x, model.weights(integers(summed, columns), 0.01))
        x = model.quantized(y, 0.4, columns)
    return x


def middles_of_steps(model):
    """Every real result lies just beside the middle of two steps."""
    x = model.quantized(model.input(1, 64), 1.0)
    y = model.node("MatMul", x, model.weights(np.eye(64), 1.0))
    y = model.node("Mul", y, model.constant(0.5 - 2.0**-12))
    return model.quantized(y, 1.0)


KERNEL_COMPLAINTS = (
    *(folded_biases, rows_of_logits, spread_logits, middles_of_steps),
    *(odd_places, many_channels, odd_sums),
)


@pytest.mark.parametrize("complaint", KERNEL_COMPLAINTS)
def test_kernels_on_this_machine(model, lower, complaint):
    lower(model, complaint(model)).check()


@pytest.fixture(scope="module")
def complaints(new_model, road, tmp_path_factory):
    """The networks of all complaints about kernels, for one firmware."""
    require_emulator()
    folder, networks = tmp_path_factory.mktemp("complaints"), []
    for complaint in KERNEL_COMPLAINTS:
        model, name = new_model(), complaint.__name__
        model.output(complaint(model))
        path = model.save(folder / f"{name}.onnx")
        lowered = road.from_file(path, folder / name)
        networks.append(Network(name, path, lowered.graph, lowered.source))
    return ManyNetworks(tuple(networks))


# an M3 computes as an M0 does, which forgives less
@pytest.mark.parametrize(
    "board",
    [pytest.param(b, marks=pytest.mark.long) if b == "mps2-an385" else b for b in CORES],
)
def test_kernels_on_every_core(complaints, tmp_path, board):
    """Whatever an instruction set does in its own way, the integers are the interpreter's."""
    found = list(complaints.differences(tmp_path, board, 4))
    assert not found, "\n".join(found)


def test_kernels_no_double_rounding(model, lower):
    """Where the real result lies just beside the middle of two steps, one rounding decides."""
    lowered = lower(model, middles_of_steps(model))
    given = np.arange(-64, 64, 2).astype(np.int8) + 1
    expected = np.rint(given.astype(np.float64) * (0.5 - 2.0**-12))
    np.testing.assert_array_equal(lowered.host.run(given)[0], expected)


def test_kernels_values_at_odd_addresses(model, lower):
    """Extents of one and three bytes, from a buffer that begins at an odd address."""
    x = model.quantized(model.input(1, 3), 0.05, 5)
    y = model.quantized(model.node("MatMul", x, model.weights(integers(3, 1), 0.01)), 0.0431)
    z = model.node("MatMul", y, model.weights(integers(1, 3), 0.01))
    lowered = lower(model, model.quantized(z, 0.0531))
    given = lowered.random_inputs(1)[0]
    expected = interpret(lowered.graph, given)[lowered.graph.output.name]
    library = lowered.host._library(trace=False)
    for offset in range(4):
        source, result = (ctypes.create_string_buffer(16) for _ in range(2))
        ctypes.memmove(ctypes.addressof(source) + offset, given.tobytes(), 3)
        addresses = [ctypes.addressof(b) + offset for b in (source, result)]
        library.model_run(*map(ctypes.c_void_p, addresses))
        raw = ctypes.string_at(addresses[1], 3)
        np.testing.assert_array_equal(np.frombuffer(raw, np.int8), expected.reshape(-1))


def test_kernels_no_call_of_a_layer_is_dropped(model, lower):
    """A compiler that knows all addresses must not lose sight of what a layer writes."""
    left = model.quantized(model.input(1, 7, 3, name="left"), 0.05, -14)
    right = model.quantized(model.input(1, 7, 3, name="right"), 0.06, 80, "uint8")
    total = model.quantized(model.node("Add", left, right), 0.0731, 177, "uint8")
    minus = model.quantized(model.node("Neg", total), 0.0831, -47)
    apart = model.quantized(model.node("Sub", total, minus), 0.1131, 160, "uint8")
    turned = model.quantized(model.node("Neg", apart), 0.1231, -35)
    joined = model.quantized(model.node("Concat", turned, apart, axis=0), 0.1331, 113, "uint8")
    w = model.weights(integers(3, 6, low=-100, high=100), 0.0118, 8)
    y = model.quantized(model.node("MatMul", joined, w), 0.381157666, -113)
    y = model.node("MatMul", y, model.node("Transpose", y, perm=[0, 2, 1]))
    lowered = lower(model, model.quantized(y, 167.0, 72, "uint8"))
    lowered.check_c(lowered.random_inputs(2))


# memory

RUN = """#include "model.h"
static int8_t input[MODEL_INPUT_BYTES], output[MODEL_OUTPUT_BYTES];
int main(void) {
    model_run(input, output);
    return 0;
}
"""


def reports_of_a_sanitizer(folder, arena_bytes):
    """What the sanitizer of addresses says of the model with an arena of so many bytes."""
    header = folder / "model.h"
    sized = f"#define MODEL_ARENA_BYTES {arena_bytes}u"
    header.write_text(re.sub(r"#define MODEL_ARENA_BYTES \d+u", sized, header.read_text()))
    (folder / "main.c").write_text(RUN)
    program = folder / "program"
    sources = [folder / name for name in ("main.c", "model.c", "weights.c")]
    options = ["-std=c11", "-g", "-fsanitize=address", f"-I{KERNELS}", f"-I{folder}"]
    subprocess.run(["cc", *options, *sources, "-o", program], check=True)
    return subprocess.run([program], capture_output=True, text=True, check=False).stderr


def test_memory_an_arena_of_a_byte_less_is_too_small_and_as_it_is_it_is_not(model, lower, tmp_path):
    x = model.quantized(model.input(1, 37), 0.05)
    y = model.node("Concat", x, model.node("Neg", x), axis=1)
    y = model.quantized(y, 0.06)
    y = model.node("Gather", y, model.constant(RANDOM.permutation(74)[:61], "int64"), axis=1)
    y = model.quantized(model.node("Abs", y), 0.061)
    y = model.quantized(model.node("Tile", y, model.constant([1, 2], "int64")), 0.062, 5)
    lowered = lower(model, model.quantized(model.node("Neg", y), 0.07))
    ends = [each.offset + each.size for each in lowered.record.layers[:-1]]
    assert 0 <= lowered.record.arena_bytes - max(ends) < 8
    folder = tmp_path / "lowered"
    assert reports_of_a_sanitizer(folder, max(ends)) == ""
    assert "global-buffer-overflow" in reports_of_a_sanitizer(folder, max(ends) - 1)


def test_memory_flash_that_overflows_is_told_in_bytes(model, lower, tmp_path):
    require_emulator()
    x = model.quantized(model.input(1, 700), 0.05)
    y = model.node("MatMul", x, model.weights(integers(700, 760), 0.001))
    lower(model, model.quantized(y, 0.1))
    board = find_board("mps3-an547")
    with pytest.raises(DoesNotFit, match=r"flash is \d+ bytes short of \d+") as error:
        build_firmware(board, tmp_path / "lowered", tmp_path / "firmware.elf")
    short = error.value.short["flash"]
    assert 700 * 760 < board.flash_bytes + short < 700 * 760 + 40_000

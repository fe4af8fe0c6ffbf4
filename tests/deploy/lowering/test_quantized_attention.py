"""Attention is recognised in files that onnxruntime quantized, with quantizers all over it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from attention_networks import D_HEAD, HEADS, RECOGNISED, SHAPE, TOKENS, WIDTH, GroupedQueries
from onnx import TensorProto, helper, numpy_helper
from rewritten import check_unchanged
from static_quantization import SIGNED, WAYS, quantized_statically
from unquantized_inside import session_of

from entrain.deploy.arithmetic import dequantize, quantize
from entrain.deploy.onnx_session import OnnxSession


def samples(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 1, *SHAPE)).astype(np.float32)


def exported(network, path: Path, opset: int = 17) -> Path:
    axes = {"x": {0: "batch"}} if opset == 17 else None
    return written_by_pytorch(network, path, dynamo=False, opset_version=opset, dynamic_axes=axes)


def exported_anew(network, path: Path) -> Path:
    """By PyTorch's exporter of traced programs, the default since 2.9, in its own opset."""
    return written_by_pytorch(network, path, dynamo=True, verbose=False)


def written_by_pytorch(network, path: Path, **given) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = (torch.randn(1, *SHAPE),)
        names = {"input_names": ["x"], "output_names": ["y"]}
        torch.onnx.export(network.eval(), inputs, path, **names, **given)
    return path


def lowered_from(road, source: Path, folder: Path, way: str = SIGNED):
    """A float file, quantized and lowered; onnxruntime as far as the network is still quantized."""
    path = quantized_statically(source, folder / "qdq.onnx", SHAPE, 64, **WAYS[way])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lowered = road.from_file(path, folder / "lowered")
    check_unchanged(path, atol=1.01 * lowered.graph.output.scale)
    return replace(lowered, onnx=session_of(path, lowered.graph)), OnnxSession(
        path.read_bytes(), "as it came"
    )


def attentions(lowered) -> list[str]:
    return [layer.title for layer in lowered.graph.layers if "attention" in layer.title]


def check(lowered, as_it_came) -> None:
    """Each layer within a step; the whole as the file with everything quantized, mostly."""
    lowered.check(lowered.random_inputs(3), equal=0.95)
    first, last = lowered.graph.input, lowered.graph.output
    differences = []
    for x in samples(8, seed=1):
        given = quantize(x, first.scale, first.zero_point, first.dtype).reshape(first.shape)
        real = dequantize(given, first.scale, first.zero_point).astype(np.float32)
        (theirs,) = as_it_came.run({as_it_came.inputs[0]: real.reshape(x.shape)}).values()
        ours = dequantize(lowered.interpret(given), last.scale, last.zero_point)
        differences.append(np.abs(ours.ravel() - theirs.ravel()) / last.scale)
    assert np.mean(differences) < 1.0


# what differs little from another form, or is another form twice
SELDOM = (
    *("scale in the weights", "keys and values packed", "multihead with weights"),
    *("multihead, sequence first", "two encoder layers, normalized first"),
)


@pytest.mark.parametrize(
    "form",
    [pytest.param(form, marks=pytest.mark.long) if form in SELDOM else form for form in RECOGNISED],
)
def test_it_is_recognised_however_it_was_written(road, tmp_path, form):
    torch.manual_seed(0)
    network = RECOGNISED[form]()
    lowered = lowered_from(road, exported(network, tmp_path / "float.onnx"), tmp_path)
    count = 2 if form.startswith("two") else 1
    assert attentions(lowered[0]) == ["softmax attention"] * count
    assert "Softmax" not in lowered[0].operators
    check(*lowered)


# one that people write, one with a view of each operand, and PyTorch's own
OFTEN = ("sums of products", "rotated", "encoder layer")


@pytest.mark.parametrize(
    "form",
    [form if form in OFTEN else pytest.param(form, marks=pytest.mark.long) for form in RECOGNISED],
)
def test_it_is_recognised_from_pytorchs_newer_exporter_too(road, tmp_path, form):
    torch.manual_seed(0)
    source = exported_anew(RECOGNISED[form](), tmp_path / "float.onnx")
    lowered = lowered_from(road, source, tmp_path)
    count = 2 if form.startswith("two") else 1
    assert attentions(lowered[0]) == ["softmax attention"] * count
    check(*lowered)


def check_quantized(road, folder, form, way, opset=17):
    torch.manual_seed(0)
    source = exported(RECOGNISED[form](), folder / "float.onnx", opset)
    lowered = lowered_from(road, source, folder, way)
    assert attentions(lowered[0]) == ["softmax attention"]
    check(*lowered)


# signed for each channel is the way in which every form is quantized above
@pytest.mark.parametrize(
    "way",
    [
        "uint8 throughout",
        pytest.param("symmetric activations", marks=pytest.mark.long),
        pytest.param("a quantizer pair for each reader", marks=pytest.mark.long),
    ],
)
def test_it_is_recognised_however_it_was_quantized(road, tmp_path, way):
    check_quantized(road, tmp_path, "scale before the scores", way)


def test_it_is_recognised_in_an_older_opset(road, tmp_path):
    check_quantized(road, tmp_path, "multihead", SIGNED, 14)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_a_packed_form_is_recognised_however_it_was_quantized(road, tmp_path, way):
    check_quantized(road, tmp_path, "multihead", way)


def test_grouped_queries_are_no_fused_operator_and_right_all_the_same(road, tmp_path):
    torch.manual_seed(0)
    source = exported(GroupedQueries(), tmp_path / "float.onnx")
    lowered = lowered_from(road, source, tmp_path)
    assert attentions(lowered[0]) == []
    check(*lowered)


class Written:
    """A model that is written node by node, between projections of x to q, k, v and of c to y."""

    def __init__(self) -> None:
        self.nodes, self.arrays = [], []
        self.random = np.random.default_rng(0)

    def constant(self, array, name: str) -> str:
        self.arrays.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, operator: str, inputs: list[str], output: str, **given) -> str:
        self.nodes.append(
            helper.make_node(operator, inputs, [output], name=f"node_{output}", **given)
        )
        return output

    def projected(self, source: str, name: str, width: int) -> str:
        weights = self.random.normal(size=(WIDTH, width)).astype(np.float32) * 0.3
        bias = self.random.normal(size=width).astype(np.float32) * 0.2
        product = [source, self.constant(weights, f"{name}_weights")]
        total = [self.add("MatMul", product, f"{name}_product"), self.constant(bias, f"{name}_b")]
        return self.add("Add", total, name)

    def by_heads(self, name: str, heads: int = HEADS) -> str:
        shape = self.constant(np.array([1, TOKENS, heads, D_HEAD]), f"{name}_shape")
        split = self.add("Reshape", [name, shape], f"{name}_split")
        return self.add("Transpose", [split], f"{name}_heads", perm=[0, 2, 1, 3])

    def merged(self, name: str) -> str:
        shape = self.constant(np.array([1, TOKENS, WIDTH]), f"{name}_shape")
        moved = self.add("Transpose", [name], f"{name}_moved", perm=[0, 2, 1, 3])
        return self.add("Reshape", [moved, shape], f"{name}_merged")

    def save(self, path: Path, opset: int) -> Path:
        ends = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, *SHAPE]) for name in "xy"
        ]
        graph = helper.make_graph(self.nodes, "written", ends[:1], ends[1:], self.arrays)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        model.ir_version = 10 if opset < 23 else 11
        onnx.save(model, path)
        return path


@pytest.fixture
def written() -> Written:
    return Written()


def attention_operator(written, path: Path, *, rank: int, key_heads: int = HEADS, **given) -> Path:
    widths = {"q": WIDTH, "k": key_heads * D_HEAD, "v": key_heads * D_HEAD}
    tensors = [written.projected("x", name, width) for name, width in widths.items()]
    if rank == 4:
        tensors = [written.by_heads(name, widths[name] // D_HEAD) for name in tensors]
    else:
        given |= {"q_num_heads": HEADS, "kv_num_heads": key_heads}
    if "mask" in given:
        tensors.append(written.constant(given.pop("mask"), "mask"))
    context = written.add("Attention", tensors, "context", **given)
    written.projected(written.merged(context) if rank == 4 else context, "y", WIDTH)
    return written.save(path, 23)


@pytest.mark.parametrize("given", [{}, {"scale": 0.7}, {"key_heads": 1}], ids=str)
@pytest.mark.parametrize("rank", [3, 4])
def test_the_operator_attention(road, tmp_path, written, rank, given):
    source = attention_operator(written, tmp_path / "float.onnx", rank=rank, **given)
    lowered = lowered_from(road, source, tmp_path)
    assert attentions(lowered[0]) == ["softmax attention"]
    check(*lowered)


CAUSAL = np.tri(TOKENS, dtype=bool)
MASKS = {
    "causal": {"is_causal": 1},
    "of truths": {"mask": CAUSAL},
    "of numbers": {"mask": np.where(CAUSAL, 0.0, -1e4).astype(np.float32)},
}


@pytest.mark.parametrize("mask", MASKS)
def test_a_masked_attention_is_no_fused_operator_and_right_all_the_same(
    road, tmp_path, written, mask
):
    source = attention_operator(written, tmp_path / "float.onnx", rank=3, **MASKS[mask])
    lowered = lowered_from(road, source, tmp_path)
    assert attentions(lowered[0]) == []
    check(*lowered)


def test_keys_transposed_with_three_axes_and_half_of_the_scale_on_either_side(
    road, tmp_path, written
):
    q, k, v = (written.by_heads(written.projected("x", name, WIDTH)) for name in "qkv")
    flat = written.constant(np.array([-1, TOKENS, D_HEAD]), "flat")
    whole = written.constant(np.array([1, HEADS, D_HEAD, TOKENS]), "whole")
    keys = written.add("Reshape", [k, flat], "k_flat")
    keys = written.add("Transpose", [keys], "k_transposed", perm=[0, 2, 1])
    keys = written.add("Reshape", [keys, whole], "k_whole")
    root = written.constant(np.float32(D_HEAD**-0.25), "root")
    q, keys = (
        written.add("Mul", [q, root], "q_scaled"),
        written.add("Mul", [keys, root], "k_scaled"),
    )
    weights = written.add("Softmax", [written.add("MatMul", [q, keys], "scores")], "weights")
    written.projected(written.merged(written.add("MatMul", [weights, v], "c")), "y", WIDTH)
    lowered = lowered_from(road, written.save(tmp_path / "float.onnx", 18), tmp_path)
    assert attentions(lowered[0]) == ["softmax attention"]
    check(*lowered)


@pytest.mark.parametrize("packed", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_multihead_attention_of_brevitas(road, tmp_path, packed):
    """Queries quantized after scaling, keys after transposing, input and output moved outside."""
    import brevitas.nn as qnn
    from brevitas import quant
    from brevitas.export import export_onnx_qcdq

    torch.manual_seed(0)
    activations = ("q_scaled", "k_transposed", "v", "out_proj_input", "out_proj_output")
    given = {f"{name}_quant": quant.Int8ActPerTensorFloat for name in activations}
    for name in ("in_proj", "out_proj"):
        given[f"{name}_weight_quant"] = quant.Int8WeightPerTensorFloat
        given[f"{name}_bias_quant"] = quant.Int32Bias

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = qnn.QuantIdentity(quant.Int8ActPerTensorFloat, return_quant_tensor=True)
            self.attention = qnn.QuantMultiheadAttention(
                WIDTH,
                HEADS,
                packed_in_proj=packed,
                batch_first=True,
                in_proj_input_quant=None,
                attn_output_weights_quant=quant.Uint8ActPerTensorFloat,
                **given,
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.first(x)
            return self.attention(x, x, x, need_weights=False)[0]

    network, inputs = Network(), torch.from_numpy(samples(32, seed=0)[:, 0])
    network.train()(inputs)
    network.eval()
    path = tmp_path / "qcdq.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export_onnx_qcdq(network, inputs[:1], export_path=str(path), dynamo=False, opset_version=17)
        lowered = road.from_file(path, tmp_path / "lowered")
    assert attentions(lowered) == ["softmax attention"]
    check(
        replace(lowered, onnx=session_of(path, lowered.graph)),
        OnnxSession(path.read_bytes(), "as it came"),
    )

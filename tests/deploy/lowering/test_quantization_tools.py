"""Networks as other people's tools quantize and export them: onnxruntime, PyTorch, Brevitas."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from rewritten import check_unchanged
from static_quantization import WAYS, quantized_statically
from torch import nn
from unquantized_inside import session_of


class ConvolutionalNetwork(nn.Module):
    """A normalized convolution, a pool that reaches over the edge, depthwise and pointwise ones."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(2, 6, 3, padding=1),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.MaxPool2d(2, ceil_mode=True),
            nn.Conv2d(6, 6, 3, stride=2, groups=6, padding=1),
            nn.Conv2d(6, 9, 1),
            nn.ReLU6(),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(9, 5),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Encoder(nn.Module):
    """One layer of a transformer over tokens, with a class token in front."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))
        self.head = nn.Linear(width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
        batch, time, width = x.shape
        each = width // self.heads
        packed = self.project(x).reshape(batch, time, 3, self.heads, each)
        q, k, v = packed.permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) * each**-0.5).softmax(-1)
        x = self.first(x + self.out((weights @ v).transpose(1, 2).reshape(batch, time, width)))
        x = self.second(x + self.feed(x))
        return self.head(x[:, 0])


def exported(network, shape, path: Path, batch: str | None = "batch") -> Path:
    axes = {"x": {0: batch}, "y": {0: batch}} if batch else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (torch.randn(1, *shape),),
            path,
            dynamo=False,
            opset_version=17,
            input_names=["x"],
            output_names=["y"],
            dynamic_axes=axes,
        )
    return path


def checked(road, path: Path, folder: Path, atol: float | None = None):
    """The whole road, and onnxruntime on the file as it came; attention is real inside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lowered = road.from_file(path, folder)
    lowered = replace(lowered, onnx=session_of(path, lowered.graph))
    lowered.check(lowered.random_inputs(4), equal=0.98)
    if atol is not None:
        check_unchanged(path, atol)
    return lowered


NETWORKS = {"convolutions": (ConvolutionalNetwork, (2, 9, 9)), "encoder": (Encoder, (6, 8))}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", NETWORKS)
def test_a_network_that_onnxruntimes_static_tool_quantized(road, tmp_path, kind, way):
    torch.manual_seed(0)
    make, shape = NETWORKS[kind]
    source = exported(make().eval(), shape, tmp_path / "float.onnx")
    path = quantized_statically(source, tmp_path / "qdq.onnx", shape, 8, **WAYS[way])
    step = onnx.numpy_helper.to_array(
        next(t for t in onnx.load(path).graph.initializer if t.name == "y_scale")
    )
    checked(road, path, tmp_path / "lowered", atol=1.01 * float(step))


def test_reshapes_that_the_tool_quantizes_are_no_layers(road, tmp_path):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(8, 6), nn.Unflatten(-1, (2, 3)), nn.Flatten(1)).eval()
    source = exported(network, (4, 8), tmp_path / "float.onnx")
    path = quantized_statically(source, tmp_path / "qdq.onnx", (4, 8), 8)
    quantized = [n for n in onnx.load(path).graph.node if n.op_type == "QuantizeLinear"]
    lowered = checked(road, path, tmp_path / "lowered")
    assert len(lowered.graph.layers) < len(quantized) - 1


class Pooled(nn.Module):
    """What PyTorch's own quantization fuses, and what it leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.normal = nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.second, self.pool = nn.Conv2d(6, 6, 3, groups=6), nn.MaxPool2d(2)
        self.head = nn.Linear(54, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.normal(self.first(x)))
        return self.head(self.pool(self.second(x)).flatten(1))


@pytest.fixture
def images() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(4, 2, 8, 8)


@pytest.mark.parametrize("backend", ["qnnpack", "x86"])
def test_a_network_that_pytorch_quantized_after_training(road, tmp_path, images, backend):
    """Casts to the type that a tensor has, and conversions between every two modules."""
    from torch.ao.quantization import get_default_qconfig_mapping
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mapping = get_default_qconfig_mapping(backend)
        prepared = prepare_fx(Pooled().eval(), mapping, (images,))
        prepared(images)
        traced = torch.jit.trace(convert_fx(prepared), images[:1])
    path = exported(traced, images.shape[1:], tmp_path / "qdq.onnx")
    checked(road, path, tmp_path / "lowered")


def test_a_network_that_pytorch_trained_with_fake_quantization(road, tmp_path, images):
    """Float weights behind quantizers of their own, and the batch normalization left as it is."""
    from torch.ao import quantization
    from torch.ao.quantization.quantize_fx import prepare_qat_fx

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        configured = quantization.get_default_qat_qconfig("qnnpack", version=0)
        mapping = quantization.QConfigMapping().set_global(configured)
        prepared = prepare_qat_fx(Pooled().train(), mapping, (images,))
        prepared(images)
        prepared.eval().apply(quantization.disable_observer)
        traced = torch.jit.trace(prepared, images[:1])
    path = exported(traced, images.shape[1:], tmp_path / "qdq.onnx")
    checked(road, path, tmp_path / "lowered")


@pytest.mark.parametrize("bits", [8, 4])
def test_a_network_that_brevitas_exported(road, tmp_path, bits):
    """Weights clipped to fewer bits, a bias in 32, activations of both signs, one axis and two."""
    import brevitas.nn as qnn
    from brevitas.export import export_onnx_qcdq
    from brevitas.quant import (
        Int8ActPerTensorFloat,
        Int8WeightPerChannelFloat,
        Int32Bias,
        Uint8ActPerTensorFloat,
    )

    torch.manual_seed(0)
    quantizers = {
        "weight_quant": Int8WeightPerChannelFloat,
        "weight_bit_width": bits,
        "bias_quant": Int32Bias,
        "return_quant_tensor": True,
    }
    network = nn.Sequential(
        qnn.QuantIdentity(act_quant=Int8ActPerTensorFloat, return_quant_tensor=True),
        qnn.QuantConv1d(3, 5, 3, stride=2, padding=1, bias=True, **quantizers),
        qnn.QuantReLU(act_quant=Uint8ActPerTensorFloat, bit_width=bits, return_quant_tensor=True),
        nn.Flatten(),
        qnn.QuantLinear(25, 4, bias=True, **quantizers),
        qnn.QuantIdentity(act_quant=Int8ActPerTensorFloat),
    )
    inputs = torch.randn(16, 3, 9)
    network.train()
    network(inputs)
    network.eval()
    path = tmp_path / "qcdq.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export_onnx_qcdq(network, inputs[:1], export_path=str(path), dynamo=False, opset_version=17)
    lowered = checked(road, path, tmp_path / "lowered")
    limit = 2 ** (bits - 1)
    weights = [
        node.operator.array
        for layer in lowered.graph.layers
        for node in layer.expression.walk()
        if type(node.operator).__name__ == "Constant" and node.dtype == "int8"
    ]
    assert any(array.size > 4 for array in weights)
    assert all(np.abs(array.astype(int)).max() < limit for array in weights if array.size > 4)

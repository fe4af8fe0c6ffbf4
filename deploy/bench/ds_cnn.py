"""MLPerf Tiny's keyword spotting network, DS-CNN, with random weights, as QCDQ ONNX.

A 10x4 convolution with stride 2 on 49x10 features, four blocks of a 3x3 depthwise and a pointwise
convolution with 64 channels, the average over the image, twelve classes: 2,656,768 multiply-adds.
What it costs does not depend on its weights.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from entrain.deploy.lowering.graph import Array, LoweredGraph

FRAMES, FEATURES, CHANNELS, BLOCKS, CLASSES = 49, 10, 64, 4, 12
SCALE = 0.05  # of every activation
OPSET = 17


@dataclass
class _Builder:
    """An ONNX graph that grows by nodes; every method returns the tensor it adds."""

    random: np.random.Generator
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def constant(self, array: Array) -> str:
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name, **attributes))
        return name

    def quantized(self, tensor: str, name: str, dtype: type[np.generic] = np.int8) -> str:
        from onnx import helper

        scale, zero = (
            self.constant(np.asarray(SCALE, np.float32)),
            self.constant(np.zeros((), dtype)),
        )
        self.nodes.append(helper.make_node("QuantizeLinear", [tensor, scale, zero], [name], name))
        return self.node("DequantizeLinear", name, scale, zero)

    def weights(self, *shape: int) -> str:
        codes = self.random.integers(-127, 128, shape).astype(np.int8)
        # as large as keeps the variance of activations from layer to layer
        scale = np.full(shape[0], np.sqrt(6.0 / np.prod(shape[1:])) / 127.0, np.float32)
        zero = np.zeros(shape[0], np.int8)
        tensors = [self.constant(each) for each in (codes, scale, zero)]
        return self.node("DequantizeLinear", *tensors, axis=0)

    def bias(self, channels: int) -> str:
        return self.constant(self.random.normal(0.0, 0.1, channels).astype(np.float32))

    def convolution(self, x: str, name: str, kernel: tuple[int, ...], **attributes: Any) -> str:
        y = self.node("Conv", x, self.weights(*kernel), self.bias(kernel[0]), **attributes)
        return self.quantized(self.node("Relu", y), name, np.uint8)


def ds_cnn_model() -> Any:
    """The network as an ONNX model, of random weights from a fixed seed."""
    import onnx
    from onnx import TensorProto, helper

    net = _Builder(np.random.default_rng(0))
    x = net.quantized("features", "input")
    x = net.convolution(x, "stem", (CHANNELS, 1, 10, 4), strides=[2, 2], pads=[4, 1, 5, 1])
    for block in range(1, BLOCKS + 1):
        depth = (CHANNELS, 1, 3, 3)
        x = net.convolution(x, f"depthwise_{block}", depth, pads=[1, 1, 1, 1], group=CHANNELS)
        x = net.convolution(x, f"pointwise_{block}", (CHANNELS, CHANNELS, 1, 1))
    x = net.quantized(net.node("GlobalAveragePool", x), "pooled", np.uint8)
    x = net.node("Flatten", x)
    x = net.node("Gemm", x, net.weights(CLASSES, CHANNELS), net.bias(CLASSES), transB=1)
    x = net.quantized(x, "logits")
    shape = (1, 1, FRAMES, FEATURES)
    graph = helper.make_graph(
        net.nodes,
        "ds-cnn",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, None)],
        initializer=net.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = 8
    return onnx.shape_inference.infer_shapes(model)


def ds_cnn() -> LoweredGraph:
    """The network in integers."""
    import onnx

    from entrain.deploy.lowering.network import read_network

    with tempfile.TemporaryDirectory(prefix="entrain-bench-") as folder:
        path = Path(folder) / "ds-cnn.onnx"
        onnx.save(ds_cnn_model(), str(path))
        return read_network(path, "ds-cnn")

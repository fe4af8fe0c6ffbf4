"""Small QCDQ models, and the whole road of one: onnxruntime, interpreter, C."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from entrain.deploy.arithmetic import dequantize
from entrain.deploy.lowering.artifact import LoweredModel, describe
from entrain.deploy.lowering.emit import ModelSource, emit_model
from entrain.deploy.lowering.graph import LoweredGraph
from entrain.deploy.lowering.host import HostModel
from entrain.deploy.lowering.interpreter import interpret, run_layer
from entrain.deploy.lowering.network import read_network
from entrain.deploy.lowering.onnx_file import read_onnx, with_boundaries_as_outputs
from entrain.deploy.lowering.program import Program, build_program
from entrain.deploy.lowering.tensors import by_name
from entrain.deploy.onnx_session import OnnxSession

OPSET = 17


@dataclass
class Model:
    """An ONNX model that is written node by node; every method returns a tensor's name."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    def _name(self, stem: str) -> str:
        return f"{stem}_{len(self.nodes) + len(self.constants)}"

    def input(self, *shape: int | str, name: str = "features") -> str:
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def constant(self, array: Any, dtype: str = "float32", name: str | None = None) -> str:
        name = name or self._name("constant")
        self.constants.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def node(self, operator: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        output = name or self._name(operator.lower())
        node = helper.make_node(
            operator, list(inputs), [output], name=f"node_{output}", **attributes
        )
        self.nodes.append(node)
        return output

    def quantize(
        self, tensor: str, scale: Any, zero: int = 0, dtype: str = "int8", name: str | None = None
    ) -> str:
        """QuantizeLinear alone."""
        return self.node(
            "QuantizeLinear",
            tensor,
            self.constant(scale),
            self.constant(zero, dtype),
            name=name,
        )

    def quantized(
        self, tensor: str, scale: Any, zero: int = 0, dtype: str = "int8", name: str | None = None
    ) -> str:
        """QuantizeLinear and DequantizeLinear."""
        q = self.quantize(tensor, scale, zero, dtype, name)
        return self.node("DequantizeLinear", q, self.constant(scale), self.constant(zero, dtype))

    def weights(
        self, array: Any, scale: Any, zero: Any = 0, dtype: str = "int8", axis: int = 0
    ) -> str:
        """DequantizeLinear of integers; a scale for each channel if there are several."""
        zeros = np.broadcast_to(np.asarray(zero, dtype), np.shape(scale))
        return self.node(
            "DequantizeLinear",
            self.constant(array, dtype),
            self.constant(scale),
            self.constant(zeros, dtype),
            axis=axis,
        )

    def output(self, tensor: str, dtype: int = TensorProto.FLOAT) -> None:
        self.outputs.append(helper.make_tensor_value_info(tensor, dtype, None))

    def save(self, path: Path, opset: int = OPSET) -> Path:
        graph = helper.make_graph(
            self.nodes, "small", self.inputs, self.outputs, initializer=self.constants
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        model.ir_version = 8
        onnx.save(onnx.shape_inference.infer_shapes(model), str(path))
        return path


@dataclass(frozen=True)
class Lowered:
    """A model and all its forms."""

    graph: LoweredGraph
    source: ModelSource
    record: LoweredModel
    host: HostModel
    onnx: OnnxSession

    @classmethod
    def from_file(cls, path: Path, folder: Path) -> Lowered:
        return cls.from_program(build_program(read_network(path, "small")), path, folder)

    @classmethod
    def from_program(cls, program: Program, path: Path, folder: Path) -> Lowered:
        source = emit_model(program, "kws01")
        folder.mkdir(exist_ok=True)
        for name, text in source.files:
            (folder / name).write_text(text)
        record = describe(program, "kws01")
        whole, _ = with_boundaries_as_outputs(read_onnx(path))
        session = OnnxSession(whole.SerializeToString(), "small")
        return cls(program.graph, source, record, HostModel(record, folder), session)

    @property
    def operators(self) -> list[str]:
        """Names of the operators in all layers."""
        nodes = [node for layer in self.graph.layers for node in layer.expression.walk()]
        return [type(node.operator).__name__ for node in nodes]

    def random_inputs(self, count: int, seed: int = 0) -> Any:
        """Integers of the only input [count, ...], or as many dictionaries of several."""
        random = np.random.default_rng(seed)
        arrays = {}
        for source in self.graph.inputs:
            limits = np.iinfo(source.dtype)
            shape = (count, *source.shape)
            arrays[source.name] = random.integers(
                limits.min, limits.max, shape, source.dtype, endpoint=True
            )
        if len(arrays) == 1:
            return arrays[self.graph.input.name]
        return [{name: array[k] for name, array in arrays.items()} for k in range(count)]

    def features(self, quantized: dict[str, Any]) -> dict[str, Any]:
        """What onnxruntime reads where the network reads these integers."""
        pairs = zip(self.onnx.inputs, self.graph.inputs, strict=True)
        return {
            name: dequantize(quantized[value.name], value.scale, value.zero_point)
            for name, value in pairs
        }

    def interpret(self, one: Any) -> Any:
        """The output's integers for one input, by numpy."""
        return interpret(self.graph, one)[self.graph.output.name]

    def difference_from_onnxruntime(self, inputs: Any) -> tuple[int, float]:
        """The largest difference in steps, and the fraction of integers that are equal.

        Each layer starts from onnxruntime's own integers, so that steps do not add up.
        """
        graph, differences = self.graph, []
        for one in inputs:
            values = by_name(graph.inputs, one)
            theirs = self.onnx.run(self.features(values))
            for layer in graph.layers:
                values[layer.name] = layer.output.from_onnx(theirs[layer.output.onnx_output])
            for layer in graph.layers:
                ours = run_layer(layer, values).astype(int)
                differences.append(np.abs(ours - values[layer.name]).ravel())
        every = np.concatenate(differences)
        return int(every.max()), float((every == 0).mean())

    def check_c(self, inputs: Any) -> None:
        """Every layer of the C equals the interpreter, to the bit."""
        for one in inputs:
            ours = interpret(self.graph, one)
            for name, values in self.host.trace(one).items():
                np.testing.assert_array_equal(values, ours[name], err_msg=f"layer {name}")

    def check(self, inputs: Any = None, equal: float = 0.9) -> None:
        """Within one step of onnxruntime, most integers equal; C as the interpreter."""
        inputs = self.random_inputs(8) if inputs is None else inputs
        worst, fraction = self.difference_from_onnxruntime(inputs)
        assert worst <= 1
        assert fraction >= equal
        self.check_c(inputs)


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture(scope="session")
def new_model() -> type[Model]:
    return Model


@pytest.fixture(scope="session")
def road() -> type[Lowered]:
    return Lowered


@pytest.fixture
def lower(tmp_path: Path) -> Callable[..., Lowered]:
    """Ends a model at a tensor (unless it has an output), lowers it and emits its C."""

    def lowered(model: Model, tensor: str | None = None, opset: int = OPSET) -> Lowered:
        if tensor is not None:
            model.output(tensor)
        path = model.save(tmp_path / "small.onnx", opset)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return Lowered.from_file(path, tmp_path / "lowered")

    return lowered

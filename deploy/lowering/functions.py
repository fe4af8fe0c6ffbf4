"""A layer's C function: a call of a kernel where one computes the layer, else generated loops."""

from __future__ import annotations

from dataclasses import dataclass

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.codegen import C_TYPES, function_to_c
from entrain.deploy.lowering.graph import Array, Layer, Value
from entrain.deploy.lowering.kernels import find_kernel
from entrain.deploy.lowering.kernels.contract import Kernel
from entrain.deploy.lowering.primitive import build_primitive
from entrain.deploy.lowering.schedules.blocks import Blocks
from entrain.deploy.lowering.schedules.scalar import schedule_scalar

LARGEST_STACK_ARRAYS = 4096  # bytes; boards reserve twice as much for the whole stack
ARITHMETIC = "entrain_arithmetic.h"


@dataclass(frozen=True)
class LayerFunction:
    """One C function of the model.

    Its parameters are the inputs, the constants, the scratch if there is any, and the output.

    Attributes:
        layer: what it computes.
        text: the C.
        inputs: the values that it reads, in the order of its parameters.
        constants: arrays for flash, by name, in the order of its parameters.
        headers: files of firmware/kernels that it needs.
        scratch_bytes: bytes of the arena that it needs while it runs.
        generated: whether TensorIR made it; kernels do not run in place.
        blocks: register blocks by instruction set, the best first.
    """

    layer: Layer
    text: str
    inputs: tuple[Value, ...]
    constants: tuple[tuple[str, Array], ...]
    headers: frozenset[str]
    scratch_bytes: int = 0
    generated: bool = False
    blocks: tuple[tuple[str, tuple[Blocks, ...]], ...] = ()


def layer_function(layer: Layer) -> LayerFunction:
    """The C function of a layer.

    Raises:
        UnsupportedOperator: generated loops would need too large an array on the stack.
    """
    kernel = find_kernel(layer)
    return generated_function(layer) if kernel is None else _called(kernel)


def _called(kernel: Kernel) -> LayerFunction:
    layer = kernel.layer
    parameters = [_parameter(value.dtype, f"{value.name}_in") for value in layer.inputs]
    parameters += [_parameter(str(array.dtype), name) for name, array in kernel.constants]
    parameters += ["void *restrict scratch"] if kernel.scratch_bytes else []
    parameters += [f"{C_TYPES[layer.output.dtype]} *restrict output"]
    signature = f"static NOINLINE void {layer.symbol}({', '.join(parameters)})"
    body = "".join(f"    {line}\n" for line in kernel.call.strip().splitlines())
    return LayerFunction(
        layer,
        f"{signature} {{\n{body}}}\n",
        layer.inputs,
        kernel.constants,
        frozenset({ARITHMETIC, kernel.header}),
        kernel.scratch_bytes,
        blocks=kernel.blocks,
    )


def _parameter(dtype: str, name: str) -> str:
    return f"const {C_TYPES[dtype]} *restrict {name}"


def generated_function(layer: Layer) -> LayerFunction:
    """The layer's generated loops, whether or not a kernel computes it.

    Raises:
        UnsupportedOperator: they would need too large an array on the stack.
    """
    primitive = build_primitive(layer)
    function = function_to_c(schedule_scalar(primitive.function), layer.symbol)
    if function.stack_array_bytes > LARGEST_STACK_ARRAYS:
        raise UnsupportedOperator(
            f"intermediate sums need {function.stack_array_bytes} bytes of stack, "
            f"and {LARGEST_STACK_ARRAYS} are the limit",
            where=f"layer {layer.name}, tensor {layer.output.onnx_output}",
            remedy="quantize the sums before what follows them, or make the tensor smaller",
        )
    operators = [node.operator for node in layer.expression.walk()]
    headers = {str(getattr(operator, "header", ARITHMETIC)) for operator in operators}
    return LayerFunction(
        layer,
        function.text,
        primitive.inputs,
        primitive.constants,
        frozenset({ARITHMETIC, *headers}),
        generated=True,
    )

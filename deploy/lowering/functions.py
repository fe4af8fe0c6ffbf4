"""A layer's C function: a call of a kernel where one computes the layer, else generated loops."""

from __future__ import annotations

import re
from dataclasses import dataclass

from entrain.deploy.errors import UnsupportedOperator
from entrain.deploy.lowering.codegen import C_TYPES, function_to_c
from entrain.deploy.lowering.graph import Array, Layer, Value
from entrain.deploy.lowering.in_place import overwritable
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
        generated: whether TensorIR made it.
        blocks: register blocks by instruction set, the best first.
        in_place: the C where the output takes the bytes of an input, by the names of those inputs
            whose bytes it may take.
    """

    layer: Layer
    text: str
    inputs: tuple[Value, ...]
    constants: tuple[tuple[str, Array], ...]
    headers: frozenset[str]
    scratch_bytes: int = 0
    generated: bool = False
    blocks: tuple[tuple[str, tuple[Blocks, ...]], ...] = ()
    in_place: tuple[tuple[str, str], ...] = ()

    @property
    def overwrites(self) -> tuple[str, ...]:
        """Names of the inputs whose bytes the output may take."""
        return tuple(name for name, _ in self.in_place)

    def text_where(self, overwritten: str | None) -> str:
        """The C where the output takes the bytes of this input, or of none."""
        return self.text if overwritten is None else dict(self.in_place)[overwritten]


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
    in_place_calls = dict(kernel.in_place_calls)
    in_place = tuple(
        (name, _shared(_defined(signature, in_place_calls.get(name, kernel.call)), name))
        for name in kernel.overwrites
    )
    return LayerFunction(
        layer,
        _defined(signature, kernel.call),
        layer.inputs,
        kernel.constants,
        frozenset({ARITHMETIC, kernel.header}),
        kernel.scratch_bytes,
        blocks=kernel.blocks,
        in_place=in_place,
    )


def _defined(signature: str, statements: str) -> str:
    body = "".join(f"    {line}\n" for line in statements.strip().splitlines())
    return f"{signature} {{\n{body}}}\n"


def _shared(text: str, value: str) -> str:
    """The function where its output takes a value's bytes: neither pointer has them for itself."""
    for pointer in (f"{value}_in", "output"):
        text, found = re.subn(rf"\*restrict {pointer}\b", f"*{pointer}", text)
        if not found:
            raise LookupError(f"no restrict pointer {pointer} in\n{text}")
    return text


def _parameter(dtype: str, name: str) -> str:
    return f"const {C_TYPES[dtype]} *restrict {name}"


def headers_of(layer: Layer) -> frozenset[str]:
    """Files of firmware/kernels that a layer's loops need, those of its operators among them."""
    own = {getattr(node.operator, "header", None) for node in layer.expression.walk()}
    return frozenset({ARITHMETIC, *filter(None, own)})


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
    return LayerFunction(
        layer,
        function.text,
        primitive.inputs,
        primitive.constants,
        headers_of(layer),
        generated=True,
        in_place=tuple((name, _shared(function.text, name)) for name in overwritable(layer)),
    )

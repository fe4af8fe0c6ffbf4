"""An ONNX model as a function of Relax: what its variables are bound to."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from entrain.deploy.errors import ModelError

QUANTIZE, DEQUANTIZE = "relax.quantize", "relax.dequantize"

# TVM has no base class of its errors; its own are RuntimeErrors
_TVM_ERRORS = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError),
    *(RuntimeError, TypeError, ValueError),
)


@dataclass(frozen=True)
class RelaxFunction:
    """Variables and the calls that they are bound to, in the order in which they run.

    Attributes:
        parameters: the variables of the model's inputs.
        bindings: what each other variable is bound to.
        outputs: the variables of the model's outputs, by their ONNX names.
    """

    parameters: tuple[Any, ...]
    bindings: dict[Any, Any]
    outputs: dict[str, Any]

    def behind_copies(self, variable: Any) -> Any:
        """The variable that holds the call."""
        while type(self.bindings.get(variable)).__name__ in ("Var", "DataflowVar"):
            variable = self.bindings[variable]
        return variable

    def quantized(self, variable: Any) -> Any:
        """The variable of integers that a DequantizeLinear reads; any other variable itself."""
        variable = self.behind_copies(variable)
        call: Any = self.bindings.get(variable)
        return self.behind_copies(call.args[0]) if operator_of(call) == DEQUANTIZE else variable


def read_function(model: Any, path: Path) -> RelaxFunction:
    """A model that :func:`entrain.deploy.lowering.onnx_file.read_onnx` has read, in Relax.

    Raises:
        ModelError: TVM cannot import it.
    """
    function = _imported(model, path)
    bindings = {
        binding.var: binding.value for block in function.body.blocks for binding in block.bindings
    }
    returned = function.body.body
    fields = getattr(bindings.get(returned, returned), "fields", [returned])
    outputs = dict(zip((output.name for output in model.graph.output), fields, strict=True))
    return RelaxFunction(tuple(function.params), bindings, outputs)


def _imported(model: Any, path: Path) -> Any:
    from tvm.relax.frontend.onnx import from_onnx

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TVM warns of every name that is no identifier
            return from_onnx(model, keep_params_in_input=False)["main"]
    except _TVM_ERRORS as error:
        text = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelError(
            f"TVM cannot import this model: {text[-1]}",
            where=str(path),
            remedy="check that its shapes are static and that onnxruntime runs it",
        ) from error


def operator_of(call: Any) -> str:
    """The name of what a binding calls; nothing for one that calls nothing.

    TVM imports a Clip as calls of functions ``maximum`` and ``minimum``, numbered when repeated.
    """
    name = str(getattr(getattr(call, "op", None), "name", ""))
    return re.sub(r"\d+$", "", str(call.args[0].name_hint)) if name == "relax.call_tir" else name


def tensors_of(call: Any) -> list[Any]:
    """The arguments that are tensors; those of a Concat come as a tuple."""
    from tvm.relax import TensorType

    arguments = call.args[1].fields if call.op.name == "relax.call_tir" else call.args
    each = [field for argument in arguments for field in getattr(argument, "fields", [argument])]
    return [argument for argument in each if isinstance(argument.ty, TensorType)]

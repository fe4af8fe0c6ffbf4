"""A layer as other compilers make it: the yardsticks beside our kernels."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from entrain.deploy.bench.plain import plain_function
from entrain.deploy.boards import Board
from entrain.deploy.lowering.codegen import C_TYPES, bare_function, function_to_c
from entrain.deploy.lowering.functions import ARITHMETIC, LayerFunction
from entrain.deploy.lowering.graph import Layer
from entrain.deploy.lowering.primitive import Tensors, layer_tensors

# LLVM's name of the instruction set, by the compiler's flag
_TRIPLES = {
    "cortex-m0": "thumbv6m-none-eabi",
    "cortex-m3": "thumbv7m-none-eabi",
    "cortex-m4": "thumbv7em-none-eabihf",
    "cortex-m55": "thumbv8.1m.main-none-eabihf",
}


@dataclass(frozen=True)
class Made:
    """A layer's function, and what must be linked beside model.c: file names to contents."""

    function: LayerFunction
    files: tuple[tuple[str, bytes], ...] = ()


# None where a compiler has no form of the layer
Maker = Callable[[Layer, Board], Made | None]


def _plain(layer: Layer, _board: Board) -> Made | None:
    function = plain_function(layer)
    return None if function is None else Made(function)


def _unscheduled(layer: Layer, _board: Board) -> Made | None:
    """TVM's loops as they come, every intermediate tensor stored, through its C source."""
    tensors = _tensors(layer)
    if tensors is None:
        return None
    raw = f"unscheduled_{layer.name}"
    text = function_to_c(_function(tensors), raw).text
    for tensor in tensors.intermediate:
        text = text.replace(
            f"const {_c_type(tensor)} *restrict {_name(tensor)}", _parameter(tensor)
        )
    text = text.replace("static NOINLINE", "ENTRAIN_INLINE")
    return Made(_wrapped(layer, tensors, text, raw))


def _through_llvm(layer: Layer, board: Board) -> Made | None:
    """The same loops through TVM's LLVM, as an object file."""
    tensors = _tensors(layer)
    if tensors is None:
        return None
    raw = f"{layer.symbol}_object"
    types = ", ".join(
        [*(f"const {_c_type(t)} *" for t in _read(tensors))]
        + [f"{_c_type(t)} *" for t in _written(tensors)]
    )
    declaration = f"void {raw}({types});\n"
    function = _wrapped(layer, tensors, declaration, raw)
    return Made(function, ((f"{layer.name}.o", _object(_function(tensors), raw, board)),))


# by the keys of the bench's rows
MAKERS: dict[str, Maker] = {
    "tvm_unscheduled": _unscheduled,
    "tvm_llvm": _through_llvm,
    "c_loop": _plain,
}


def _tensors(layer: Layer) -> Tensors | None:
    try:
        return layer_tensors(layer)
    except LookupError:  # an operator that only a kernel computes
        return None


def _read(tensors: Tensors) -> list[Any]:
    return [t for _, t in tensors.values] + [t for _, _, t in tensors.constants]


def _written(tensors: Tensors) -> list[Any]:
    return [*tensors.intermediate, tensors.result]


def _function(tensors: Tensors) -> Any:
    from tvm import te

    return te.create_prim_func([*_read(tensors), *_written(tensors)])


def _name(tensor: Any) -> str:
    return str(tensor.op.name)


def _c_type(tensor: Any) -> str:
    return C_TYPES[str(tensor.dtype)]


def _parameter(tensor: Any) -> str:
    return f"{_c_type(tensor)} *restrict {_name(tensor)}"


def _wrapped(layer: Layer, tensors: Tensors, text: str, raw: str) -> LayerFunction:
    """The layer's function, which calls ``raw`` with its intermediate tensors in the scratch."""
    read = [f"const {_c_type(t)} *restrict {_name(t)}" for t in _read(tensors)]
    offset, places = 0, []
    for tensor in tensors.intermediate:
        places.append(f"({_c_type(tensor)} *)&((int8_t *)scratch)[{offset}]")
        size = prod(int(e) for e in tensor.shape) * np.dtype(str(tensor.dtype)).itemsize
        offset += -(-size // 8) * 8
    result = f"{C_TYPES[layer.output.dtype]} *restrict output"
    parameters = [*read, *(["void *restrict scratch"] if offset else []), result]
    arguments = [*map(_name, _read(tensors)), *places, "output"]
    body = f"{{\n    {raw}({', '.join(arguments)});\n}}\n"
    return LayerFunction(
        layer,
        f"{text}\nstatic NOINLINE void {layer.symbol}({', '.join(parameters)}) {body}",
        tuple(value for value, _ in tensors.values),
        tuple((name, array) for name, array, _ in tensors.constants),
        frozenset({ARITHMETIC, *_headers(layer)}),
        offset,
    )


def _headers(layer: Layer) -> set[str]:
    operators = [node.operator for node in layer.expression.walk()]
    return {str(getattr(operator, "header", ARITHMETIC)) for operator in operators}


def _object(function: Any, symbol: str, board: Board) -> bytes:
    import tvm
    from tvm.target import Target
    from tvm.tirx import transform

    triple = _TRIPLES[board.core]
    options: dict[str, Any] = {"kind": "llvm", "mtriple": triple, "mcpu": board.core}
    options["vector-width"] = 128  # TVM would assume it, with a warning
    target = Target({**options, "mfloat-abi": "hard" if triple.endswith("hf") else "soft"})
    bare = bare_function(function, symbol, target)
    module = transform.LowerIntrin()(tvm.IRModule({symbol: bare}))
    built = tvm.get_global_func("target.build.llvm")(module, target)
    with tempfile.TemporaryDirectory(prefix="entrain-llvm-") as folder:
        path = Path(folder) / "layer.o"
        built.write_to_file(str(path), "o")
        rename = ["arm-none-eabi-objcopy", "--redefine-sym", f"{INLINE}={EXTERNAL}", str(path)]
        subprocess.run(rename, check=True)
        return path.read_bytes()


def renamed(layer: Layer, name: str) -> Layer:
    """The same layer under another name, so that both fit into one firmware."""
    return replace(layer, name=name, output=replace(layer.output, name=name))


# What an object file calls is an inline function everywhere else. Under the layer's own name it is
# counted as the layer's.
INLINE, EXTERNAL = "entrain_requantize", "layer_tvm_llvm_requantize"
EXTERNALS = f"""/* Generated by 'entrain bench': functions that LLVM's objects call. */
#include "entrain_arithmetic.h"
int32_t {EXTERNAL}(int64_t total, int32_t shift, int32_t zero_point, int32_t low, int32_t high);
int32_t {EXTERNAL}(int64_t total, int32_t shift, int32_t zero_point, int32_t low, int32_t high) {{
    return {INLINE}(total, shift, zero_point, low, high);
}}

/* LLVM's unwind tables name it; nothing here is ever unwound. */
void __aeabi_unwind_cpp_pr0(void);
void __aeabi_unwind_cpp_pr0(void) {{
}}
"""

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
from entrain.deploy.lowering.functions import LayerFunction, headers_of
from entrain.deploy.lowering.graph import Layer
from entrain.deploy.lowering.primitive import Tensors, layer_tensors


@dataclass(frozen=True)
class Made:
    """A layer's function, and what must be linked beside model.c: file names to contents."""

    function: LayerFunction
    files: tuple[tuple[str, bytes], ...] = ()


# None where a compiler has no form of the layer, or none for the board
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
    if tensors is None or board.llvm_triple is None:
        return None
    raw = f"{layer.symbol}_object"
    types = ", ".join(
        [*(f"const {_c_type(t)} *" for t in _read(tensors))]
        + [f"{_c_type(t)} *" for t in _written(tensors)]
    )
    declaration = f"void {raw}({types});\n"
    function = _wrapped(layer, tensors, declaration, raw)
    return Made(
        function,
        ((f"{layer.name}.o", _object(_function(tensors), raw, board.core, board.llvm_triple)),),
    )


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
        headers_of(layer),
        offset,
    )


def _object(function: Any, symbol: str, core: str, triple: str) -> bytes:
    import tvm
    from tvm.target import Target
    from tvm.tirx import transform

    options: dict[str, Any] = {"kind": "llvm", "mtriple": triple, "mcpu": core}
    options["vector-width"] = 128  # TVM would assume it, with a warning
    target = Target({**options, "mfloat-abi": "hard" if triple.endswith("hf") else "soft"})
    bare = bare_function(function, symbol, target)
    module = transform.LowerIntrin()(tvm.IRModule({symbol: bare}))
    built = tvm.get_global_func("target.build.llvm")(module, target)
    with tempfile.TemporaryDirectory(prefix="entrain-llvm-") as folder:
        path = Path(folder) / "layer.o"
        built.write_to_file(str(path), "o")
        renamings = [f"--redefine-sym={name}={external(name)}" for name, *_ in INLINE]
        subprocess.run(["arm-none-eabi-objcopy", *renamings, str(path)], check=True)
        return path.read_bytes()


def renamed(layer: Layer, name: str) -> Layer:
    """The same layer under another name, so that both fit into one firmware."""
    return replace(layer, name=name, output=replace(layer.output, name=name))


# The inline functions that an object file may call: name, type and parameters.
INLINE: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "entrain_requantize",
        "int32_t",
        ("int64_t total", "int32_t shift", "int32_t zero_point", "int32_t low", "int32_t high"),
    ),
    ("entrain_square", "int64_t", ("int32_t x",)),
    ("entrain_root_factor", "int32_t", ("int64_t s",)),
    (
        "entrain_scaled",
        "int32_t",
        ("int32_t numerator", "int32_t factor", "int32_t fraction", "int32_t limit"),
    ),
)


def external(name: str) -> str:
    """A function's name in an object file: the layer's own, so that it is counted as the layer's.

    Everywhere else it is inline.
    """
    return f"layer_tvm_llvm_{name.removeprefix('entrain_')}"


def _defined(name: str, result: str, parameters: tuple[str, ...]) -> str:
    signature = f"{result} {external(name)}({', '.join(parameters)})"
    arguments = ", ".join(parameter.split()[-1] for parameter in parameters)
    return f"{signature};\n{signature} {{\n    return {name}({arguments});\n}}\n"


EXTERNALS = (
    "/* Generated by 'entrain bench': functions that LLVM's objects call. */\n"
    '#include "entrain_ratios.h"\n'
    + "".join(_defined(*function) for function in INLINE)
    + """
/* LLVM's unwind tables name it; nothing here is ever unwound. */
void __aeabi_unwind_cpp_pr0(void);
void __aeabi_unwind_cpp_pr0(void) {
}
"""
)

"""The emitted C, compiled for this machine and called in this process."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

import numpy as np

import entrain.firmware
from entrain.deploy.c_compiler import call_c_compiler
from entrain.deploy.lowering.artifact import LoweredModel
from entrain.deploy.lowering.graph import Array
from entrain.deploy.lowering.tensors import Given, packed, unpacked

KERNELS = Path(entrain.firmware.__file__).parent / "kernels"
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wconversion")
_TRACE = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)
_TRACE_HOOK = """#include <stdint.h>
static void (*hook)(uint32_t, const void *, uint32_t);
void model_set_trace(void (*function)(uint32_t, const void *, uint32_t));
void model_trace(uint32_t layer, const void *values, uint32_t bytes);
void model_set_trace(void (*function)(uint32_t, const void *, uint32_t)) { hook = function; }
void model_trace(uint32_t layer, const void *values, uint32_t bytes)
{
    if (hook) { hook(layer, values, bytes); }
}
"""


def compiled(sources: Path, library: Path, *, trace: bool) -> Path:
    """Compile model.c and weights.c of a lowered folder into a shared library.

    Raises:
        ToolError: no C compiler, or it refuses the sources.
    """
    files = [str(sources / "model.c"), str(sources / "weights.c")]
    if trace:
        hook = library.with_suffix(".trace.c")
        hook.write_text(_TRACE_HOOK)
        files += ["-DMODEL_TRACE", str(hook)]
    options = [*FLAGS, "-shared", "-fPIC", f"-I{sources}", f"-I{KERNELS}"]
    call_c_compiler(
        [*options, "-o", str(library), *files],
        what="the generated C",
        where=str(sources),
        remedy="lower the model again; if that repeats, it is a fault of the lowering",
    )
    return library


class HostModel:
    """A lowered model running on this machine, layer by layer or as a whole.

    Args:
        model: the record of the lowered network, for shapes and types.
        sources: the folder with model.c, model.h, weights.c and weights.h.
    """

    def __init__(self, model: LoweredModel, sources: Path) -> None:
        self._model = model
        self._sources = sources
        self._folder = tempfile.TemporaryDirectory(prefix="entrain-host-")

    def run(self, quantized: Given) -> Array:
        """The integers of the only output, for the inputs' integers (by name, if several)."""
        return self.outputs(quantized)[self._model.output.name]

    def outputs(self, quantized: Given) -> dict[str, Array]:
        """The integers of every output by name, for the inputs' integers (by name, if several)."""
        return self._call(self._library(trace=False), quantized)

    def trace(self, quantized: Given) -> dict[str, Array]:
        """Every layer's integers by layer name, for the inputs' (by name, if several)."""
        library = self._library(trace=True)
        values: dict[str, Array] = {}

        def record(layer: int, address: int, size: int) -> None:
            written = self._model.layers[layer]
            raw = np.frombuffer(ctypes.string_at(address, size), written.dtype)
            values[written.name] = raw.reshape(written.shape).copy()

        callback = _TRACE(record)
        library.model_set_trace(callback)
        self._call(library, quantized)
        return values

    def _library(self, *, trace: bool) -> ctypes.CDLL:
        """The compiled model, made when first needed."""
        library = Path(self._folder.name) / ("traced.so" if trace else "model.so")
        if not library.is_file():
            compiled(self._sources, library, trace=trace)
        return ctypes.CDLL(str(library))

    def _call(self, library: ctypes.CDLL, quantized: Given) -> dict[str, Array]:
        given = packed(self._model.inputs, quantized)
        output = ctypes.create_string_buffer(sum(each.size for each in self._model.outputs))
        library.model_run(given, output)
        return unpacked(self._model.outputs, output.raw)

"""Layers that are kernels, as C: under sanitizers on this machine, and all in one firmware."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from programs import require_emulator

from entrain.deploy.boards import find_board
from entrain.deploy.build import build_firmware
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.lowering.codegen import C_TYPES
from entrain.deploy.lowering.emit import emit_model
from entrain.deploy.lowering.functions import LayerFunction, layer_function
from entrain.deploy.lowering.graph import Layer, LoweredGraph
from entrain.deploy.lowering.host import KERNELS
from entrain.deploy.lowering.interpreter import run_layer
from entrain.deploy.lowering.program import build_program
from entrain.deploy.lowering.schedule_files import schedule_header
from entrain.deploy.lowering.tensors import packed

SANITIZED = (
    *("-std=c11", "-O0", "-g"),
    *("-Wall", "-Wextra", "-Werror", "-Wconversion"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover"),
)
# every buffer exactly as large as promised, so that nothing outside it goes unnoticed
MAIN = """
static void *filled(size_t bytes, FILE *file) {{
    void *buffer = aligned_alloc(8, (bytes + 7u) / 8u * 8u);
    buffer = realloc(buffer, bytes);
    if (buffer == NULL || (file != NULL && fread(buffer, 1, bytes, file) != bytes)) {{ exit(2); }}
    return buffer;
}}
int main(void) {{
{calls}
    return 0;
}}
"""


def expected(layers: Sequence[Layer], stored: dict[str, Any]) -> list[Any]:
    """What the interpreter makes of stored integers, layer by layer."""
    return [run_layer(layer, stored) for layer in layers]


def check(written: Sequence[Any], layers: Sequence[Layer], stored: dict[str, Any]) -> None:
    """What the layers wrote is what the interpreter computes, to the bit."""
    for layer, ours, right in zip(layers, written, expected(layers, stored), strict=True):
        np.testing.assert_array_equal(ours, right, err_msg=layer.name)


def check_sanitized(
    folder: Path,
    layers: Sequence[Layer],
    stored: dict[str, Any],
    *options: str,
    overwritten: Sequence[str | None] | None = None,
) -> None:
    """The layers' C, under sanitizers on this machine, is the interpreter; see ``sanitized``."""
    check(sanitized(folder, layers, stored, *options, overwritten=overwritten), layers, stored)


def check_on_board(
    folder: Path, board: str, layers: Sequence[Layer], stored: dict[str, Any]
) -> dict[str, int]:
    """On an emulated board the layers are the interpreter; instructions of each, by its symbol.

    All are in one firmware.
    """
    require_emulator()
    inputs = {value.name: value for layer in layers for value in layer.inputs}
    outputs = tuple(layer.output for layer in layers)
    graph = LoweredGraph("kernels", tuple(inputs.values()), outputs, tuple(layers))
    lowered = folder / "lowered"
    lowered.mkdir(exist_ok=True)
    for name, text in emit_model(build_program(graph), "linear").files:
        (lowered / name).write_text(text)
    image = folder / f"firmware-{board}.elf"
    build_firmware(find_board(board), lowered, image)
    given = packed(graph.inputs, {name: stored[name] for name in inputs})
    with connect(QemuAddress(board), image) as client:
        written = client.classify(np.asarray(given).tobytes())
        counts = client.counts().by_function
    check(_split(written, layers), layers, stored)
    return counts


def sanitized(
    folder: Path,
    layers: Sequence[Layer],
    stored: dict[str, Any],
    *options: str,
    overwritten: Sequence[str | None] | None = None,
) -> list[Any]:
    """What the layers' C writes, compiled with sanitizers of addresses and undefined behaviour.

    Args:
        folder: a folder for the program.
        layers: each is called once.
        stored: the integers of the values that they read, by name.
        options: further ones of the compiler.
        overwritten: of each layer the value whose bytes the result takes, or None.
    """
    functions = [layer_function(layer) for layer in layers]
    places = [None] * len(functions) if overwritten is None else overwritten
    headers = sorted(frozenset().union(*(function.headers for function in functions)))
    text = "\n".join(
        [
            "#include <stdio.h>",
            "#include <stdlib.h>",
            *(f'#include "{header}"' for header in headers),
            '#include "schedule.h"',
            *(f.text_where(name) for f, name in zip(functions, places, strict=True)),
            MAIN.format(calls="\n".join(map(_call, functions, places))),
        ]
    )
    (folder / "program.c").write_text(text)
    (folder / "schedule.h").write_text(schedule_header(tuple(functions)))
    command = ["cc", *SANITIZED, *options, f"-I{KERNELS}", "program.c", "-o", "program"]
    subprocess.run(command, check=True, cwd=folder)
    return run_again(folder, layers, stored)


def run_again(folder: Path, layers: Sequence[Layer], stored: dict[str, Any]) -> list[Any]:
    """What the program that ``sanitized`` left in the folder writes for these integers."""
    given = b"".join(_given(layer_function(layer), stored) for layer in layers)
    done = subprocess.run([folder / "program"], input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return _split(done.stdout, layers)


def _call(function: LayerFunction, overwritten: str | None) -> str:
    arguments = []
    for value in function.inputs:
        arguments.append((C_TYPES[value.dtype], value.size, "stdin"))
    for _, array in function.constants:
        arguments.append((C_TYPES[str(array.dtype)], array.nbytes, "stdin"))
    if function.scratch_bytes:
        arguments.append(("void", function.scratch_bytes, "NULL"))
    output = function.layer.output
    if overwritten is None:
        arguments.append((C_TYPES[output.dtype], output.size, "NULL"))
    names = [f"argument_{number}" for number in range(len(arguments))]
    passed = list(names)
    if overwritten is not None:
        place = [value.name for value in function.inputs].index(overwritten)
        passed.append(f"({C_TYPES[output.dtype]} *){names[place]}")
    declared = [
        f"        {ctype} *{name} = filled({size}u, {file});"
        for name, (ctype, size, file) in zip(names, arguments, strict=True)
    ]
    return "\n".join(
        [
            "    {",
            *declared,
            f"        {function.layer.symbol}({', '.join(passed)});",
            f"        (void)fwrite({passed[-1]}, 1, {output.size}u, stdout);",
            *(f"        free({name});" for name in names),
            "    }",
        ]
    )


def _given(function: LayerFunction, stored: dict[str, Any]) -> bytes:
    values = [stored[value.name].tobytes() for value in function.inputs]
    return b"".join([*values, *(array.tobytes() for _, array in function.constants)])


def _split(written: bytes, layers: Sequence[Layer]) -> list[Any]:
    values = [layer.output for layer in layers]
    ends = np.cumsum([value.size for value in values])
    assert len(written) == ends[-1]
    return [
        np.frombuffer(written[end - value.size : end], value.dtype).reshape(value.shape)
        for value, end in zip(values, ends, strict=True)
    ]

"""Many lowered networks in one firmware: the first byte of the input says which one runs.

Each keeps its own C, arena and weights, as if it were alone; only what the linker sees, model_run
and the weights, is called by the network's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from entrain.deploy.boards import find_board
from entrain.deploy.build import build_firmware
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.device.client import Client
from entrain.deploy.errors import EntrainError
from entrain.deploy.lowering.interpreter import interpret
from entrain.deploy.lowering.tensors import packed

CORES = ("mps2-an386", "mps3-an547", "mps2-an385", "mps2-an385-m0")  # M4F, M55, M3, M0
CHOICE_BYTES = 16  # so that a network's own input is aligned as the application aligns it
MODEL_H = """#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>

#define MODEL_NAME "many"
#define MODEL_TASK "linear"
#define MODEL_INPUT_BYTES {input_bytes}u
#define MODEL_OUTPUT_BYTES {output_bytes}u
#define MODEL_OUTPUT_COUNT MODEL_OUTPUT_BYTES
#define MODEL_OUTPUT_LEAST (-128)
#define MODEL_OUTPUT_SCALE 1.0f

void model_run(const int8_t *input, int8_t *output);
void model_trace(uint32_t layer, const void *values, uint32_t bytes);
{declarations}

#endif
"""
MODEL_C = """#include "model.h"

void model_run(const int8_t *input, int8_t *output) {{
    switch (input[0]) {{
{cases}
    default:
        break;
    }}
}}
"""
DECLARATION = "void {name}_run(const int8_t *input, int8_t *output);"
CASE = """    case {number}:
        {name}_run(&input[{offset}], output);
        break;"""


@dataclass(frozen=True)
class Network:
    """A lowered network: its name in C, its file, its graph, and its C."""

    name: str
    path: Path
    graph: Any
    source: Any


@dataclass(frozen=True)
class ManyNetworks:
    """Networks for one firmware, which must be a trace build."""

    networks: tuple[Network, ...]

    def differences(self, folder: Path, board: str, inputs: int, seed: int = 0) -> Iterator[str]:
        """Where an emulated board differs from the interpreter, layer by layer.

        Args:
            folder: for the firmware; one folder does for all boards.
            board: its name.
            inputs: how many random ones of each network.
            seed: of the inputs.
        """
        sources = folder / "lowered"
        if not sources.exists():
            self._write(sources)
        image = folder / f"firmware-{board}.elf"
        firmware = build_firmware(find_board(board), sources, image, trace=True)
        with connect(QemuAddress(board), image) as client:
            for number, network in enumerate(self.networks):
                random = np.random.default_rng([seed, number])
                for _ in range(inputs):
                    yield from self._compared(client, number, _random_inputs(network, random))
            used = client.stack().used
        if used > firmware.stack_bytes:
            yield f"{board}: {used} bytes of stack, and the bound is {firmware.stack_bytes}"

    def _compared(self, client: Client, number: int, given: dict[str, Any]) -> Iterator[str]:
        network = self.networks[number]
        expected = interpret(network.graph, given)
        block = bytes([number]).ljust(CHOICE_BYTES, b"\0") + packed(network.graph.inputs, given)
        try:
            traced = client.trace(block.ljust(self._largest("inputs") + CHOICE_BYTES, b"\0"))
            written = client.raw()
        except EntrainError as error:
            error.add_note(f"while it ran {network.path}")
            raise
        found = {
            layer.name: traced.get(index, b"") for index, layer in enumerate(network.graph.layers)
        }
        end = 0
        for output in network.graph.outputs:
            found[f"{output.name}, the output"] = written[end : end + output.size]
            expected[f"{output.name}, the output"] = expected[output.name]
            end += output.size
        for name, values in found.items():
            if values != expected[name].tobytes():
                yield f"{client.name()}: {_difference(values, expected[name])} of {name}"
                yield f"  in {network.path}"

    def _largest(self, kind: str) -> int:
        """Bytes of the largest inputs, or outputs."""
        return max(
            sum(value.size for value in getattr(network.graph, kind)) for network in self.networks
        )

    def _write(self, folder: Path) -> None:
        """The sources, as ``build_firmware`` takes them."""
        folder.mkdir()
        names = [network.name for network in self.networks]
        cases = (
            CASE.format(number=number, name=name, offset=CHOICE_BYTES)
            for number, name in enumerate(names)
        )
        header = MODEL_H.format(
            input_bytes=CHOICE_BYTES + self._largest("inputs"),
            output_bytes=self._largest("outputs"),
            declarations="\n".join(DECLARATION.format(name=name) for name in names),
        )
        (folder / "model.h").write_text(header)
        (folder / "model.c").write_text(MODEL_C.format(cases="\n".join(cases)))
        for network in self.networks:
            _write_network(folder, network)


def _write_network(folder: Path, network: Network) -> None:
    inner = folder / network.name
    inner.mkdir()
    for file, text in network.source.files:
        (inner / file).write_text(text)
    public = ["model_run", *re.findall(r"(\w+)\[\d+\];", network.source["weights.h"])]
    renamed = "\n".join(
        f"#define {name} {network.name}_{name.removeprefix('model_')}" for name in public
    )
    for file in ("model.c", "weights.c"):
        text = f'{renamed}\n#include "{network.name}/{file}"\n'
        (folder / f"{network.name}_{file}").write_text(text)


def _random_inputs(network: Network, random: np.random.Generator) -> dict[str, Any]:
    limits = {value.name: np.iinfo(value.dtype) for value in network.graph.inputs}
    return {
        value.name: random.integers(
            limits[value.name].min,
            limits[value.name].max,
            value.shape,
            value.dtype,
            endpoint=True,
        )
        for value in network.graph.inputs
    }


def _difference(written: bytes, expected: Any) -> str:
    if len(written) != expected.nbytes:
        return f"{len(written)} bytes instead of {expected.nbytes}"
    differing = np.frombuffer(written, expected.dtype) != expected.ravel()
    first = np.argmax(differing)
    return f"{differing.sum()} of {differing.size} elements, the first at {first},"

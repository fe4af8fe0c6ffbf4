"""A synthesised netlist as Verilog again, one wire a net, with a count of how often they toggle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from entrain.deploy.files import write_whole
from entrain.fpga.simulators.verilator import Channel, Module

TOGGLES = "toggles"
COUNT_BITS = 64
_CONSTANTS = {"0": "1'b0", "1": "1'b1", "x": "1'b0", "z": "1'b0"}


def counted_netlist(module: Module, netlist: Path, models: Path, path: Path) -> Module:
    """The netlist of ``module`` with one stream more: after each answer, the toggles so far.

    A toggle is a net that has another value at a rising edge of the clock than at the one before:
    what it does between the edges (glitches) is not seen, nor is what happens within a cell.

    Args:
        module: as it was before synthesis, for its streams.
        netlist: yosys's JSON of it.
        models: Verilog of the family's cells, for simulation.
        path: the file to write.
    """
    design = json.loads(netlist.read_text(encoding="utf-8"))["modules"][module.top]
    write_whole(path, _verilog(module, design))
    counts = Channel(TOGGLES, COUNT_BITS)
    return Module(module.top, (path, models), module.inputs, (*module.outputs, counts))


def _verilog(module: Module, design: dict[str, Any]) -> str:
    nets = sorted({bit for net in design["netnames"].values() for bit in net["bits"]} - {*"01xz"})
    answer = module.outputs[-1].name
    return "\n".join(
        [
            f"module {module.top}(",
            *(_port(name, port) for name, port in design["ports"].items()),
            f"  output wire [{COUNT_BITS - 1}:0] {TOGGLES}_data,",
            f"  output wire {TOGGLES}_valid,",
            f"  input wire {TOGGLES}_ready",
            ");",
            *(f"  wire n{net};" for net in nets),
            *(_assignment(name, port) for name, port in design["ports"].items()),
            *(
                _cell(index, cell)
                for index, cell in enumerate(design["cells"].values())
                if _is_real(cell)
            ),
            f"  wire [{len(nets) - 1}:0] nets = {{{', '.join(f'n{net}' for net in nets)}}};",
            f"  reg [{len(nets) - 1}:0] previous = 0;",
            f"  reg [{COUNT_BITS - 1}:0] count = 0;",
            "  always @(posedge clk) begin",
            "    previous <= nets;",
            f"    count <= rst ? 0 : count + {COUNT_BITS}'($countones(nets ^ previous));",
            "  end",
            f"  assign {TOGGLES}_data = count;",
            f"  assign {TOGGLES}_valid = {answer}_valid && {answer}_ready;",
            "endmodule",
            "",
        ]
    )


def _port(name: str, port: dict[str, Any]) -> str:
    return f"  {port['direction']} wire [{len(port['bits']) - 1}:0] {name},"


def _assignment(name: str, port: dict[str, Any]) -> str:
    bits = _bits(port["bits"])
    return (
        f"  assign {bits} = {name};"
        if port["direction"] == "input"
        else f"  assign {name} = {bits};"
    )


def _is_real(cell: dict[str, Any]) -> bool:
    """What is not a mere note of yosys's."""
    return not str(cell["type"]).startswith("$")


def _cell(index: int, cell: dict[str, Any]) -> str:
    parameters = ", ".join(
        f".{name}({_parameter(value)})" for name, value in cell["parameters"].items()
    )
    directions = cell["port_directions"]
    connections = ", ".join(
        f".{name}({_connection(directions[name], bits)})"
        for name, bits in cell["connections"].items()
    )
    return f"  {cell['type']} #({parameters}) cell_{index} ({connections});"


def _parameter(value: str | int) -> str:
    is_bits = isinstance(value, str) and value and set(value) <= {*"01xz"}
    return f"{len(str(value))}'b{value}" if is_bits else json.dumps(value)


def _connection(direction: str, bits: list[int | str]) -> str:
    """An output that goes nowhere stays open."""
    if direction == "output" and all(isinstance(bit, str) for bit in bits):
        return ""
    return _bits(bits)


def _bits(bits: list[int | str]) -> str:
    names = [_CONSTANTS[bit] if isinstance(bit, str) else f"n{bit}" for bit in reversed(bits)]
    return f"{{{', '.join(names)}}}"

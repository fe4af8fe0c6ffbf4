"""A block behind four pins, to be placed and routed by itself: its streams on two shift registers.

A block has far more ports than an FPGA has pins. Here all that goes in hangs on one shift register
and all that comes out on another, so each path of the block begins and ends at a register, as it
would inside a design. It is no way to use a block: that is the bridge.
"""

from __future__ import annotations

from pathlib import Path

from entrain.deploy.files import write_whole
from entrain.fpga.back_end.synthesis import Design
from entrain.fpga.simulators.verilator import Channel, Module

TOP = "entrain_pins"


def pinned(module: Module, folder: Path) -> Design:
    """The block with the ports ``clk``, ``uart_rx`` and ``uart_tx`` alone.

    Args:
        module: the block.
        folder: for the file that is written.

    Raises:
        UsageError: the folder cannot be written.
    """
    path = folder / f"{TOP}_{module.top}.v"
    write_whole(path, _verilog(module))
    return Design(TOP, (path, *module.sources))


def _verilog(module: Module) -> str:
    widest = max(channel.bits for channel in module.inputs)
    controls = len(module.inputs) + len(module.outputs) + 2  # valid, ready, reset, load
    outputs = [_end(c, end) for c in module.outputs for end in ("data", "valid")]
    answers = [*outputs, *(_end(c, "ready") for c in module.inputs)]
    bits = sum(c.bits + 1 for c in module.outputs) + len(module.inputs)
    places = iter(range(widest + 2, widest + controls))
    given = [
        *((_end(c, "data"), f"in[{c.bits - 1}:0]") for c in module.inputs),
        *((_end(c, "valid"), f"in[{next(places)}]") for c in module.inputs),
        *((_end(c, "ready"), f"in[{next(places)}]") for c in module.outputs),
        *((name, name) for name in answers),
    ]
    wires = [
        *(f"  wire [{c.bits - 1}:0] {_end(c, 'data')};" for c in module.outputs),
        *(f"  wire {_end(c, 'valid')};" for c in module.outputs),
        *(f"  wire {_end(c, 'ready')};" for c in module.inputs),
    ]
    ports = ", ".join(f".{port}({wire})" for port, wire in given)
    return "\n".join(
        [
            f"module {TOP}(input wire clk, input wire uart_rx, output wire uart_tx);",
            f"  reg [{widest + controls - 1}:0] in;",
            f"  reg [{bits - 1}:0] out;",
            *wires,
            "  always @(posedge clk) begin",
            f"    in <= {{in[{widest + controls - 2}:0], uart_rx}};",
            f"    out <= in[{widest + 1}] ? {{{', '.join(answers)}}} : out >> 1;",
            "  end",
            "  assign uart_tx = out[0];",
            f"  {module.top} block(.clk(clk), .rst(in[{widest}]), {ports});",
            "endmodule",
            "",
        ]
    )


def _end(channel: Channel, end: str) -> str:
    return f"{channel.name}_{end}"

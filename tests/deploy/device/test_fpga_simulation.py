"""The client over a pseudo-terminal to the netlist of a block, beside the block's specification."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from entrain.deploy.device import connect
from entrain.deploy.device.address import FpgaSimAddress, parse_address
from entrain.deploy.device.fpga_simulation import SimulatedFpga
from entrain.deploy.errors import DeviceLost, DeviceRefused, ToolError, UsageError
from entrain.fpga.bridge.design import bridged
from entrain.fpga.bridge.shape import TASK, BlockShape, announced
from entrain.fpga.generation.attention import hardware_block
from entrain.fpga.generation.verilog import generate
from entrain.fpga.simulators.serial import SIMULATED, compile_board
from entrain.fpga.verification.instances import oscillator_block, random_anchors

SHAPE = BlockShape(tokens=8, queries=8, d_head=8, d_value=6, d_osc=2)
SEQUENCES = 25  # of eight queries each
ADDRESS = FpgaSimAddress()


@pytest.fixture(scope="module")
def block():
    anchors = random_anchors(np.random.default_rng(0), SHAPE.tokens, SHAPE.d_osc)
    return oscillator_block(
        anchors,
        coupling="relu",
        d_head=SHAPE.d_head,
        score_scale=0.01,
        epsilon=0.01,
        value_scale=0.05,
        context_scale=0.03,
        zero_point=3,
    )


@pytest.fixture(scope="module")
def board(block, tmp_path_factory):
    """The program, and what it announces."""
    folder = tmp_path_factory.mktemp("board")
    sizes = {"tokens": SHAPE.tokens, "queries": SHAPE.queries}
    widths = {"d_head": SHAPE.d_head, "d_value": SHAPE.d_value}
    module = generate(hardware_block(block, **sizes, **widths, lanes=4), folder)
    design = bridged(module, SHAPE, SIMULATED, folder)
    return compile_board(design, SIMULATED, folder), announced(module, SHAPE)


@pytest.fixture
def program(board) -> Path:
    return board[0]


@pytest.fixture
def client(program):
    with connect(ADDRESS, program) as client:
        yield client


def sequence(block, random):
    """An input, and the contexts that are its output."""
    keys = random.integers(-128, 128, (SHAPE.tokens, SHAPE.d_head))
    values = random.integers(-128, 128, (SHAPE.tokens, SHAPE.d_value))
    queries = random.integers(-128, 128, (SHAPE.queries, SHAPE.d_head))
    parts = (block.anchors, keys, values, queries)
    given = b"".join(part.astype(np.int8).tobytes() for part in parts)
    return given, block.contexts(queries, keys, values).astype(np.int8).tobytes()


def test_it_says_which_block_it_is(client, board):
    assert client.name() == "fpga-sim"
    assert client.profile().task == TASK
    assert client.profile().firmware == board[1]


def test_200_queries_to_the_bit(client, block):
    random = np.random.default_rng(1)
    for _ in range(SEQUENCES):
        given, expected = sequence(block, random)
        assert client.classify(given) == expected


def test_every_way_to_load_and_to_read(client, block):
    given, expected = sequence(block, np.random.default_rng(2))
    client.load_hex(given)
    assert client.buffer() == given
    client.infer()
    assert client.raw() == expected
    client.load(given)
    with pytest.raises(DeviceRefused, match="nothing inferred yet"):
        client.raw()
    with pytest.raises(DeviceRefused, match=f"the model takes {SHAPE.input_bytes} bytes"):
        client.load(given[:-1])
    with pytest.raises(DeviceRefused, match="does not watch its stack"):
        client.stack()


def test_it_counts_the_cycles_of_its_clock(client, block):
    given, _ = sequence(block, np.random.default_rng(3))
    client.load(given)
    one, five = client.infer(1), client.infer(5)
    assert one.cycles > SHAPE.input_bytes  # a byte a cycle at best
    assert five.cycles == pytest.approx(5 * one.cycles, rel=0.05)
    assert five.laps_us == (0, five.cycles // SIMULATED.clock_mhz)


def test_it_sleeps_while_nothing_is_asked(program):
    line = SimulatedFpga(ADDRESS, program)
    try:
        while not line.read(20.0).endswith(b"m-ready\r\n"):
            pass
        status = Path(f"/proc/{line.process_id}/status")
        while "State:\tS" not in status.read_text():  # soon, or the test hangs
            pass
    finally:
        line.close()


def test_it_ends_with_the_line(program):
    line = SimulatedFpga(ADDRESS, program)
    process = line.process_id
    line.close()
    line.close()
    assert not Path(f"/proc/{process}").exists()


def test_it_ends_with_the_process_that_started_it_however_that_ends(program):
    starting = (
        "import sys, time; from pathlib import Path\n"
        "from entrain.deploy.device.address import FpgaSimAddress\n"
        "from entrain.deploy.device.fpga_simulation import SimulatedFpga\n"
        "line = SimulatedFpga(FpgaSimAddress(), Path(sys.argv[1]))\n"
        "print(line.process_id, flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", starting, str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        process = int(started.stdout.readline())
        watched = os.pidfd_open(process)
        started.kill()
        assert select.select([watched], [], [], 20.0)[0]
        os.close(watched)


def test_its_end_is_told_with_its_cause(program, block):
    given, _ = sequence(block, np.random.default_rng(4))
    with connect(ADDRESS, program) as client:
        os.kill(client._transport.process_id, signal.SIGKILL)
        with pytest.raises(DeviceLost, match="the simulation ended") as error:
            client.classify(given)
    assert error.value.where == "fpga-sim"


def test_a_program_that_is_none(tmp_path):
    path = tmp_path / "board"
    path.write_text("nothing")
    with pytest.raises(ToolError, match="cannot be run") as error:
        connect(ADDRESS, path)
    assert error.value.where == str(path)


def test_a_program_must_be_named():
    with pytest.raises(UsageError, match="one network's attention"):
        connect(ADDRESS)


def test_its_address():
    assert parse_address("fpga-sim") == ADDRESS
    assert str(ADDRESS) == "fpga-sim"
    with pytest.raises(UsageError, match="names no device"):
        parse_address("fpga-sim:1")

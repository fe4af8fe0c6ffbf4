"""The bridge in Verilator, bytes in and bytes out, beside the firmware's application itself.

The block behind the bridge adds up what it is sent, so that every byte of a sequence matters.
"""

from __future__ import annotations

import re
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

from entrain.deploy.boards import firmware_folder
from entrain.deploy.device.address import FpgaSimAddress
from entrain.deploy.device.fpga_simulation import SimulatedFpga
from entrain.deploy.device.protocol import parse_timing
from entrain.deploy.errors import UsageError
from entrain.fpga.back_end.synthesis import synthesise
from entrain.fpga.boards import find_fpga_board
from entrain.fpga.bridge.design import bridged, line_of
from entrain.fpga.bridge.shape import BlockShape
from entrain.fpga.simulators.serial import SIMULATED, compile_board
from entrain.fpga.simulators.verilator import Channel, Module

LINEAR = Path(__file__).parents[1] / "firmware" / "models" / "linear"
SHAPE = BlockShape(tokens=2, queries=3, d_head=4, d_value=4, d_osc=2)
CLOCK_MHZ = SIMULATED.clock_mhz
SUMS = """
module sums (
    input wire clk, input wire rst,
    input wire [7:0] anchors_data, input wire anchors_valid, output wire anchors_ready,
    input wire [31:0] keys_data, input wire keys_valid, output wire keys_ready,
    input wire [7:0] values_data, input wire values_valid, output wire values_ready,
    input wire [31:0] queries_data, input wire queries_valid, output wire queries_ready,
    output wire [7:0] contexts_data, output wire contexts_valid, input wire contexts_ready
);
    // context v of query i: 3 q_iv + 5 (anchors) + 7 (keys) + 11 (values), bytes summed by place
    reg [7:0] total, anchors, keys, values, place, queries;
    assign anchors_ready = anchors < 4 && anchors <= 2 * keys + 1;
    assign keys_ready = keys < 2 && anchors >= 2 * keys + 2;
    assign values_ready = values < 8 && keys > values / 4;  // only with its token
    wire loaded = anchors == 4 && keys == 2 && values == 8;
    wire [7:0] q = queries_data >> (8 * place);
    assign contexts_valid = loaded && queries_valid;
    assign contexts_data = 8'd3 * q + total;
    assign queries_ready = contexts_valid && contexts_ready && place == 3;
    always @(posedge clk) begin
        if (anchors_valid && anchors_ready) begin
            anchors <= anchors + 1;
            total <= total + (8'd5 + anchors) * anchors_data;
        end
        if (keys_valid && keys_ready) begin
            keys <= keys + 1;
            total <= total + 8'd7 * (keys_data[7:0] + 3 * keys_data[15:8] + 9 * keys_data[23:16]
                                     + 27 * keys_data[31:24]) * (keys + 1);
        end
        if (values_valid && values_ready) begin
            values <= values + 1;
            total <= total + (8'd11 + values) * values_data;
        end
        if (contexts_valid && contexts_ready) place <= place == 3 ? 0 : place + 1;
        if (queries_valid && queries_ready) queries <= queries + 1;
        if (rst || (queries_valid && queries_ready && queries == 2)) begin
            {total, anchors, keys, values, queries, place} <= 0;
        end
    end
endmodule
"""


def sums(given: bytes) -> bytes:
    """What the block answers, written a second time."""
    b = np.frombuffer(given, np.uint8).astype(int)
    total = sum((5 + i) * b[i] for i in range(4))
    total += sum(
        7 * (token + 1) * 3**j * b[4 + 4 * token + j] for token in range(2) for j in range(4)
    )
    total += sum((11 + i) * b[12 + i] for i in range(8))
    return bytes(int(3 * q + total) % 256 for q in b[20:32])


def module(folder: Path) -> Module:
    source = folder / "sums.v"
    source.write_text(SUMS)
    streams = ("anchors", 8), ("keys", 32), ("values", 8), ("queries", 32)
    inputs = tuple(Channel(name, bits) for name, bits in streams)
    return Module("sums", (source,), inputs, (Channel("contexts", 8),))


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bridge")
    design = bridged(module(folder), SHAPE, SIMULATED, folder)
    return compile_board(design, SIMULATED, folder, silence_ms=50)


@pytest.fixture(scope="module")
def firmware(tmp_path_factory) -> Path:
    """The application of a model with as many inputs, for this machine."""
    tree = tmp_path_factory.mktemp("host")
    configure = ["cmake", "--preset", "host", "-B", tree, f"-DMODEL_DIR={LINEAR}"]
    subprocess.run(configure, cwd=firmware_folder(), check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tree], check=True, capture_output=True)
    return tree / "firmware"


def answered(program: Path, sent: bytes, answers: int) -> list[str]:
    """The lines of so many answers to ``sent``, after those of its start."""
    line = SimulatedFpga(FpgaSimAddress(), program)
    try:
        line.write(sent)
        received = b""
        while received.count(b"m-ready\r\n") < answers + 1:
            data = line.read(20.0)
            assert data, received
            received += data
        assert line.read(0.05) == b""
    finally:
        line.close()
    assert received.endswith(b"m-ready\r\n")
    lines = received.decode("ascii")[:-2].split("\r\n")
    assert lines[:3] == ["m-timestamp-mode-performance", "m-init-done", "m-ready"]
    return lines[3:]


def until(line: SimulatedFpga, end: bytes) -> bytes:
    """What arrives until it ends with this."""
    received = b""
    while not received.endswith(end):
        data = line.read(20.0)
        assert data, received
        received += data
    return received


def block(command: bytes, payload: bytes, crc: int | None = None) -> bytes:
    check = zlib.crc32(payload) if crc is None else crc
    return b"%s %d%%" % (command, len(payload)) + payload + check.to_bytes(4, "little")


VALUES = bytes(range(200, 232))
OWN = re.compile(r"(m-(lap-us|cycles)-|m-(results|raw)-\[|m-(name-dut|profile|model)-\[)(.*)")

CONVERSATIONS = {
    "nothing at all": b"%  %\r\n\t%",
    "names": b"name%profile%NAME%nam%namea%names and more%",
    "spaces": b"  \r\nname \t %\r\nprofile\n%",
    "words too many": b"name x%profile x y%results 1%raw 1%stack 1%help 1%",
    "words too few or too many": b"db%load%classify%db a b c%db load 1 2%load 1 2%infer 1 2 3%",
    "the longest command": b"name".ljust(80) + b"%" + b"name".ljust(81) + b"%name%",
    "a word that is longer than any": b"classifyclassifyclassify%results5%" + b"x" * 80 + b"%",
    "unprintable": b"na\x00me%name\x7f%\xff%  \x01%name%" + b"\x02" + b"x" * 90 + b"%",
    "nothing loaded": b"infer%results%raw%db 00%stack%",
    "lengths of hexadecimal loads": b"db load%db load 31%db load x%db load 032%db load 4294967328%"
    b"db load 00000000000032%db load 9999999999999999999999%db loads%db load 3 2%",
    "hexadecimal digits": b"db load 32%db 0%db 0g%db -1%db abc%db print x%db "
    + VALUES[:20].hex().upper().encode()
    + b"%db print%db "
    + VALUES[:13].hex().encode()
    + b"%db "
    + VALUES[20:].hex().encode()
    + b"%db print%db 00%infer 1 0%",
    "one digit more": b"db load 32%db " + VALUES[:31].hex().encode() + b"%db 0102%db 5g%db 07%raw%",
    "bytes that end with a bad command": b"db load 32%db " + VALUES[:9].hex().encode() + b" %db aa "
    b"bb%db " + b"zz" + b"%db " + VALUES[9:].hex().encode() + b"%db print%",
    "a block": block(b"load", VALUES) + b"db print%infer 3 2%raw%" + block(b"classify", VALUES),
    "a block ends a hexadecimal load": b"db load 32%" + block(b"load", VALUES) + b"db 00%db print%",
    "lengths of blocks": b"load x%load -1%load 16777217%load 99999999999%load 1e3%classify%raw%",
    "blocks of wrong lengths": block(b"load", b"") + block(b"load", b"abc") + block(b"load", VALUES)
    + block(b"classify", VALUES + b"%name%") + b"infer%",
    "a damaged block": block(b"load", VALUES) + block(b"load", VALUES, crc=1) + b"infer%raw%"
    + block(b"classify", VALUES, crc=0) + b"raw%",
    "a load forgets the last output": block(b"classify", VALUES) + b"raw%db load 32%raw%results%",
    "inferences": block(b"load", VALUES)
    + b"infer%infer 2%infer 1 0%infer 007 010%infer 0%infer 1000001%infer 1 1000001%infer 1 x%"
    b"infer x%infer -1%infer 99999999999999999999 1%infer 1 100000000%raw%",
}  # fmt: skip


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_it_answers_word_for_word_as_the_firmware_does(name, program, firmware):
    sent = CONVERSATIONS[name]
    expected = subprocess.run([firmware], input=sent, capture_output=True, check=True, timeout=60)
    lines = expected.stdout.decode("ascii")[:-2].split("\r\n")[3:]
    own = answered(program, sent, lines.count("m-ready"))
    assert [_common(line) for line in own if not line.startswith("m-cycles-")] == [
        _common(line) for line in lines
    ]


def _common(line: str) -> str:
    """A line without what depends on the model."""
    return OWN.sub(r"\1", line)


def test_it_says_what_it_is(program):
    lines = answered(program, b"name%profile%", 2)
    assert lines[0] == "m-name-dut-[fpga-sim]"
    assert re.fullmatch(
        r"m-profile-\[entrain 0\.1\.0 sums tokens=2 queries=3 d_head=4 d_value=4 d_osc=2 "
        r"identity=[0-9a-f]{8}\]",
        lines[2],
    )
    assert lines[3:] == ["m-model-[attention]", "m-ready"]


def test_help_is_the_firmwares_without_what_a_block_does_not_have(program, firmware):
    expected = subprocess.run([firmware], input=b"help%", capture_output=True, check=True)
    lines = expected.stdout.decode("ascii")[:-2].split("\r\n")[3:]
    assert answered(program, b"help%", 1) == [line for line in lines if "timestamp" not in line]


def test_contexts_of_random_bytes(program):
    random = np.random.default_rng(0)
    given = [random.bytes(32) for _ in range(25)]
    lines = answered(program, b"".join(block(b"classify", one) for one in given), 25)
    assert lines[::2] == [f"m-raw-[{sums(one).hex()}]" for one in given]


def test_results_and_raw_are_the_contexts(program):
    lines = answered(program, block(b"load", VALUES) + b"infer 1 0%results%raw%", 4)
    expected = sums(VALUES).hex()
    assert lines[2:].count(f"m-results-[{expected}]") == 2
    assert f"m-raw-[{expected}]" in lines


def test_only_timed_inferences_are_counted(program):
    load = block(b"load", VALUES)
    one, three, again = (
        parse_timing(answered(program, sent, 2), 1)
        for sent in (load + b"infer 1 0%", load + b"infer 3 9%", load + b"infer 12000 1%")
    )
    cycles = one.cycles
    assert 32 <= cycles < 200  # a byte a cycle, and the block itself
    assert three.cycles == 3 * cycles
    assert again.cycles == 12000 * cycles
    assert again.laps_us == (0, 12000 * cycles // CLOCK_MHZ)


def test_a_block_that_stops_short_is_given_up(program):
    line = SimulatedFpga(FpgaSimAddress(), program)
    try:
        line.write(b"load 32%abc")
        until(line, b"e-[the block stopped short]\r\nm-ready\r\n")
        line.write(block(b"classify", VALUES))
        until(line, b"m-raw-[%s]\r\nm-ready\r\n" % sums(VALUES).hex().encode())
    finally:
        line.close()


def test_bytes_that_come_too_fast_are_said_to_be_lost(program):
    line = SimulatedFpga(FpgaSimAddress(), program)
    try:
        line.write(b"help%" * 400 + b"\r\n")
        received = b""
        while data := line.read(1.0):
            received += data
        line.write(b"%name%")
        until(line, b"m-name-dut-[fpga-sim]\r\nm-ready\r\n")
    finally:
        line.close()
    assert b"e-[received bytes were lost]\r\nm-ready\r\n" in received


def test_shapes_that_are_not_the_blocks(tmp_path):
    with pytest.raises(UsageError, match="streams take"):
        bridged(module(tmp_path), BlockShape(2, 3, 4, 4, 0), SIMULATED, tmp_path)
    with pytest.raises(UsageError, match="streams take"):
        bridged(module(tmp_path), BlockShape(2, 3, 6, 4, 2), SIMULATED, tmp_path)
    with pytest.raises(UsageError, match="bytes of an input"):
        bridged(module(tmp_path), BlockShape(200, 200, 128, 128, 2), SIMULATED, tmp_path)
    with pytest.raises(UsageError, match="table"):
        bridged(module(tmp_path), SHAPE, SIMULATED, tmp_path, table=(1, 2))


@pytest.mark.parametrize(("clock", "clocks"), [(12, 104), (25, 217), (27, 234)])
def test_the_lines_of_boards(clock, clocks):
    line = line_of("board", clock)
    assert (line.clocks_per_bit, line.clock_mhz) == (clocks, clock)


@pytest.mark.parametrize(("clock", "baud"), [(12.5, 115_200), (12, 5_000_000), (1, 230_400)])
def test_lines_that_a_clock_does_not_make(clock, baud):
    with pytest.raises(UsageError):
        line_of("board", clock, baud)


def test_it_leaves_most_of_a_small_fpga_to_the_block(tmp_path):
    design = bridged(module(tmp_path), SHAPE, line_of("icebreaker", 12), tmp_path)
    cells = synthesise(design, find_fpga_board("icebreaker"), tmp_path).cells
    assert cells["SB_LUT4"] < 1400  # the block included
    assert cells["SB_RAM40_4K"] <= 5
    assert cells["SB_SPRAM256KA"] == 2

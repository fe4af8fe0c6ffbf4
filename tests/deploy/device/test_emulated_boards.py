"""Real firmware on the emulator: the grammar, exact counts, faults, and the emulator's death."""

from __future__ import annotations

import os
import random
import re
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from entrain.deploy import flash as flashing
from entrain.deploy.boards import boards, find_board
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.device.client import Client
from entrain.deploy.device.qemu import EmulatedBoard
from entrain.deploy.errors import (
    DeviceFault,
    DeviceLost,
    DeviceMissing,
    DeviceRefused,
    ModelError,
    ProtocolError,
    ToolError,
    UsageError,
)

BOARDS = [board.name for board in boards().values() if board.emulator]
# Of a Cortex-M0 every fault is a HardFault, and no register tells more.
FAULTS = {
    name: {1: "HardFault pc=0x0[0-9a-f]+ lr=0x0[0-9a-f]+$", 2: "HardFault pc=0x0"}
    if name == "mps2-an385-m0"
    else {1: r"BusFault pc=0x0\S+ .*bfar=0xf0000000", 2: "UsageFault pc=0x0"}
    for name in BOARDS
}
INPUT_BYTES = 32


@pytest.fixture(scope="module", params=BOARDS)
def linear(request, images):
    with connect(QemuAddress(request.param), images(request.param, "linear")) as client:
        yield client


@pytest.fixture(params=BOARDS)
def faulty(request, images):
    with connect(QemuAddress(request.param), images(request.param, "faulty")) as client:
        yield client


def test_it_says_what_it_is(linear):
    assert linear.name() in BOARDS
    profile = linear.profile()
    assert profile.task == "linear"
    assert profile.firmware.endswith(" linear-32-4")
    assert any("classify" in line for line in linear.help())


def test_what_was_loaded_lies_on_the_device(linear):
    values = random.Random(1).randbytes(INPUT_BYTES)
    linear.load(values)
    assert linear.buffer() == values
    linear.load_hex(values[::-1])
    assert linear.buffer() == values[::-1]


def test_every_way_to_infer_gives_the_same_outputs(linear):
    values = random.Random(2).randbytes(INPUT_BYTES)
    outputs = linear.classify(values)
    assert len(outputs) == 4
    linear.load(values)
    timing = linear.infer(3, 2)
    assert linear.raw() == outputs
    assert timing.laps_us[0] <= timing.laps_us[1]
    scores = linear.results()
    best = max(range(4), key=lambda i: (outputs[i] + 128) % 256)
    assert scores[best] == max(scores)
    assert sum(scores) == pytest.approx(1.0, abs=4e-6)


def test_the_clock_runs_past_the_wrap_of_its_counter(linear):
    earlier = linear.timestamp()
    while (later := linear.timestamp()) < earlier + 800_000:  # 24 bits wrap within 0.7 seconds
        assert later >= earlier


def test_a_refusal_leaves_the_device_ready(linear):
    with pytest.raises(DeviceRefused, match="takes 32 bytes") as refusal:
        linear.load(bytes(5000))  # more than the receive buffer holds
    assert refusal.value.where == f"qemu:{linear.name()}"
    assert len(linear.classify(bytes(INPUT_BYTES))) == 4


def test_a_block_damaged_on_its_way_is_refused(linear):
    transport = linear._transport
    transport.write(b"load 4%abcd\0\0\0\0")
    with pytest.raises(DeviceRefused):
        linear._ask(b"")
    transport.write(b"classify 32%" + bytes(36))
    with pytest.raises(DeviceRefused, match="CRC-32"):
        linear._ask(b"")


def test_a_long_block_arrives_whole(linear):
    # The checksum covers only what arrived; the length is wrong, so the device says so - after
    # having taken all 20,000 bytes and no command out of them.
    with pytest.raises(DeviceRefused, match="takes 32 bytes"):
        linear.load(b"name%" * 4_000)
    assert linear.name() in BOARDS


@pytest.mark.parametrize("board", BOARDS)
def test_instructions_are_counted_exactly(images, board):
    def counts():
        with connect(QemuAddress(board), images(board, "counted")) as client:
            for first in (0, 200):
                client.classify(bytes([first, 1, 2, 3]))
                yield client.counts()

    without, with_loop = counts()
    # As counted by hand in tests/firmware/models/counted/model.c.
    assert without.by_function == {
        "model_run": 6,
        "layer_loop": 1 + 2 * 100_000 + 1,
        "layer_data_dependent": 4,
    }
    assert with_loop.by_function["layer_data_dependent"] == 3 + 3 * 200 + 1
    assert with_loop.total == sum(with_loop.by_function.values()) == 200_612
    assert list(counts()) == [without, with_loop]


@pytest.mark.parametrize("board", BOARDS)
def test_interrupts_in_the_middle_do_not_count(images, board):
    with connect(QemuAddress(board), images(board, "counted")) as client:
        client.classify(bytes(4))
        undisturbed = client.counts()
        client._transport.write(b"infer 200 0%" + b"help%" * 400)  # received while it computes
        client._ask(b"")
        assert client.counts() == undisturbed


def test_nothing_is_counted_before_the_first_inference(images):
    with (
        connect(QemuAddress(), images("mps2-an386", "linear")) as client,
        pytest.raises(ProtocolError, match="no inference"),
    ):
        client.counts()


@pytest.mark.parametrize("board", BOARDS)
def test_a_trace_build_sends_what_every_layer_computed(images, board):
    values = random.Random(3).randbytes(INPUT_BYTES)
    with connect(QemuAddress(board), images(board, "linear", trace=True)) as client:
        layers = client.trace(values)
        assert layers[1] == client.raw()
    assert {layer: len(found) for layer, found in layers.items()} == {0: 16, 1: 4}


def test_other_builds_say_that_they_send_no_layers(linear):
    with pytest.raises(UsageError, match="no layers"):
        linear.trace(bytes(INPUT_BYTES))


@pytest.mark.parametrize("first_byte", [1, 2], ids=["no memory there", "no instruction"])
def test_a_fault_is_reported(faulty, first_byte):
    assert faulty.classify(bytes(4)) == bytes(4)  # nothing wrong yet
    report = FAULTS[faulty.name()][first_byte]
    with pytest.raises(DeviceFault) as fault:
        faulty.classify(bytes([first_byte, 0, 0, 0]))
    assert re.search(f"fault {report}", fault.value.what)


def test_an_unaligned_access_is_a_fault_where_the_core_is_a_cortex_m0(faulty):
    unaligned = bytes([5, 0, 0, 0])
    if faulty.name() == "mps2-an385-m0":  # a Cortex-M3 would read on
        with pytest.raises(DeviceFault, match="HardFault"):
            faulty.classify(unaligned)
    else:
        assert faulty.classify(unaligned)[0] == 5


def test_a_stack_overflow_is_called_by_its_name(faulty):
    with pytest.raises(DeviceFault, match="fault stack overflow"):
        faulty.classify(bytes([3, 0, 0, 0]))


def test_an_emulator_killed_in_the_middle_is_noticed_at_once(images):
    with connect(QemuAddress(), images("mps2-an386", "faulty")) as client:
        client.load(bytes([4, 0, 0, 0]))  # computes for ever
        client._transport.write(b"infer 1 0%")
        os.kill(client._transport.process_id, signal.SIGKILL)
        start = time.monotonic()
        with pytest.raises(DeviceLost, match=r"emulator ended \(signal 9\)") as lost:
            client._answer(60.0)
        assert time.monotonic() - start < 5.0
        assert lost.value.exit_code == 3
        assert lost.value.where == "qemu:mps2-an386"


def test_closing_stops_the_emulator_and_removes_its_files(images):
    machine = EmulatedBoard(QemuAddress(), images("mps2-an386", "linear"))
    folder = machine._folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    machine.close()
    machine.close()
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(machine.process_id, 0)


def test_the_emulator_dies_with_its_parent(images):
    image = images("mps2-an386", "linear")
    program = (
        "import os, sys\nfrom pathlib import Path\n"
        "from entrain.deploy.device.address import QemuAddress\n"
        "from entrain.deploy.device.qemu import EmulatedBoard\n"
        f"machine = EmulatedBoard(QemuAddress(), Path({str(image)!r}))\n"
        "print(machine.process_id, flush=True)\nsys.stdin.read()\nos._exit(1)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        emulator = int(parent.stdout.readline())
        os.kill(emulator, 0)
        parent.kill()
    deadline = time.monotonic() + 5.0
    while Path(f"/proc/{emulator}").exists() and time.monotonic() < deadline:
        if " Z " in Path(f"/proc/{emulator}/stat").read_text(encoding="utf-8"):
            break  # dead; only nobody has asked for its status
    else:
        assert not Path(f"/proc/{emulator}").exists()


def test_flashing_keeps_the_image_for_later_connections(images, tmp_path, monkeypatch):
    monkeypatch.setenv("ENTRAIN_CACHE_DIR", str(tmp_path))
    with pytest.raises(DeviceMissing, match="nothing has been flashed"):
        connect(QemuAddress())
    flashing.flash(find_board("mps2-an386"), images("mps2-an386", "linear"))
    with connect(QemuAddress()) as client:
        assert client.profile().task == "linear"


def test_an_image_that_does_not_start_is_not_flashed(images, tmp_path, monkeypatch):
    monkeypatch.setenv("ENTRAIN_CACHE_DIR", str(tmp_path))
    wrong_board = images("mps3-an547", "linear")
    with pytest.raises(DeviceLost, match="qemu: fatal"):
        flashing.flash(find_board("mps2-an386"), wrong_board)
    with pytest.raises(DeviceMissing, match="nothing has been flashed"):
        connect(QemuAddress())


def test_the_image_of_another_board_on_the_same_machine_is_not_flashed(
    images, tmp_path, monkeypatch
):
    monkeypatch.setenv("ENTRAIN_CACHE_DIR", str(tmp_path))
    with pytest.raises(DeviceMissing, match="the image answers as 'mps2-an385'"):
        flashing.flash(find_board("mps2-an385-m0"), images("mps2-an385", "linear"))
    with pytest.raises(DeviceMissing, match="nothing has been flashed"):
        connect(QemuAddress("mps2-an385-m0"))


def test_an_image_that_is_none_is_refused(tmp_path):
    with pytest.raises(ModelError, match="cannot be read"):
        connect(QemuAddress(), tmp_path / "missing.elf")
    (tmp_path / "text.elf").write_text("not an image")
    with pytest.raises(ModelError, match="not an ELF file"):
        connect(QemuAddress(), tmp_path / "text.elf")


def test_an_emulator_that_is_not_installed_is_named_with_its_package(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="apt-get install qemu-system-arm"):
        connect(QemuAddress(), tmp_path / "firmware.elf")


def test_an_emulator_that_ends_at_once_is_quoted(images, monkeypatch, tmp_path):
    broken = tmp_path / "qemu-system-arm"
    broken.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo version 7.2 && exit\n'
        "printf 'no \\033[31mmemory\\n' >&2; exit 7\n"
    )
    broken.chmod(0o755)
    image = images("mps2-an386", "linear")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(DeviceLost, match=r"exit status 7\)\n  no \\x1b\[31mmemory"):
        connect(QemuAddress(), image)


def test_only_emulators_count():
    class Silent:
        name = "a board"

        def write(self, data: bytes) -> None: ...

        def read(self, _timeout: float) -> bytes:
            return b"m-name-dut-[a board]\r\nm-ready\r\n"

        def close(self) -> None: ...

    with pytest.raises(UsageError, match="only the emulator counts"):
        Client(Silent()).counts()

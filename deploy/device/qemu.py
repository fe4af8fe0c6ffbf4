"""A board emulated by QEMU: its serial line is a pseudo-terminal, its instructions are counted."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from entrain.deploy.boards import find_board
from entrain.deploy.device.address import QemuAddress, SerialAddress
from entrain.deploy.device.counting import InstructionCounter
from entrain.deploy.device.plugin import counting_plugin
from entrain.deploy.device.program import Program, ProgramLine, last_words, running
from entrain.deploy.device.qmp import MachineProtocol
from entrain.deploy.device.serial_port import SerialPort
from entrain.deploy.errors import DeviceLost, DeviceMissing, ToolError, UsageError

START_TIMEOUT = 20.0
_SERIAL_LABEL = "line"
_CHATTER = ("redirected to", "has no peer")  # what it says even when nothing is wrong
_REMEDY = "what was measured before is kept; run the command again"
# A multiplexer (of one line) keeps 32 received bytes ready for the UART: twice as fast as without.
# It would obey an escape character, by default 1; 256 is no byte, so every byte passes.
_NO_ESCAPE = ("-echr", "256")


class EmulatedBoard(ProgramLine):
    """A ``Transport`` to a machine that runs from construction until ``close``.

    The emulator also ends with the thread that made it, however that ends.

    Args:
        address: names the board.
        image: the ELF file to run.

    Raises:
        BoardError: no such board.
        UsageError: the board has no emulator.
        ToolError: QEMU, or the compiler for its plugin, is not installed.
        ModelError: the image is missing or is no firmware.
        DeviceLost: the emulator ended at once; the error holds its last words.
    """

    def __init__(self, address: QemuAddress, image: Path) -> None:
        machine = _machine(address)
        emulator = find_emulator()
        with contextlib.ExitStack() as cleanup:
            folder = tempfile.TemporaryDirectory(prefix="entrain-", ignore_cleanup_errors=True)
            self._folder = Path(cleanup.enter_context(folder))  # of mode 0700
            self.counter = InstructionCounter(image, self._folder / "counts")
            command = self._command(emulator, machine, image)
            said = self._folder / "errors"
            process = cleanup.enter_context(running([*_tie(), *command], said))
            program = Program("the emulator", str(address), process, said, _REMEDY, _telling)
            line = self._start(program)
            cleanup.callback(line.close)
            super().__init__(str(address), program, line, cleanup.pop_all())

    def _command(self, emulator: Path, machine: str, image: Path) -> list[str]:
        plugin = (
            f"{counting_plugin(emulator)},begin={self.counter.begin},end={self.counter.end},"
            f"out={self.counter.output}"
        )
        command = [str(emulator), "-machine", machine, "-kernel", str(image)]
        command += ["-display", "none", "-monitor", "none", "-nic", "none", "-S"]
        command += ["-chardev", f"pty,id={_SERIAL_LABEL},mux=on", *_NO_ESCAPE]
        command += ["-serial", f"chardev:{_SERIAL_LABEL}"]
        command += ["-qmp", f"unix:{self._folder / 'qmp'},server=on,wait=off"]
        return [*command, "-plugin", plugin]

    def _start(self, program: Program) -> SerialPort:
        """Open the serial line, then let the machine run: nothing it sends is lost."""
        with self._protocol(program) as protocol:
            devices = protocol.execute("query-chardev")
            with contextlib.ExitStack() as cleanup, program.explaining():
                line = SerialPort(SerialAddress(_terminal(devices)))
                cleanup.callback(line.close)
                protocol.execute("cont")
                cleanup.pop_all()
        return line

    def _protocol(self, program: Program) -> MachineProtocol:
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            try:
                return MachineProtocol(self._folder / "qmp")
            except (OSError, DeviceLost):
                if not program.runs:
                    raise program.ended() from None
            time.sleep(0.01)
        raise DeviceLost("the emulator does not start", where=program.where)


def _telling(said: list[str]) -> list[str]:
    """Before it gives up QEMU may print every register; what it says itself counts."""
    lines = [line for line in said if not any(chatter in line for chatter in _CHATTER)]
    return [line for line in lines if line.startswith("qemu")] or last_words(lines)


def _machine(address: QemuAddress) -> str:
    board = find_board(address.board)
    if board.emulator is None:
        raise UsageError(
            f"QEMU does not emulate {board.name}",
            where="--device",
            remedy="connect the board and use serial:PORT",
        )
    return board.emulator


def find_emulator() -> Path:
    """QEMU's program.

    Raises:
        ToolError: it is not installed.
    """
    found = shutil.which("qemu-system-arm")
    if found is None:
        raise ToolError(
            "the emulator qemu-system-arm is not installed",
            remedy="sudo apt-get install qemu-system-arm",
        )
    return Path(found)


def _terminal(devices: list[dict[str, Any]]) -> str:
    for device in devices:
        if device["label"] == f"{_SERIAL_LABEL}-base":  # what the multiplexer stands on
            return str(device["filename"]).removeprefix("pty:")
    raise DeviceMissing("the emulator has no serial line")


def _tie() -> list[str]:
    """What ends the emulator when this thread ends, however it ends."""
    tie = shutil.which("setpriv")
    return [tie, "--pdeathsig", "KILL", "--"] if tie else []

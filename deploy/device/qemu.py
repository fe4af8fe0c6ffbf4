"""A board emulated by QEMU: its serial line is a pseudo-terminal, its instructions are counted."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from entrain.deploy.boards import find_board
from entrain.deploy.device.address import QemuAddress, SerialAddress
from entrain.deploy.device.counting import InstructionCounter
from entrain.deploy.device.plugin import counting_plugin
from entrain.deploy.device.protocol import escaped
from entrain.deploy.device.qmp import MachineProtocol
from entrain.deploy.device.serial_port import SerialPort
from entrain.deploy.errors import DeviceError, DeviceLost, DeviceMissing, ToolError, UsageError

START_TIMEOUT = 20.0
_SERIAL_LABEL = "line"
_CHATTER = ("redirected to", "has no peer")  # what it says even when nothing is wrong
_LAST_WORDS = 5
# A multiplexer (of one line) keeps 32 received bytes ready for the UART: twice as fast as without.
# It would obey an escape character, by default 1; 256 is no byte, so every byte passes.
_NO_ESCAPE = ("-echr", "256")


class EmulatedBoard:
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
        self.name = str(address)
        machine = _machine(address)
        emulator = find_emulator()
        with contextlib.ExitStack() as cleanup:
            folder = tempfile.TemporaryDirectory(prefix="entrain-", ignore_cleanup_errors=True)
            self._folder = Path(cleanup.enter_context(folder))  # of mode 0700
            self.counter = InstructionCounter(image, self._folder / "counts")
            command = self._command(emulator, machine, image)
            self._process = cleanup.enter_context(_running(command, self._folder / "errors"))
            self._line = self._start()
            cleanup.callback(self._line.close)
            self._cleanup = cleanup.pop_all()

    @property
    def process_id(self) -> int:
        """The emulator's process."""
        return self._process.pid

    def write(self, data: bytes) -> None:
        """Send all of ``data``; raises DeviceLost if the emulator ended."""
        with self._explaining():
            self._line.write(data)

    def read(self, timeout: float) -> bytes:
        """What has arrived within ``timeout`` seconds; raises DeviceLost if the emulator ended."""
        with self._explaining():
            data = self._line.read(timeout)
        if not data and self._process.poll() is not None:
            raise self._ended()
        return data

    def close(self) -> None:
        """Stop the emulator and remove its files."""
        self._cleanup.close()

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

    def _start(self) -> SerialPort:
        """Open the serial line, then let the machine run: nothing it sends is lost."""
        with self._protocol() as protocol:
            devices = protocol.execute("query-chardev")
            with contextlib.ExitStack() as cleanup, self._explaining():
                line = SerialPort(SerialAddress(_terminal(devices)))
                cleanup.callback(line.close)
                protocol.execute("cont")
                cleanup.pop_all()
        return line

    def _protocol(self) -> MachineProtocol:
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            try:
                return MachineProtocol(self._folder / "qmp")
            except (OSError, DeviceLost):
                if self._process.poll() is not None:
                    raise self._ended() from None
            time.sleep(0.01)
        raise DeviceLost("the emulator does not start", where=self.name)

    @contextlib.contextmanager
    def _explaining(self) -> Iterator[None]:
        """Turns the loss of the line into the loss of the emulator, with its last words."""
        try:
            yield
        except DeviceLost as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=1.0)
                raise self._ended() from error
            raise

    def _ended(self) -> DeviceError:
        words = (self._folder / "errors").read_text(encoding="utf-8", errors="replace")
        said = [line for line in words.splitlines() if not any(c in line for c in _CHATTER)]
        lines = [escaped(line) for line in said]
        # Before it gives up QEMU may print every register; what it says itself counts.
        last = [line for line in lines if line.startswith("qemu")] or lines[-_LAST_WORDS:]
        status = self._process.returncode
        cause = f"signal {-status}" if status < 0 else f"exit status {status}"
        return DeviceLost(
            "\n  ".join([f"the emulator ended ({cause})", *last]),
            where=self.name,
            remedy="what was measured before is kept; run the command again",
        )


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


@contextlib.contextmanager
def _running(command: list[str], errors: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The process of ``command``, killed on exit; its messages go to the file ``errors``.

    It has a session of its own, so that Ctrl-C reaches Entrain alone, which then ends it in order.
    """
    tie = shutil.which("setpriv")  # ends the emulator when this thread ends, however it ends
    prefix = [tie, "--pdeathsig", "KILL", "--"] if tie else []
    with errors.open("wb") as messages:
        process = subprocess.Popen(
            [*prefix, *command],
            stdin=subprocess.DEVNULL,
            stdout=messages,
            stderr=messages,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()

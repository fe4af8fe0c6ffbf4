"""A simulated FPGA: a program whose serial line is a pseudo-terminal."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import tty
from collections.abc import Iterator
from pathlib import Path

from entrain.deploy.device.address import FpgaSimAddress, SerialAddress
from entrain.deploy.device.protocol import escaped
from entrain.deploy.device.serial_port import SerialPort
from entrain.deploy.errors import DeviceError, DeviceLost, ToolError

_LAST_WORDS = 5


class SimulatedFpga:
    """A ``Transport`` to a simulation that runs from construction until ``close``.

    It ends by itself when the line is closed, however this process ends.

    Args:
        address: for its name.
        program: what ``entrain.fpga.serial_simulation.compile_board`` made.

    Raises:
        ToolError: the program cannot be run.
        DeviceError: its line cannot be opened.
    """

    def __init__(self, address: FpgaSimAddress, program: Path) -> None:
        self.name = str(address)
        with contextlib.ExitStack() as cleanup:
            folder = tempfile.TemporaryDirectory(prefix="entrain-", ignore_cleanup_errors=True)
            self._errors = (
                Path(cleanup.enter_context(folder)) / "errors"
            )  # in a folder of mode 0700
            with _terminal() as (theirs, ours):
                self._line = SerialPort(SerialAddress(os.ttyname(ours)))
                cleanup.callback(self._line.close)
                self._process = cleanup.enter_context(_running(program, theirs, self._errors))
            self._cleanup = cleanup.pop_all()

    @property
    def process_id(self) -> int:
        """The simulation's process."""
        return self._process.pid

    def write(self, data: bytes) -> None:
        """Send all of ``data``; raises DeviceLost if the simulation ended."""
        with self._explaining():
            self._line.write(data)

    def read(self, timeout: float) -> bytes:
        """What has arrived within ``timeout`` seconds; raises DeviceLost if it ended."""
        with self._explaining():
            data = self._line.read(timeout)
        if not data and self._process.poll() is not None:
            raise self._ended()
        return data

    def close(self) -> None:
        """Stop the simulation and remove its files."""
        self._cleanup.close()

    @contextlib.contextmanager
    def _explaining(self) -> Iterator[None]:
        """Turns the loss of the line into the end of the simulation, with its last words."""
        try:
            yield
        except DeviceLost as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=1.0)
                raise self._ended() from error
            raise

    def _ended(self) -> DeviceError:
        words = self._errors.read_text(encoding="utf-8", errors="replace")
        last = [escaped(line) for line in words.splitlines()][-_LAST_WORDS:]
        status = self._process.returncode
        cause = f"signal {-status}" if status < 0 else f"exit status {status}"
        return DeviceLost(
            "\n  ".join([f"the simulation ended ({cause})", *last]),
            where=self.name,
            remedy="run the command again",
        )


@contextlib.contextmanager
def _terminal() -> Iterator[tuple[int, int]]:
    """The controlling side of a pseudo-terminal and the other; both are closed here on exit."""
    theirs, ours = os.openpty()
    try:
        tty.setraw(ours)  # before anything is sent: nothing is echoed, and no byte is special
        yield theirs, ours
    finally:
        os.close(theirs)
        os.close(ours)


@contextlib.contextmanager
def _running(program: Path, terminal: int, errors: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The program's process, killed on exit; its messages go to the file ``errors``.

    It has a session of its own, so that Ctrl-C reaches Entrain alone, which then ends it in order.

    Raises:
        ToolError: it cannot be run.
    """
    try:
        with errors.open("wb") as messages:
            process = subprocess.Popen(
                [str(program), str(terminal)],
                pass_fds=(terminal,),
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                start_new_session=True,
            )
    except OSError as error:
        raise ToolError(
            f"the simulation cannot be run: {error.strerror}",
            where=str(program),
            remedy="remove that file, then run the command again",
        ) from error
    try:
        yield process
    finally:
        process.kill()
        process.wait()

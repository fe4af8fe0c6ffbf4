"""A simulated FPGA: a program whose serial line is a pseudo-terminal."""

from __future__ import annotations

import contextlib
import os
import tempfile
import tty
from collections.abc import Iterator
from pathlib import Path

from entrain.deploy.device.address import FpgaSimAddress, SerialAddress
from entrain.deploy.device.program import Program, ProgramLine, running
from entrain.deploy.device.serial_port import SerialPort


class SimulatedFpga(ProgramLine):
    """A ``Transport`` to a simulation that runs from construction until ``close``.

    It ends by itself when the line is closed, however this process ends.

    Args:
        address: for its name.
        program: what ``entrain.fpga.simulators.serial.compile_board`` made.

    Raises:
        ToolError: the program cannot be run.
        DeviceError: its line cannot be opened.
    """

    def __init__(self, address: FpgaSimAddress, program: Path) -> None:
        name = str(address)
        with contextlib.ExitStack() as cleanup:
            folder = tempfile.TemporaryDirectory(prefix="entrain-", ignore_cleanup_errors=True)
            said = Path(cleanup.enter_context(folder)) / "errors"  # in a folder of mode 0700
            with _terminal() as (theirs, ours):
                line = SerialPort(SerialAddress(os.ttyname(ours)))
                cleanup.callback(line.close)
                command = [str(program), str(theirs)]
                process = cleanup.enter_context(running(command, said, pass_fds=(theirs,)))
            simulation = Program("the simulation", name, process, said, "run the command again")
            super().__init__(name, simulation, line, cleanup.pop_all())


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

"""Programs that stand in for a device: a process whose serial line is a pseudo-terminal."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from entrain.deploy.device.protocol import escaped
from entrain.deploy.device.serial_port import SerialPort
from entrain.deploy.errors import DeviceLost, ToolError

LAST_WORDS = 5


def last_words(said: list[str]) -> list[str]:
    """What a program said last, of all its lines."""
    return said[-LAST_WORDS:]


@dataclass(frozen=True)
class Program:
    """A process that stands in for a device.

    Attributes:
        what: what it is, for a person: ``the emulator``.
        where: the device's name.
        process: the process.
        said: the file with its messages.
        remedy: what to do when it has ended.
        telling: which of its lines say why.
    """

    what: str
    where: str
    process: subprocess.Popen[bytes]
    said: Path
    remedy: str
    telling: Callable[[list[str]], list[str]] = last_words

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    @contextlib.contextmanager
    def explaining(self) -> Iterator[None]:
        """Turns the loss of the line into the end of the program, with its last words."""
        try:
            yield
        except DeviceLost as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=1.0)
                raise self.ended() from error
            raise

    def ended(self) -> DeviceLost:
        """The error of a program that has ended."""
        words = self.said.read_text(encoding="utf-8", errors="replace")
        lines = [escaped(line) for line in words.splitlines()]
        status = self.process.returncode
        cause = f"signal {-status}" if status < 0 else f"exit status {status}"
        return DeviceLost(
            "\n  ".join([f"{self.what} ended ({cause})", *self.telling(lines)]),
            where=self.where,
            remedy=self.remedy,
        )


class ProgramLine:
    """A ``Transport`` to a program that runs until ``close``.

    Args:
        name: the device's.
        program: what answers.
        line: its serial line.
        cleanup: what is to be closed with it: the line, the process, its files.
    """

    def __init__(
        self, name: str, program: Program, line: SerialPort, cleanup: contextlib.ExitStack
    ) -> None:
        self.name = name
        self._program, self._line, self._cleanup = program, line, cleanup

    @property
    def process_id(self) -> int:
        """The program's process."""
        return self._program.process.pid

    def write(self, data: bytes) -> None:
        """Send all of ``data``; raises DeviceLost if the program ended."""
        with self._program.explaining():
            self._line.write(data)

    def read(self, timeout: float) -> bytes:
        """What has arrived within ``timeout`` seconds; raises DeviceLost if the program ended."""
        with self._program.explaining():
            data = self._line.read(timeout)
        if not data and not self._program.runs:
            raise self._program.ended()
        return data

    def close(self) -> None:
        """Stop the program and remove its files."""
        self._cleanup.close()


@contextlib.contextmanager
def running(
    command: Sequence[str], said: Path, *, pass_fds: Sequence[int] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """The process of ``command``, killed on exit; its messages go to the file ``said``.

    It has a session of its own, so that Ctrl-C reaches Entrain alone, which then ends it in order.

    Raises:
        ToolError: it cannot be run.
    """
    try:
        with said.open("wb") as messages:
            process = subprocess.Popen(
                command,
                pass_fds=pass_fds,
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                start_new_session=True,
            )
    except OSError as error:
        raise ToolError(
            f"{command[0]} cannot be run: {error.strerror}",
            where=command[0],
            remedy="remove that file, then run the command again",
        ) from error
    try:
        yield process
    finally:
        process.kill()
        process.wait()

"""Every error Entrain reports to a person, in one tree.

An error says what is wrong, where (file, line, tensor, node, port), and what to do about it. The
command line prints those three parts and exits with the class's ``exit_code``:

====  ==========================================================
code  meaning
====  ==========================================================
1     a check failed: does not fit, differs, not accurate enough
2     wrong use, or unusable data, model, board file or tool
3     the device is missing or was lost
130   interrupted
====  ==========================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class EntrainError(Exception):
    """Base of every error shown to a person.

    Args:
        what: what is wrong, one sentence without a full stop.
        where: the file, line, tensor, node or port concerned.
        remedy: what the reader can do about it.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(what, where, remedy)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"\n  {self.remedy}" if self.remedy else ""
        return f"{place}{self.what}{advice}"


@contextmanager
def concerning(where: str, remedy: str | None = None) -> Iterator[None]:
    """Say what an error within the block is about, and what to do, unless it says so itself."""
    try:
        yield
    except EntrainError as error:
        error.where = error.where or where
        error.remedy = error.remedy or remedy
        raise


class UsageError(EntrainError):
    """The command line, environment or a configuration file asks for something impossible."""


class DataError(EntrainError):
    """A data folder or clip is missing, empty or unreadable."""


class ModelError(EntrainError):
    """A checkpoint or ONNX file cannot be used."""


class CheckpointError(ModelError):
    """A checkpoint is damaged, or belongs to another network."""


class UnsupportedOperator(ModelError):
    """An ONNX node that the lowering has no integer form for."""


class ResultsError(EntrainError):
    """A results.json is missing, damaged or of another schema."""


class BoardError(EntrainError):
    """A board is unknown, or its board.toml is wrong."""


class ToolError(EntrainError):
    """A compiler, emulator or other program is not installed, or it failed."""


class FpgaToolFailed(ToolError):
    """A program of the FPGA flow ran and failed; where: the log of everything that it printed."""


class CheckFailed(EntrainError):
    """Something was built or measured, and it is not good enough."""

    exit_code = 1


class TrainingDiverged(CheckFailed):
    """The training loss stopped being a number."""


class DoesNotFit(CheckFailed):
    """The image needs more memory than the board has, or the design more of the FPGA.

    Args:
        what: what is wrong, with the shortfall in bytes or cells.
        where: the board.
        remedy: what the reader can do about it.
        short: by how many bytes, by the memory's name (``flash``, ``ram``, ``stack``), or by how
            many cells, by the FPGA's name of them. Empty where no board is concerned.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        short: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.short = dict(short or {})


class Mismatch(CheckFailed):
    """Two computations that must agree to the bit do not."""


class DeviceError(EntrainError):
    """The device is missing, refused, or went away."""

    exit_code = 3


class DeviceMissing(DeviceError):
    """No such port, or nothing answers on it."""


class DeviceBusy(DeviceError):
    """The port is open in another program."""


class DeviceDenied(DeviceError):
    """The operating system refuses access to the port."""


class DeviceLost(DeviceError):
    """The device stopped answering, or its emulator died, in the middle of the work."""


class DeviceTimeout(DeviceLost):
    """The device did not answer in time."""


class DeviceFault(DeviceLost):
    """The firmware ran into a fault, reported it and stopped."""


class DeviceRefused(DeviceError):
    """The device understood a command and answered with an error; it is ready for the next."""


class ProtocolError(DeviceError):
    """The device answered something that the protocol does not allow."""

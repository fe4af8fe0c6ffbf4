"""A serial port, with the operating system's refusals told apart."""

from __future__ import annotations

import errno
import termios

import serial
from serial.tools import list_ports

from entrain.deploy.device.address import SerialAddress
from entrain.deploy.errors import (
    DeviceBusy,
    DeviceDenied,
    DeviceError,
    DeviceLost,
    DeviceMissing,
    DeviceTimeout,
)

WRITE_PATIENCE = 10.0  # seconds beyond what the bytes take on the line
BITS_PER_BYTE = 10  # with start and stop bit

_BUSY = {errno.EBUSY, errno.EAGAIN, errno.EWOULDBLOCK}
_DENIED = {errno.EACCES, errno.EPERM}
# What pyserial raises when the port goes away: in its ioctls, its reads, or closed under a read.
_GONE = (OSError, termios.error, TypeError)
_ABSENT = {errno.ENOENT, errno.ENODEV, errno.ENXIO}


class SerialPort:
    """A ``Transport`` over an open serial port, which no one else may open meanwhile.

    Raises:
        DeviceMissing: there is no such port, or it is no serial port.
        DeviceBusy: another program has it open.
        DeviceDenied: this user may not open it.
    """

    def __init__(self, address: SerialAddress) -> None:
        self.name = str(address)
        try:
            self._line = serial.Serial(address.port, address.baud, exclusive=True)
        except (OSError, ValueError, termios.error) as error:  # SerialException is an OSError
            raise _refused(address, error) from error

    def write(self, data: bytes) -> None:
        """Send all of ``data``.

        Raises:
            DeviceTimeout: flow control, or an emulator, holds them back.
            DeviceLost: the port went away.
        """
        patience = WRITE_PATIENCE + len(data) * BITS_PER_BYTE / self._line.baudrate
        try:
            self._line.write_timeout = patience  # asks the port, which may be gone
            self._line.write(data)
        except serial.SerialTimeoutException as error:
            raise DeviceTimeout(
                "the device takes no more bytes", where=self.name, remedy="reset the board"
            ) from error
        except _GONE as error:
            raise self._lost(error) from error

    def read(self, timeout: float) -> bytes:
        """What has arrived within ``timeout`` seconds; raises DeviceLost if the port went away."""
        try:
            self._line.timeout = timeout
            return bytes(self._line.read(max(1, self._line.in_waiting)))
        except _GONE as error:
            raise self._lost(error) from error

    def close(self) -> None:
        """Give the port back."""
        self._line.close()

    def _lost(self, error: Exception) -> DeviceLost:
        return DeviceLost(
            f"the serial line was lost: {error}",
            where=self.name,
            remedy="check the cable and the board's power, then try again",
        )


def _refused(address: SerialAddress, error: Exception) -> DeviceError:
    code = error.errno if isinstance(error, OSError) else None
    reason = f"{address.port}: {error}"
    if code in _BUSY or "exclusively lock" in str(error):
        return DeviceBusy(
            "the port is open in another program",
            where=str(address),
            remedy="close that program (a terminal, a monitor, another run of entrain)",
        )
    if code in _DENIED:
        return DeviceDenied(
            "this user may not open the port",
            where=str(address),
            remedy="join the port's group (usually: sudo adduser $USER dialout), then log in again",
        )
    what = "there is no such port" if code in _ABSENT else f"not a usable serial port: {reason}"
    return DeviceMissing(what, where=str(address), remedy=_ports_found())


def _ports_found() -> str:
    found = [f"{port.device} ({port.description})" for port in sorted(list_ports.comports())]
    if not found:
        return "no serial port was found: connect the board, and use a cable that carries data"
    return f"ports found: {', '.join(found)}"

"""What a line to a device can do."""

from __future__ import annotations

from typing import Protocol


class Transport(Protocol):
    """A line of bytes to a device and back."""

    @property
    def name(self) -> str:
        """What to call the line in an error, for instance ``serial:/dev/ttyACM0:115200``."""

    def write(self, data: bytes) -> None:
        """Send all of ``data``.

        Raises:
            DeviceLost: the device went away.
        """

    def read(self, timeout: float) -> bytes:
        """What has arrived, waiting at most ``timeout`` seconds for a first byte; b"" if none.

        Raises:
            DeviceLost: the device went away.
        """

    def close(self) -> None:
        """Give the line back. Closing twice is harmless."""

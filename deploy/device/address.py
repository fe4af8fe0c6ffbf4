"""Where a device is: ``qemu[:BOARD]``, ``serial:PORT[:BAUD]`` or ``fpga-sim``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from entrain.deploy.errors import UsageError

DEFAULT_BOARD = "mps2-an386"
DEFAULT_BAUD = 115_200


@dataclass(frozen=True)
class QemuAddress:
    """A board emulated by QEMU; every connection starts a machine of its own."""

    board: str = DEFAULT_BOARD

    def __str__(self) -> str:
        return f"qemu:{self.board}"


@dataclass(frozen=True)
class SerialAddress:
    """A serial port, at so many bits a second."""

    port: str
    baud: int = DEFAULT_BAUD

    def __str__(self) -> str:
        return f"serial:{self.port}:{self.baud}"


@dataclass(frozen=True)
class FpgaSimAddress:
    """A simulated FPGA; every connection starts one of its own."""

    def __str__(self) -> str:
        return "fpga-sim"


Address = QemuAddress | SerialAddress | FpgaSimAddress


def parse_address(text: str) -> Address:
    """The address that ``text`` (the value of ``--device``) stands for.

    Raises:
        UsageError: it is none; the error lists the forms there are.
    """
    scheme, _, rest = text.partition(":")
    if scheme not in SCHEMES:
        raise UsageError(
            f"no device is addressed by {text!r}",
            where="--device",
            remedy="use qemu, qemu:BOARD, serial:PORT, serial:PORT:BAUD or fpga-sim",
        )
    return SCHEMES[scheme](rest)


def _parse_qemu(rest: str) -> QemuAddress:
    return QemuAddress(rest) if rest else QemuAddress()


def _parse_serial(rest: str) -> SerialAddress:
    # A port's name may hold colons of its own (/dev/serial/by-path/pci-0000:00:14.0-usb-0:1).
    port, separator, last = rest.rpartition(":")
    has_baud = separator != "" and last.isascii() and last.isdigit()
    address = SerialAddress(port, int(last)) if has_baud else SerialAddress(rest)
    if not address.port or address.baud <= 0:
        raise UsageError(
            f"'serial:{rest}' names no usable port",
            where="--device",
            remedy="for instance serial:/dev/ttyACM0 or serial:/dev/ttyACM0:115200",
        )
    return address


def _parse_fpga_sim(rest: str) -> FpgaSimAddress:
    if rest:
        raise UsageError(
            f"'fpga-sim:{rest}' names no device", where="--device", remedy="use fpga-sim"
        )
    return FpgaSimAddress()


SCHEMES: dict[str, Callable[[str], Address]] = {
    "qemu": _parse_qemu,
    "serial": _parse_serial,
    "fpga-sim": _parse_fpga_sim,
}

"""The serial line: transport, protocol, client."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from entrain.deploy.device.address import Address, FpgaSimAddress, QemuAddress, SerialAddress
from entrain.deploy.device.client import Client
from entrain.deploy.device.emulated_flash import flashed_image
from entrain.deploy.device.fpga_simulation import SimulatedFpga
from entrain.deploy.device.qemu import EmulatedBoard
from entrain.deploy.device.serial_port import SerialPort
from entrain.deploy.errors import UsageError


def connect(address: Address, image: Path | None = None) -> Client:
    """A client of the device at ``address``, ready for commands.

    Args:
        address: see ``parse_address``.
        image: what an emulator is to run; None for what was flashed last. A real board runs what
            it was flashed with; a simulated FPGA is a program that was made for one block.

    Raises:
        DeviceError: the device is missing, busy, denied or lost.
        UsageError: a simulated FPGA without its program.
        ToolError: the emulator is not installed.
    """
    return _OPENERS[type(address)](address, image)


def _connect_qemu(address: QemuAddress, image: Path | None) -> Client:
    machine = EmulatedBoard(address, image or flashed_image(address.board))
    return Client(machine, machine.counter)


def _connect_serial(address: SerialAddress, _image: Path | None) -> Client:
    return Client(SerialPort(address))


def _connect_fpga_sim(address: FpgaSimAddress, image: Path | None) -> Client:
    if image is None:
        raise UsageError(
            "a simulated FPGA holds one network's attention, and none is named",
            where=str(address),
            remedy="use 'entrain validate --device fpga-sim --run RUN'",
        )
    return Client(SimulatedFpga(address, image))


# How to connect, by the kind of address.
_OPENERS: dict[type, Callable[[Any, Path | None], Client]] = {
    QemuAddress: _connect_qemu,
    SerialAddress: _connect_serial,
    FpgaSimAddress: _connect_fpga_sim,
}

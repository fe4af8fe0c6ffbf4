from __future__ import annotations

import pytest

from entrain.deploy.device.address import QemuAddress, SerialAddress, parse_address
from entrain.deploy.errors import UsageError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("qemu", QemuAddress("mps2-an386")),
        ("qemu:", QemuAddress("mps2-an386")),
        ("qemu:mps3-an547", QemuAddress("mps3-an547")),
        ("serial:/dev/ttyACM0", SerialAddress("/dev/ttyACM0", 115_200)),
        ("serial:/dev/ttyUSB1:9600", SerialAddress("/dev/ttyUSB1", 9600)),
        ("serial:COM3", SerialAddress("COM3", 115_200)),
        (
            "serial:/dev/serial/by-path/pci-0000:00:14.0-usb-0:1:1.0",
            SerialAddress("/dev/serial/by-path/pci-0000:00:14.0-usb-0:1:1.0", 115_200),
        ),
    ],
)
def test_the_forms_of_an_address(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize("address", [QemuAddress("x"), SerialAddress("/dev/ttyACM0", 9600)])
def test_an_address_reads_back_as_it_is_shown(address):
    assert parse_address(str(address)) == address


@pytest.mark.parametrize("text", ["", "usb:1", "QEMU", "/dev/ttyACM0", "serial:", "serial::9600"])
def test_anything_else_is_wrong_use(text):
    with pytest.raises(UsageError) as error:
        parse_address(text)
    assert error.value.where == "--device"
    assert "serial:" in str(error.value)


def test_no_baud_rate_is_zero():
    with pytest.raises(UsageError):
        parse_address("serial:/dev/ttyACM0:0")

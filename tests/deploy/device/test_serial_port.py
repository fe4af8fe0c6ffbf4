"""A pseudo-terminal stands for a serial port: the operating system's refusals are real."""

from __future__ import annotations

import contextlib
import errno
import os

import pytest
import serial

from entrain.deploy.device.address import SerialAddress
from entrain.deploy.device.serial_port import SerialPort
from entrain.deploy.errors import DeviceBusy, DeviceDenied, DeviceLost, DeviceMissing, DeviceTimeout


@pytest.fixture
def terminal():
    """Our end as a file, and the path of the other."""
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    with contextlib.ExitStack() as ends:
        ends.callback(os.close, theirs)
        # A file object closes its descriptor once, even where the test has closed it before.
        file = ends.enter_context(os.fdopen(ours, "rb"))
        yield file, os.ttyname(theirs)


def test_bytes_go_both_ways(terminal):
    ours, path = terminal
    port = SerialPort(SerialAddress(path))
    port.write(b"name%\x00\xff")
    assert os.read(ours.fileno(), 100) == b"name%\x00\xff"
    os.write(ours.fileno(), b"m-ready\r\n\x11\x13")
    received = b""
    while len(received) < len(b"m-ready\r\n\x11\x13"):  # it may come in parts
        received += port.read(1.0)
    assert received == b"m-ready\r\n\x11\x13"
    assert port.read(0.0) == b""
    port.close()
    port.close()


def test_a_device_that_takes_nothing_does_not_hang_us(terminal, monkeypatch):
    _, path = terminal
    monkeypatch.setattr("entrain.deploy.device.serial_port.WRITE_PATIENCE", 0.01)
    port = SerialPort(SerialAddress(path, 4_000_000))
    with pytest.raises(DeviceTimeout, match="takes no more bytes"):
        port.write(bytes(100_000))


def test_a_port_that_does_not_exist(tmp_path):
    with pytest.raises(DeviceMissing, match="no such port") as error:
        SerialPort(SerialAddress(str(tmp_path / "ttyACM0")))
    assert "port" in error.value.remedy


def test_a_file_that_is_no_port(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DeviceMissing, match="not a usable serial port"):
        SerialPort(SerialAddress(str(tmp_path / "file")))


def test_a_port_open_elsewhere(terminal):
    _, path = terminal
    other = SerialPort(SerialAddress(path))
    with pytest.raises(DeviceBusy, match="another program"):
        SerialPort(SerialAddress(path))
    other.close()


def test_a_port_that_is_denied(monkeypatch):
    def refuse(*_, **__):
        raise serial.SerialException(errno.EACCES, "could not open port: Permission denied")

    monkeypatch.setattr(serial, "Serial", refuse)
    with pytest.raises(DeviceDenied) as error:
        SerialPort(SerialAddress("/dev/ttyACM0"))
    assert "dialout" in error.value.remedy


def test_a_port_unplugged_in_the_middle(terminal):
    ours, path = terminal
    port = SerialPort(SerialAddress(path))
    ours.close()
    with pytest.raises(DeviceLost, match="was lost") as error:
        port.read(1.0)
    assert error.value.where == f"serial:{path}:115200"


@pytest.mark.parametrize("use", [lambda port: port.read(2.0), lambda port: port.write(b"name%")])
def test_a_port_that_is_gone_before_its_timeout_is_set(terminal, use):
    ours, path = terminal
    port = SerialPort(SerialAddress(path))
    ours.close()  # whatever pyserial asks of the port now fails
    with pytest.raises(DeviceLost, match="the serial line was lost"):
        use(port)

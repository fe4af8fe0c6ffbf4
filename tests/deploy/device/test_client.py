"""The client against lines that misbehave."""

from __future__ import annotations

import pytest

from entrain.deploy.device import client as client_module
from entrain.deploy.device.client import Client
from entrain.deploy.errors import DeviceMissing, DeviceTimeout, ProtocolError

NAME = b"m-name-dut-[x]\r\nm-ready\r\n"


class Script:
    """A line on which every command of the client is answered by the next chunks of a script."""

    name = "a script"

    def __init__(self, *answers: list[bytes]) -> None:
        self.answers = list(answers)
        self.waiting: list[bytes] = []
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.sent.append(data)
        if self.answers:
            self.waiting += self.answers.pop(0)

    def read(self, _timeout: float) -> bytes:
        return self.waiting.pop(0) if self.waiting else b""

    def close(self) -> None:
        self.closed = True


def test_a_booting_device_is_waited_for():
    line = Script([b"m-timestamp-mode-performance\r\nm-init-done\r\nm-re", b"ady\r\n", NAME])
    with Client(line):
        assert not line.closed
    assert line.closed


def test_a_device_that_missed_the_first_question_is_asked_again():
    line = Script([], [b"e-[the block stopped short]\r\nm-ready\r\n"], [NAME, NAME], [NAME])
    client = Client(line)
    assert line.waiting == []  # answers to earlier questions would be taken for later ones
    assert client.name() == "x"


def test_a_line_with_something_else_on_it_is_named():
    line = Script(*[[b"login: "]] * client_module.GREETING_ATTEMPTS)
    with pytest.raises(DeviceMissing, match=r"nothing there answers") as error:
        Client(line)
    assert error.value.where == "a script"
    assert line.closed


def test_an_answer_may_arrive_byte_by_byte_and_the_next_one_with_it():
    answer = b"m-profile-[entrain]\r\nm-model-[kws01]\r\nm-ready\r\n"
    line = Script([NAME], [bytes([byte]) for byte in answer[:-1]] + [answer[-1:] + NAME], [])
    client = Client(line)
    assert client.profile().task == "kws01"
    assert client.name() == "x"


def test_silence_is_a_timeout():
    client = Client(Script([NAME], [b"m-raw-[00"]))
    with pytest.raises(DeviceTimeout, match="did not answer") as error:
        client.raw()
    assert error.value.exit_code == 3


def test_an_answer_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(client_module, "MAX_ANSWER_BYTES", 100)
    client = Client(Script([NAME], [b"x" * 60, b"x" * 60]))
    with pytest.raises(ProtocolError, match="does not end") as error:
        client.raw()
    assert error.value.where == "a script"


def test_a_load_that_is_not_confirmed_is_an_error():
    client = Client(Script([NAME], [b"m-ready\r\n"]))
    with pytest.raises(ProtocolError, match="expected m-load-done"):
        client.load(b"1234")

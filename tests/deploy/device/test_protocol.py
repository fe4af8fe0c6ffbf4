from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.device import protocol
from entrain.deploy.errors import DeviceFault, DeviceRefused, ProtocolError


def test_a_command_is_words_and_a_percent_sign():
    assert protocol.encode("infer", 3, 0) == b"infer 3 0%"


@pytest.mark.parametrize("text", ["na%me", "na\nme", "nämé", "x" * 81])
def test_what_the_device_could_not_take_is_not_sent(text):
    with pytest.raises(ProtocolError):
        protocol.encode(text)


@given(payload=st.binary(max_size=300))
def test_a_block_is_length_bytes_and_checksum(payload):
    sent = protocol.encode_block(payload, "load")
    head, rest = sent.split(b"%", 1)
    assert head == b"load %d" % len(payload)
    assert rest[:-4] == payload
    assert int.from_bytes(rest[-4:], "little") == zlib.crc32(payload)


@given(payload=st.binary(max_size=300))
def test_hexadecimal_lines_fit_the_devices_buffer_and_hold_every_byte(payload):
    lines = protocol.hex_lines(payload)
    assert all(len(line) - 1 <= protocol.COMMAND_CAPACITY for line in lines)
    digits = b"".join(line[len("db ") : -1] for line in lines)
    assert bytes.fromhex(digits.decode()) == payload


def test_an_answer_is_its_lines_without_ready():
    answer = b"m-model-[kws01]\r\nm-ready\r\n"
    assert protocol.answer_lines(answer) == ["m-model-[kws01]"]
    assert protocol.field(protocol.answer_lines(answer), "m-model-") == "kws01"


def test_an_error_is_raised_with_its_text_made_harmless():
    with pytest.raises(DeviceRefused, match=r"answered: bad \\x1b\[31m"):
        protocol.answer_lines(b"e-[bad \x1b[31m]\r\nm-ready\r\n")


def test_a_fault_is_an_error_of_its_own():
    with pytest.raises(DeviceFault, match="BusFault pc=0x00000ef4"):
        protocol.answer_lines(b"\r\ne-[fault BusFault pc=0x00000ef4]\r\n")


def test_a_missing_field_is_reported_with_what_came_instead():
    with pytest.raises(ProtocolError, match=r"expected m-raw-\[...\], .* sent m-odd"):
        protocol.parse_raw(["m-odd"])


def test_timing_holds_both_readings_of_the_clock():
    timing = protocol.parse_timing(["m-infer-start-4", "m-lap-us-100", "m-lap-us-500"], 4)
    assert timing.laps_us == (100, 500)
    assert timing.microseconds_per_inference == 100.0


@pytest.mark.parametrize(
    "lines", [[], ["m-lap-us-1"], ["m-lap-us-9", "m-lap-us-8"], ["m-lap-us-x", "m-lap-us-8"]]
)
def test_times_that_make_no_sense_are_refused(lines):
    with pytest.raises(ProtocolError):
        protocol.parse_timing(lines, 1)


def test_scores():
    assert protocol.parse_scores(["m-results-[0.250000,0.750000]"]) == [0.25, 0.75]


@pytest.mark.parametrize("text", ["", "nan", "-0.5", "0.5,", "1e999", "0.5 0.5"])
def test_scores_that_make_no_sense_are_refused(text):
    with pytest.raises(ProtocolError):
        protocol.parse_scores([f"m-results-[{text}]"])


def test_the_use_of_the_stack():
    assert protocol.parse_stack(["m-stack-[248,8192]"]) == protocol.StackUse(248, 8192)


@pytest.mark.parametrize("text", ["", "248", "-1,8192", "8193,8192", "1,2,3", "0x10,32", "1, 2"])
def test_a_use_of_the_stack_that_makes_no_sense_is_refused(text):
    with pytest.raises(ProtocolError):
        protocol.parse_stack([f"m-stack-[{text}]"])


def test_the_printed_buffer_is_put_together_again():
    assert protocol.parse_buffer(["m-buffer-00-ff", "m-buffer-7f"]) == b"\x00\xff\x7f"


def test_a_trace_is_bytes_by_layer():
    lines = ["m-trace-0-[0001]", "m-trace-12-[]", "m-raw-[00]"]
    assert protocol.parse_trace(lines) == {0: b"\x00\x01", 12: b""}


@given(text=st.text())
def test_whatever_a_device_sends_is_shown_in_printable_ascii(text):
    shown = protocol.escaped(text)
    assert shown.isascii()
    assert shown == "" or shown.isprintable()


@given(answer=st.binary(max_size=200))
def test_no_answer_does_more_than_raise_an_error_of_ours(answer):
    try:
        lines = protocol.answer_lines(answer)
        protocol.parse_trace(lines)
        protocol.parse_buffer(lines)
        protocol.parse_raw(lines)
        protocol.parse_stack(lines)
    except (DeviceRefused, DeviceFault, ProtocolError):
        pass

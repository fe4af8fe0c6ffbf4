"""The grammar of the serial line: MLPerf Tiny's commands, and load, classify and raw of our own.

A command is ASCII and ends with ``%``; every answer is lines ended by CR LF, the last of them
``m-ready``. The functions here are pure: bytes and text in, bytes and values out.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from entrain.deploy.errors import DeviceFault, DeviceRefused, ProtocolError

TERMINATOR = "%"
READY = "m-ready"
END_OF_ANSWER = b"m-ready\r\n"
FAULT_REPORT = re.compile(rb"e-\[fault [^\]\r\n]*\]\r\n")  # after it the device is silent
COMMAND_CAPACITY = 80
HEX_BYTES_PER_LINE = 31


@dataclass(frozen=True)
class Profile:
    """What the firmware says of itself: firmware and model in words, and the task's short name."""

    firmware: str
    task: str


@dataclass(frozen=True)
class Timing:
    """The device's clock, in microseconds, before the first and after the last inference.

    ``cycles`` counts those of all inferences, on a device that says so: a block in an FPGA.
    """

    laps_us: tuple[int, int]
    inferences: int
    cycles: int | None = None

    @property
    def microseconds_per_inference(self) -> float:
        """Mean duration of one inference by the device's clock."""
        return (self.laps_us[1] - self.laps_us[0]) / self.inferences


@dataclass(frozen=True)
class StackUse:
    """Bytes of the device's stack: the most in use since its start, and all that are reserved."""

    used: int
    reserved: int


def encode(*words: str | int) -> bytes:
    """The bytes of a command.

    Raises:
        ProtocolError: it is not printable ASCII without ``%``, or has more than 80 characters.
    """
    text = " ".join(str(word) for word in words)
    if not text.isascii() or not text.isprintable() or TERMINATOR in text:
        raise ProtocolError(f"not a command: {escaped(text)}")
    if len(text) > COMMAND_CAPACITY:
        raise ProtocolError(f"a command of {len(text)} characters; the device takes 80")
    return (text + TERMINATOR).encode("ascii")


def encode_block(payload: bytes, *command: str | int) -> bytes:
    """A command that carries bytes: ``command N%``, the N bytes, their CRC-32 low byte first."""
    return encode(*command, len(payload)) + payload + zlib.crc32(payload).to_bytes(4, "little")


def hex_lines(payload: bytes) -> list[bytes]:
    """The ``db HEX`` commands that carry ``payload``."""
    starts = range(0, len(payload), HEX_BYTES_PER_LINE)
    return [encode("db", payload[at : at + HEX_BYTES_PER_LINE].hex()) for at in starts]


def answer_lines(answer: bytes) -> list[str]:
    """The lines of a complete answer without the closing ``m-ready``.

    Raises:
        DeviceFault: the firmware reported a fault.
        DeviceRefused: a line is an error, ``e-[...]``.
    """
    text = answer.decode("latin-1")
    lines = [line.strip("\r") for line in text.split("\n") if line.strip("\r")]
    for line in lines:
        error = re.fullmatch(r"e-\[(.*)\]", line)
        if error and error[1].startswith("fault "):
            raise DeviceFault(
                f"the firmware stopped: {escaped(error[1])}",
                remedy="look up pc in firmware-<board>.elf (arm-none-eabi-addr2line -f -e)",
            )
        if error:
            raise DeviceRefused(f"the device answered: {escaped(error[1])}")
    return lines[:-1] if lines and lines[-1] == READY else lines


def field(lines: list[str], name: str) -> str:
    """The text within ``name[...]``, of the one line that has this form.

    Raises:
        ProtocolError: there is no such line.
    """
    for line in lines:
        if line.startswith(f"{name}[") and line.endswith("]"):
            return line[len(name) + 1 : -1]
    raise ProtocolError(f"expected {name}[...], but the device sent {_shown(lines)}")


def parse_profile(lines: list[str]) -> Profile:
    """The answer to ``profile``."""
    return Profile(firmware=field(lines, "m-profile-"), task=field(lines, "m-model-"))


def parse_laps(lines: list[str]) -> list[int]:
    """Every ``m-lap-us-N``, in order."""
    laps = [re.fullmatch(r"m-lap-us-([0-9]{1,20})", line) for line in lines]
    return [int(lap[1]) for lap in laps if lap]


def parse_timing(lines: list[str], inferences: int) -> Timing:
    """The answer to ``infer``.

    Raises:
        ProtocolError: it does not hold two times in order.
    """
    laps = parse_laps(lines)
    if len(laps) != 2 or laps[0] > laps[1]:
        raise ProtocolError(f"expected two times in order, but the device sent {_shown(lines)}")
    # cycles of a microsecond, whole microseconds, and cycles beyond them
    counts = [re.fullmatch(r"m-cycles-([0-9]{1,4})x([0-9]{1,20})\+([0-9]{1,4})", x) for x in lines]
    cycles = next((int(c[1]) * int(c[2]) + int(c[3]) for c in counts if c), None)
    return Timing(laps_us=(laps[0], laps[1]), inferences=inferences, cycles=cycles)


def parse_scores(lines: list[str]) -> list[float]:
    """The answer to ``results``: scores that are not negative.

    Raises:
        ProtocolError: it is anything else.
    """
    text = field(lines, "m-results-")
    if not re.fullmatch(r"[0-9]+\.[0-9]+(,[0-9]+\.[0-9]+)*", text):
        raise ProtocolError(f"not scores: {escaped(text)}")
    return [float(score) for score in text.split(",")]


def parse_raw(lines: list[str]) -> bytes:
    """The answer to ``raw``: the integer outputs, one byte each.

    Raises:
        ProtocolError: it is anything else.
    """
    return _hex_bytes(field(lines, "m-raw-"))


def parse_stack(lines: list[str]) -> StackUse:
    """The answer to ``stack``.

    Raises:
        ProtocolError: it is anything else, or more is in use than there is.
    """
    text = field(lines, "m-stack-")
    numbers = re.fullmatch(r"([0-9]{1,10}),([0-9]{1,10})", text)
    if not numbers or int(numbers[1]) > int(numbers[2]):
        raise ProtocolError(f"not the use of a stack: {escaped(text[:80])}")
    return StackUse(used=int(numbers[1]), reserved=int(numbers[2]))


def parse_buffer(lines: list[str]) -> bytes:
    """The answer to ``db print``.

    Raises:
        ProtocolError: it is anything else.
    """
    prefix = "m-buffer-"
    parts = [line[len(prefix) :] for line in lines if line.startswith(prefix)]
    return b"".join(_hex_bytes(part.replace("-", "")) for part in parts)


def parse_trace(lines: list[str]) -> dict[int, bytes]:
    """Of a trace build: the bytes of every layer of one inference, by the layer's number.

    Raises:
        ProtocolError: a line is damaged.
    """
    layers = [re.fullmatch(r"m-trace-([0-9]{1,10})-\[(.*)\]", line) for line in lines]
    return {int(layer[1]): _hex_bytes(layer[2]) for layer in layers if layer}


def escaped(text: str) -> str:
    r"""``text`` with everything but printable ASCII as \xNN, safe for a terminal or a page."""
    return "".join(
        character if " " <= character <= "~" and character != "\\" else _escape(character)
        for character in text
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii") if character != "\\" else "\\\\"


def _hex_bytes(text: str) -> bytes:
    if not re.fullmatch(r"(?:[0-9a-f]{2})*", text):
        raise ProtocolError(f"not hexadecimal bytes: {escaped(text[:80])}")
    return bytes.fromhex(text)


def _shown(lines: list[str]) -> str:
    return escaped(" | ".join(lines)[:200]) or "nothing"

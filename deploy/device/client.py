"""The serial line's commands as methods."""

from __future__ import annotations

import time
from typing import Self

from entrain.deploy.device import hearing, protocol
from entrain.deploy.device.counting import InstructionCounter, InstructionCounts
from entrain.deploy.device.hearing import HopOnDevice, SpotterOnDevice
from entrain.deploy.device.protocol import Profile, StackUse, Timing
from entrain.deploy.device.transport import Transport
from entrain.deploy.errors import (
    DeviceMissing,
    DeviceRefused,
    DeviceTimeout,
    EntrainError,
    ProtocolError,
    UsageError,
)

PATIENCE = 10.0  # seconds without a byte, for what takes the device no time
INFERENCE_PATIENCE = 60.0  # seconds without a byte, for one inference
GREETING_ATTEMPTS = 4
GREETING_TIMEOUT = 3.0  # longer than the firmware waits for the rest of a broken-off block
QUIET = 0.3
SENT_AGAIN = 3  # times that a damaged block of sound is sent again
_DAMAGED = ("wrong CRC-32", "bytes were lost", "stopped short")
MAX_ANSWER_BYTES = 16 * 2**20


class Client:
    """A device that answers; a context manager that gives the line back.

    Every method raises DeviceLost (or its kinds DeviceTimeout and DeviceFault) if the device goes
    away, DeviceRefused if it answers with an error, and ProtocolError if it makes no sense. All of
    them name the device.

    Args:
        transport: the line; the client closes it.
        counter: reads the instruction counts, if the line leads to an emulator.

    Raises:
        DeviceMissing: nothing on the line answers as Entrain's firmware does.
    """

    def __init__(self, transport: Transport, counter: InstructionCounter | None = None) -> None:
        self._transport = transport
        self._counter = counter
        self._received = b""
        try:
            self._greet()
        except BaseException:
            transport.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the line back. Closing twice is harmless."""
        self._transport.close()

    def name(self) -> str:
        """The board's name, as the firmware knows it."""
        return protocol.field(self._ask(protocol.encode("name")), "m-name-dut-")

    def profile(self) -> Profile:
        """Firmware, model and task."""
        return protocol.parse_profile(self._ask(protocol.encode("profile")))

    def timestamp(self) -> int:
        """The device's clock in microseconds since its start; pulses the timestamp pin."""
        laps = protocol.parse_laps(self._ask(protocol.encode("timestamp")))
        if len(laps) != 1:
            raise ProtocolError("expected one time", where=self._transport.name)
        return laps[0]

    def help(self) -> list[str]:
        """The commands that the firmware offers."""
        return [line for line in self._ask(protocol.encode("help")) if line.startswith("m-help-")]

    def load(self, values: bytes) -> None:
        """Make ``values`` (int8, one byte each) the model's input; checked by CRC-32."""
        self._expect(self._ask(protocol.encode_block(values, "load")), "m-load-done")

    def load_hex(self, values: bytes) -> None:
        """As ``load``, by MLPerf Tiny's hexadecimal lines."""
        self._ask(protocol.encode("db", "load", len(values)))
        lines: list[str] = []
        for command in protocol.hex_lines(values):
            lines = self._ask(command)
        self._expect(lines, "m-load-done")

    def buffer(self) -> bytes:
        """The model's input as it lies on the device."""
        return protocol.parse_buffer(self._ask(protocol.encode("db", "print")))

    def infer(self, n: int = 1, warmups: int = 0) -> Timing:
        """Infer ``warmups`` times untimed, then ``n`` times between two readings of the clock."""
        patience = INFERENCE_PATIENCE * max(1, n, warmups)
        lines = self._ask(protocol.encode("infer", n, warmups), patience)
        return protocol.parse_timing(lines, n)

    def results(self) -> list[float]:
        """The last inference's scores: not negative, their sum is 1."""
        return protocol.parse_scores(self._ask(protocol.encode("results")))

    def raw(self) -> bytes:
        """The last inference's outputs, int8, one byte each."""
        return protocol.parse_raw(self._ask(protocol.encode("raw")))

    def classify(self, values: bytes) -> bytes:
        """``load``, one inference and ``raw`` in a single exchange: the quick way."""
        command = protocol.encode_block(values, "classify")
        return protocol.parse_raw(self._ask(command, INFERENCE_PATIENCE))

    def trace(self, values: bytes) -> dict[int, bytes]:
        """Of a trace build: what every layer computes of ``values``, by the layer's number.

        Raises:
            UsageError: the firmware is no trace build.
        """
        command = protocol.encode_block(values, "classify")
        layers = protocol.parse_trace(self._ask(command, INFERENCE_PATIENCE))
        if not layers:
            raise UsageError(
                "the firmware sends no layers",
                where=self._transport.name,
                remedy="build it with trace=True",
            )
        return layers

    def stack(self) -> StackUse:
        """The most stack that the device has used since its start, and how much there is.

        It is painted before the application starts; what no longer shows the paint was used. A
        board that does not do so refuses.
        """
        return protocol.parse_stack(self._ask(protocol.encode("stack")))

    def listen(self) -> SpotterOnDevice:
        """Of firmware that listens: begin a stream, of which nothing was heard yet."""
        return hearing.parse_spotter(self._ask(hearing.listen()))

    def hear(self, coding: str, number: int, block: bytes) -> list[HopOnDevice]:
        """Bring the next block of the stream; the hops that end with it.

        The device answers when it has heard the block, so none is sent before its time. A block
        that arrived damaged is sent again.

        Args:
            coding: `hearing.PCM` or `hearing.ADPCM`.
            number: of the block, from 0.
            block: whole frames, at most a hop.
        """
        command = hearing.hear(coding, number, block)
        for _ in range(SENT_AGAIN):
            try:
                return hearing.parse_hops(self._ask(command, INFERENCE_PATIENCE))
            except DeviceRefused as error:
                if not any(kind in error.what for kind in _DAMAGED):
                    raise
        return hearing.parse_hops(self._ask(command, INFERENCE_PATIENCE))

    @property
    def counts_instructions(self) -> bool:
        """Whether the device is an emulator, which counts what it executes."""
        return self._counter is not None

    def counts(self) -> InstructionCounts:
        """Instructions of the inference that ended last, exact.

        Raises:
            UsageError: the device is no emulator.
        """
        if self._counter is None:
            raise UsageError(
                "only the emulator counts instructions",
                where=self._transport.name,
                remedy="use --device qemu:BOARD",
            )
        return self._counter.latest()

    def _ask(self, command: bytes, patience: float = PATIENCE) -> list[str]:
        try:
            self._transport.write(command)
            return protocol.answer_lines(self._answer(patience))
        except EntrainError as error:
            error.where = error.where or self._transport.name
            raise

    def _answer(self, patience: float) -> bytes:
        """The next answer, to its end; a fault report ends one too."""
        answer = bytearray(self._received)
        while (end := _end_of_answer(answer)) is None:
            data = self._transport.read(patience)
            if not data:
                raise DeviceTimeout(
                    f"the device did not answer within {patience:g} s",
                    where=self._transport.name,
                    remedy="reset the board, or flash it again",
                )
            answer += data
            if len(answer) > MAX_ANSWER_BYTES:
                raise ProtocolError("the device's answer does not end")
        self._received = bytes(answer[end:])
        return bytes(answer[:end])

    def _greet(self) -> None:
        """Find the device ready, whatever it was doing: booting, or in a broken-off block."""
        for attempt in range(GREETING_ATTEMPTS):
            self._transport.write(protocol.encode("name"))
            if self._hears_name():
                if attempt > 0:  # earlier questions may still be answered
                    self._drain()
                return
        raise DeviceMissing(
            "nothing there answers as Entrain's firmware does",
            where=self._transport.name,
            remedy="flash the board first (entrain flash), and check the port and the baud rate",
        )

    def _hears_name(self) -> bool:
        deadline = time.monotonic() + GREETING_TIMEOUT
        while (left := deadline - time.monotonic()) > 0:
            try:
                if b"m-name-dut-[" in self._answer(left):
                    return True
            except DeviceTimeout:
                return False
        return False

    def _drain(self) -> None:
        self._received = b""
        while self._transport.read(QUIET):
            pass

    def _expect(self, lines: list[str], wanted: str) -> None:
        if wanted not in lines:
            raise ProtocolError(
                f"expected {wanted}, but the device sent "
                f"{protocol.escaped(' | '.join(lines)[:200]) or 'nothing'}",
                where=self._transport.name,
            )


def _end_of_answer(received: bytearray) -> int | None:
    """How many bytes the first complete answer, or fault report, takes; None if there is none."""
    ready = received.find(protocol.END_OF_ANSWER)
    if ready >= 0:
        return ready + len(protocol.END_OF_ANSWER)
    fault = protocol.FAULT_REPORT.search(received)
    return fault.end() if fault else None

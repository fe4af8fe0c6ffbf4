"""What the bridge answers: the firmware's texts, in a memory that the hardware prints from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from entrain.fpga.bridge.shape import TASK

# What the texts hold besides characters; see rtl/entrain_printer.v.
END, STOP, IN, OUT, WARMUPS, INFERENCES, MICROSECONDS, TICKS, RUN_WARMUPS, RUN, RUN_ONCE = map(
    chr, range(0x80, 0x8B)
)

USAGES = (
    "name",
    "profile",
    "db load N | db HEX | db print",
    "infer [N [W]]",
    "results",
    "load N, then N bytes and their CRC-32, low byte first",
    "classify N, then as load; infers once and answers as raw",
    "raw",
    "stack",
    "help",
)
READY, FIRST_USAGE = 1, 32
TABLE = 64  # places, of one byte each: where the texts begin
ALIGNED = 8
RAW_BYTES = f"m-raw-[{OUT}]"
RESULTS = f"m-results-[{OUT}]"


def texts(name: str, announced: str, input_bytes: int, clock_mhz: int) -> list[str]:
    """The texts in the order in which entrain_bridge.v numbers them.

    Behind them the two of ``db print``: what stands between two lines, and between two bytes.

    Args:
        name: of the board.
        announced: what ``profile`` answers of the block.
        input_bytes: of an inference.
        clock_mhz: whole megahertz of the clock.
    """
    infer = [
        f"m-warmup-start-{WARMUPS}",
        f"{RUN_WARMUPS}m-warmup-done",
        f"m-infer-start-{INFERENCES}",
        f"{RUN}m-lap-us-0",  # the clock starts with the first inference
        f"m-lap-us-{MICROSECONDS}",
        f"m-cycles-{clock_mhz}x{MICROSECONDS}+{TICKS}",
        "m-infer-done",
        RESULTS,
    ]
    errors = (
        "unknown command",
        "command longer than 80 characters",
        "unprintable character in a command",
        "received bytes were lost",
        "usage: db load N, db HEX or db print",
        "usage: infer [N [W]], N from 1 and W from 0 to 1000000",
        f"the model takes {input_bytes} bytes",
        "no load under way: db load N first",
        "odd number of hexadecimal digits",
        "not a hexadecimal digit",
        "more bytes than the model takes",
        "no input loaded",
        "nothing inferred yet",
        "the length must be a number up to 16777216",
        "wrong CRC-32",
        "the block stopped short",
    )
    every = [
        _lines("m-timestamp-mode-performance", "m-init-done"),
        f"m-ready\r\n{STOP}",
        _lines(f"m-name-dut-[{name}]"),
        _lines(f"m-profile-[{announced}]", f"m-model-[{TASK}]"),
        _lines(f"m-[Expecting {input_bytes} bytes]"),
        _lines("m-load-done"),
        _lines(*infer),
        _lines(RESULTS),
        _lines(RAW_BYTES),
        _lines(f"{RUN_ONCE}{RAW_BYTES}"),
        _lines(f"m-buffer-{IN}"),
        _lines("e-[this board does not watch its stack]"),
        _lines(*(f"m-help-[{usage}]" for usage in USAGES)),
        *(_lines(f"e-[{error}]") for error in errors),
    ]
    every += [""] * (FIRST_USAGE - len(every))
    every += [_lines(f"e-[usage: {usage}]") for usage in USAGES]
    return [*every, f"\r\n{_lines(f'm-buffer-{IN}')}", _lines(f"-{IN}")]


def _lines(*lines: str) -> str:
    return "".join(f"{line}\r\n" for line in lines) + END


def places_of(texts: Sequence[str]) -> list[int]:
    """Where each text begins: behind the table, at a multiple of eight."""
    lengths = (-(-len(text) // ALIGNED) * ALIGNED for text in texts)
    return list(accumulate(lengths, initial=TABLE))[:-1]


def memory_of(texts: Sequence[str]) -> bytes:
    """The table and the texts."""
    places = places_of(texts)
    memory = bytearray(places[-1] + len(texts[-1]))
    memory[: len(places)] = bytes(place // ALIGNED for place in places)
    for place, text in zip(places, texts, strict=True):
        memory[place : place + len(text)] = text.encode("latin-1")
    return bytes(memory)

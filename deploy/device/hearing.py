"""What firmware that listens answers: the grammar of ``listen`` and ``hear``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from entrain.deploy.device.protocol import encode, encode_block, escaped, field
from entrain.deploy.errors import ProtocolError

PCM, ADPCM = "hear", "hear-adpcm"  # the commands that bring sound


@dataclass(frozen=True)
class SpotterOnDevice:
    """What the device says of its spotter.

    Attributes:
        frame_samples: samples are taken so many at a time.
        hop_frames: from one inference to the next.
        words: that it spots, in order.
    """

    frame_samples: int
    hop_frames: int
    words: tuple[str, ...]


@dataclass(frozen=True)
class HopOnDevice:
    """One hop as the device reports it.

    Attributes:
        at: samples heard by then.
        in_silence: nothing was loud enough, so the network did not run.
        front_end_us: microseconds of the device's clock for the hop's features.
        network_us: the same for network and decision.
        scores: of each class, in millionths.
        heard: the word and its smoothed score in millionths, if one was heard.
    """

    at: int
    in_silence: bool
    front_end_us: int
    network_us: int
    scores: tuple[int, ...]
    heard: tuple[str, int] | None


def listen() -> bytes:
    """The command that starts a stream from nothing."""
    return encode("listen")


def hear(coding: str, number: int, block: bytes) -> bytes:
    """The command that brings block ``number``, from 0, of a stream.

    Args:
        coding: PCM or ADPCM.
        number: of the block.
        block: whole frames of 16-bit samples, low byte first, or of codes, two to a byte.
    """
    return encode_block(block, coding, number)


def parse_spotter(lines: list[str]) -> SpotterOnDevice:
    """The answer to ``listen``.

    Raises:
        ProtocolError: it is anything else.
    """
    text = field(lines, "m-listening-")
    found = re.fullmatch(r"([0-9]+),([0-9]+),(.+)", text)
    if not found:
        raise ProtocolError(f"not a spotter's settings: {escaped(text[:80])}")
    return SpotterOnDevice(int(found[1]), int(found[2]), tuple(found[3].split(",")))


def parse_hops(lines: list[str]) -> list[HopOnDevice]:
    """The answer to ``hear``: the hops that ended within the block.

    Raises:
        ProtocolError: it is anything else.
    """
    hops: list[HopOnDevice] = []
    for line in lines:
        hop = re.fullmatch(r"m-hop-\[([0-9]+),([01]),([0-9]+),([0-9]+)((?:,[0-9]+)+)\]", line)
        word = re.fullmatch(r"m-heard-\[([^,\]]+),([0-9]+),([0-9]+)\]", line)
        if hop:
            scores = tuple(int(score) for score in hop[5][1:].split(","))
            hops.append(
                HopOnDevice(int(hop[1]), hop[2] == "1", int(hop[3]), int(hop[4]), scores, None)
            )
        elif word and hops and hops[-1].at == int(word[3]):
            hops[-1] = replace(hops[-1], heard=(word[1], int(word[2])))
        else:
            raise ProtocolError(f"not what was heard: {escaped(line[:80])}")
    return hops

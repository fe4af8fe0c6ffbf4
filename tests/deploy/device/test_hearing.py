"""The grammar of ``listen`` and ``hear``."""

from __future__ import annotations

import zlib

import pytest

from entrain.deploy.device import hearing
from entrain.deploy.errors import ProtocolError


def test_a_block_carries_its_number_its_length_and_its_checksum():
    assert hearing.hear(hearing.ADPCM, 7, b"abcd") == b"hear-adpcm 7 4%abcd" + zlib.crc32(
        b"abcd"
    ).to_bytes(4, "little")


def test_a_device_says_what_it_spots():
    found = hearing.parse_spotter(["m-listening-[320,5,go,left]"])
    assert (found.frame_samples, found.hop_frames, found.words) == (320, 5, ("go", "left"))


def test_hops_and_the_words_heard_in_them():
    first, second = hearing.parse_hops(
        [
            "m-hop-[1600,1,900,0,0,0,0]",
            "m-hop-[3200,0,910,8000,700000,200000,100000]",
            "m-heard-[go,750000,3200]",
        ]
    )
    assert (first.at, first.in_silence, first.heard) == (1_600, True, None)
    assert (second.front_end_us, second.network_us) == (910, 8_000)
    assert second.scores == (700_000, 200_000, 100_000)
    assert second.heard == ("go", 750_000)


@pytest.mark.parametrize(
    "lines",
    [
        ["m-hop-[1600,2,900,0,0]"],
        ["m-hop-[1600,0,900,0]"],
        ["m-heard-[go,1,1600]"],
        ["m-hop-[1600,0,9,9,1]", "m-heard-[go,1,3200]"],
        ["something else"],
    ],
)
def test_anything_else_is_refused(lines):
    with pytest.raises(ProtocolError, match="not what was heard"):
        hearing.parse_hops(lines)


@pytest.mark.parametrize("text", ["320,5", "a,5,go", "320"])
def test_settings_that_make_no_sense_are_refused(text):
    with pytest.raises(ProtocolError):
        hearing.parse_spotter([f"m-listening-[{text}]"])

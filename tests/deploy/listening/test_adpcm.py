"""ADPCM against libsndfile's decoder, and how well sound survives it."""

from __future__ import annotations

import io
import struct

import numpy as np
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from entrain.deploy.listening.adpcm import AdpcmStream


def decoded_by_libsndfile(codes):
    """The codes as the one block of a WAV file, which begins with a sample of its own: 0."""
    block = struct.pack("<hBB", 0, 0, 0) + codes
    samples = 1 + 2 * len(codes)
    form = struct.pack("<HHIIHHHH", 0x11, 1, 16_000, 8_000, len(block), 4, 2, samples)
    chunks = [(b"fmt ", form), (b"fact", struct.pack("<I", samples)), (b"data", block)]
    body = b"".join(name + struct.pack("<I", len(data)) + data for name, data in chunks)
    riff = b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body
    found, _ = soundfile.read(io.BytesIO(riff), dtype="int16")
    return found[1:]


@settings(max_examples=30, deadline=None)
@given(st.binary(min_size=4, max_size=2_000).filter(lambda codes: len(codes) % 4 == 0))
def test_any_codes_are_decoded_as_libsndfile_does(codes):
    np.testing.assert_array_equal(AdpcmStream().decode(codes), decoded_by_libsndfile(codes))


def test_sound_survives():
    times = np.arange(16_000) / 16_000
    sound = np.rint(9_000 * np.sin(2 * np.pi * 440 * times) * np.hanning(16_000)).astype(np.int16)
    heard = AdpcmStream().decode(AdpcmStream().encode(sound))
    noise = (heard.astype(float) - sound)[1_000:]
    assert 10 * np.log10(np.square(sound.astype(float)).mean() / np.square(noise).mean()) > 25


def test_full_scale_of_alternating_signs_neither_overflows_nor_gets_stuck():
    loud = np.where(np.arange(4_000) // 40 % 2, 32_767, -32_768).astype(np.int16)
    heard = AdpcmStream().decode(AdpcmStream().encode(loud))
    assert np.sign(heard[200:][19::40]).tolist() == np.sign(loud[200:][19::40]).tolist()


def test_a_stream_in_pieces_is_coded_as_the_whole():
    sound = np.random.default_rng(0).integers(-5_000, 5_000, 6_400).astype(np.int16)
    whole, pieces = AdpcmStream(), AdpcmStream()
    expected = whole.encode(sound)
    assert b"".join(pieces.encode(part) for part in sound.reshape(-1, 320)) == expected

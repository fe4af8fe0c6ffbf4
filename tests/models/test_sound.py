"""Sound files as they come: the same tone out of all of them, or what is wrong."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from entrain.deploy.errors import DataError, EntrainError
from entrain.models.data.sound import open_sound

HERTZ, LEVEL, SECONDS = 1_000, 0.5, 1.5


def tone(rate, channels=1):
    """A tone of the same phase in every channel, [frames, channels]."""
    times = np.arange(round(SECONDS * rate)) / rate
    return np.repeat(LEVEL * np.sin(2 * np.pi * HERTZ * times)[:, None], channels, axis=1)


def is_the_tone(samples, tolerance=0.01, padding=8):
    """Whether 16 kHz samples are the tone, but for the beginning and the end."""
    assert samples.dtype == np.int16
    expected = 32_768 * LEVEL * np.sin(2 * np.pi * HERTZ * np.arange(len(samples)) / 16_000)
    length = round(16_000 * SECONDS)
    inside = slice(400, length - 400)
    error = np.sqrt(np.mean((samples[inside] - expected[inside]) ** 2))
    return -8 <= len(samples) - length <= padding and error < tolerance * 32_768


KINDS = [
    *(("WAV", f"PCM_{bits}") for bits in ("U8", "16", "24", "32")),
    *(("WAV", kind) for kind in ("FLOAT", "DOUBLE", "ULAW", "ALAW", "IMA_ADPCM", "MS_ADPCM")),
    *(("WAVEX", f"PCM_{bits}") for bits in ("U8", "16", "24", "32")),
    ("WAVEX", "FLOAT"),
    ("RF64", "PCM_16"),
    *(("FLAC", f"PCM_{bits}") for bits in ("S8", "16", "24")),
    ("OGG", "VORBIS"),
    ("AIFF", "PCM_24"),
]


@pytest.mark.parametrize(("container", "encoding"), KINDS)
@pytest.mark.parametrize(("rate", "channels"), [(16_000, 1), (48_000, 2)])
def test_every_encoding_holds_the_tone(container, encoding, rate, channels, tmp_path):
    path = tmp_path / "tone"
    soundfile.write(path, tone(rate, channels), rate, format=container, subtype=encoding)
    coarse = encoding in {"VORBIS", "IMA_ADPCM", "MS_ADPCM", "ULAW", "ALAW"}
    padding = 500 if "ADPCM" in encoding else 8  # comes in blocks
    assert is_the_tone(open_sound(path).samples(), 0.03 if coarse else 0.01, padding)


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 32_000, 44_100, 96_000, 15_999])
@pytest.mark.parametrize("channels", [1, 2, 6])
def test_every_rate_and_number_of_channels_holds_the_tone_and_is_announced(
    rate, channels, tmp_path
):
    path = tmp_path / "tone.wav"
    soundfile.write(path, tone(rate, channels), rate)
    sound = open_sound(path)
    assert sound.seconds == pytest.approx(SECONDS, abs=1e-3)
    assert f"resampled from {rate:,} to 16,000 Hz" in sound.converted
    assert (f"{channels} channels mixed into one" in sound.converted) == (channels > 1)
    assert is_the_tone(sound.samples())


def test_sixteen_kilohertz_mono_comes_out_as_it_went_in(tmp_path):
    path = tmp_path / "exact.wav"
    samples = np.random.default_rng(0).integers(-32_768, 32_768, 40_000).astype(np.int16)
    soundfile.write(path, samples, 16_000)
    sound = open_sound(path)
    assert sound.converted == ""
    blocks = list(sound.blocks())
    assert [len(block) for block in blocks] == [16_000, 16_000, 8_000]
    assert np.array_equal(np.concatenate(blocks), samples)


def test_what_is_a_little_too_loud_is_cut_not_wrapped(tmp_path):
    path = tmp_path / "loud.wav"
    soundfile.write(path, np.array([1.5, -1.5, 0.25]), 16_000, subtype="FLOAT")
    assert open_sound(path).samples().tolist() == [32_767, -32_768, 8_192]


def wav(tmp_path, **header):
    """A WAV file of 16-bit mono whose header says something else here and there."""
    fields = {"encoding": 1, "channels": 1, "rate": 16_000, "frame": 2, "bits": 16}
    fields |= {name: value for name, value in header.items() if name in fields}
    data = header.get("data", b"\1\0" * 1_000)
    said = header.get("data_size", len(data))
    form = struct.pack(
        "<HHIIHH",
        fields["encoding"],
        fields["channels"],
        fields["rate"],
        fields["rate"] * fields["frame"],
        fields["frame"],
        fields["bits"],
    )
    body = b"WAVE" + b"fmt " + struct.pack("<I", len(form)) + form
    body += b"data" + struct.pack("<I", said) + data
    path = tmp_path / "header.wav"
    path.write_bytes(b"RIFF" + struct.pack("<I", header.get("size", len(body))) + body)
    return path


def test_the_undamaged_file_is_read(tmp_path):
    assert len(open_sound(wav(tmp_path)).samples()) == 1_000


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"frame": 3}, "1 channels of 16 bits are 2 bytes, not 3"),
        ({"channels": 2}, "2 channels of 16 bits are 4 bytes, not 2"),
        ({"bits": 24}, "1 channels of 24 bits are 3 bytes, not 2"),
        ({"channels": 0}, "0 channels at 16000 Hz"),
        ({"rate": 0}, "1 channels at 0 Hz"),
        ({"bits": 0}, "samples of 0 bits"),
        ({"encoding": 3}, "samples of 16 bits, encoding 3"),
        ({"data_size": 4_000}, "cut short: 4,000 bytes of sound announced, 2,000 there"),
        ({"size": 9_000}, "cut short: 9,008 bytes announced, 2,044 there"),
        ({"data": b"\1\0\1", "size": 0}, "ends within a frame: 3 bytes, 2 a frame"),
    ],
)
def test_a_header_that_is_wrong_is_refused_with_what_is_wrong(header, said, tmp_path):
    path = wav(tmp_path, **header)
    with pytest.raises(DataError) as error:
        open_sound(path)
    assert said in error.value.what
    assert error.value.where == str(path)


@pytest.mark.parametrize("untold", [0, 0xFFFFFFFF])
def test_a_recorder_that_left_its_sizes_open_is_understood(untold, tmp_path):
    path = wav(tmp_path, size=untold, data_size=0xFFFFFFFF)
    assert len(open_sound(path).samples()) == 1_000


def test_an_extensible_header_of_an_unknown_encoding_is_refused(tmp_path):
    path = tmp_path / "extensible.wav"
    soundfile.write(path, tone(16_000), 16_000, format="WAVEX", subtype="PCM_16")
    content = bytearray(path.read_bytes())
    content[content.index(b"fmt ") + 8 + 30] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match="extensible header names no known encoding"):
        open_sound(path)


@pytest.mark.parametrize("chunk", [b"fmt ", b"data"])
def test_a_chunk_that_is_missing_is_named(chunk, tmp_path):
    path = wav(tmp_path)
    path.write_bytes(path.read_bytes().replace(chunk, b"junk"))
    said = "before the header says" if chunk == b"fmt " else "there is no data chunk"
    with pytest.raises(DataError, match=said):
        open_sound(path)


def test_riff_that_is_no_sound_is_refused(tmp_path):
    path = tmp_path / "film.avi"
    path.write_bytes(b"RIFF\4\0\0\0AVI ")
    with pytest.raises(DataError, match="another kind of file than sound"):
        open_sound(path)


@pytest.mark.parametrize("container", ["WAV", "FLAC", "OGG"])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_file_that_is_cut_short_is_refused(container, share, tmp_path):
    path = tmp_path / "whole"
    soundfile.write(path, tone(16_000), 16_000, format=container)
    content = path.read_bytes()
    path.write_bytes(content[: round(share * len(content))])
    with pytest.raises(DataError, match="cut short"):
        open_sound(path).samples()


@pytest.mark.parametrize("content", [b"", b"RI", b"RIFF", b"not a sound", bytes(100)])
def test_what_is_no_sound_is_refused(content, tmp_path):
    path = tmp_path / "nothing.wav"
    path.write_bytes(content)
    with pytest.raises(DataError):
        open_sound(path)


def test_a_file_without_sound_is_refused(tmp_path):
    path = tmp_path / "empty.wav"
    soundfile.write(path, np.zeros(0), 16_000)
    with pytest.raises(DataError, match="empty"):
        open_sound(path)


@pytest.mark.parametrize("name", ["missing.wav", "."])
def test_a_path_that_is_no_file_is_refused(name, tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        open_sound(tmp_path / name)


@pytest.mark.parametrize(
    ("samples", "said"),
    [([0.0, np.nan], "not finite"), ([0.0, np.inf], "not finite"), ([0.0, 30_000.0], "30,000")],
)
def test_numbers_that_are_no_sound_are_refused(samples, said, tmp_path):
    path = tmp_path / "numbers.wav"
    soundfile.write(path, np.array(samples), 16_000, subtype="FLOAT")
    with pytest.raises(DataError, match=said):
        open_sound(path).samples()


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 43), st.integers(0, 255), st.booleans())
def test_no_damage_to_a_header_does_worse_than_a_refusal(tmp_path, place, value, extensible):
    path = tmp_path / "damaged.wav"
    kind = "WAVEX" if extensible else "WAV"
    soundfile.write(path, tone(16_000)[:800], 16_000, format=kind, subtype="PCM_16")
    content = bytearray(path.read_bytes())
    content[place] = value
    path.write_bytes(content)
    try:
        samples = open_sound(path).samples()
    except EntrainError:
        return
    assert samples.dtype == np.int16

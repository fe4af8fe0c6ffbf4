"""The front end in C, on this machine, against the formulas; and CMSIS-DSP's sources."""

from __future__ import annotations

import hashlib
import tarfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_log_mel import plain_log_mel

from entrain.deploy.errors import ToolError, UsageError
from entrain.models.features import FLOOR
from entrain.models.front_end import cmsis
from entrain.models.front_end.library import STEP, log_mel_steps
from entrain.models.front_end.tables import AUDIO, filters, header, source

SECONDS = np.arange(16_000) / 16_000


def worst(samples):
    """How far any value of one clip is from the formula in float64."""
    return np.abs(log_mel_steps(samples[None])[0] * STEP - plain_log_mel(samples / 32_768)).max()


@settings(max_examples=20, deadline=None)
@given(st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_noise_of_any_loudness_is_within_2_to_the_minus_10(loudness, seed):
    noise = np.random.default_rng(seed).uniform(-1, 1, 16_000)
    assert worst((loudness * 32_767 * noise).astype(np.int16)) < 2**-10


@settings(max_examples=20, deadline=None)
@given(st.floats(0, 1), st.floats(20, 7_900))
def test_a_tone_is_within_2_to_the_minus_5_even_at_full_scale(loudness, hertz):
    tone = np.sin(2 * np.pi * hertz * SECONDS)
    assert worst(np.rint(loudness * 32_767 * tone).astype(np.int16)) < 2**-5


@pytest.mark.parametrize("level", [-32_768, 32_767])
def test_a_constant_of_full_scale_overflows_nothing(level):
    assert worst(np.full(16_000, level, np.int16)) < 2**-5


def test_full_scale_of_alternating_signs_overflows_nothing():
    signs = np.where(np.arange(16_000) // 8 % 2, 32_767, -32_768)  # 1000 Hz
    assert worst(signs.astype(np.int16)) < 2**-5


def test_silence_is_the_floor():
    values = log_mel_steps(np.zeros((1, 16_000), np.int16))
    assert abs(values[0, 0, 0] * STEP - np.log(FLOOR)) <= STEP
    assert np.all(values == values[0, 0, 0])


def test_frames_come_every_320_samples_and_know_nothing_of_each_other():
    samples = np.random.default_rng(1).integers(-9_000, 9_000, (1, 2_000)).astype(np.int16)
    whole = log_mel_steps(samples)
    assert whole.shape == (1, 6, 40)
    for frame in range(6):
        alone = log_mel_steps(samples[:, 320 * frame : 320 * frame + 400])
        assert np.array_equal(alone[:, 0], whole[:, frame])


@pytest.mark.parametrize(
    "samples", [np.zeros((1, 399), np.int16), np.zeros(400, np.int16), np.zeros((1, 400))]
)
def test_what_is_no_clip_is_refused(samples):
    with pytest.raises(ValueError, match=r"int16 \[N, 400 or more\]"):
        log_mel_steps(samples)


def test_the_tables_in_c_are_those_of_the_formulas():
    remedy = "run python -m entrain.models.front_end.tables"
    assert (AUDIO / "log_mel_tables.c").read_text() == source(), remedy
    assert (AUDIO / "log_mel_tables.h").read_text() == header(), remedy


def test_no_filter_reaches_a_bin_whose_power_is_not_made():
    for first, weights in filters():
        assert first >= 1
        assert first + len(weights) <= 256


def test_cmsis_is_unpacked_from_an_archive_at_hand_as_far_as_it_is_needed(tmp_path, monkeypatch):
    sources = tmp_path / "cmsisdsp-1"
    for name in ("Include/dsp/none.h", "PrivateInclude/a.h", *cmsis._SOURCES, "LICENSE", "x.py"):
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_text(name)
    archive = tmp_path / "given.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(sources, "cmsisdsp-1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(cmsis.GIVEN, str(archive))
    monkeypatch.setattr(cmsis, "DIGEST", hashlib.sha256(archive.read_bytes()).hexdigest())
    found = cmsis.cmsis_dsp()
    assert all(path.is_file() for path in found.sources)
    assert (found.includes[0] / "dsp" / "none.h").read_text() == "Include/dsp/none.h"
    assert (found.folder / "LICENSE").is_file()
    assert not (found.folder / "x.py").exists()
    archive.unlink()
    assert cmsis.cmsis_dsp() == found  # kept


def test_another_archive_is_refused_with_both_digests(tmp_path, monkeypatch):
    archive = tmp_path / "other.tar.gz"
    archive.write_bytes(b"something else")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(cmsis.GIVEN, str(archive))
    with pytest.raises(ToolError, match=r"not cmsisdsp-1\.10\.3\.tar\.gz: its SHA-256 is") as error:
        cmsis.cmsis_dsp()
    assert error.value.where == str(archive)
    assert not any((tmp_path / "cache" / "entrain").iterdir())  # nothing half made


def test_an_archive_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(cmsis.GIVEN, str(tmp_path / "nowhere.tar.gz"))
    with pytest.raises(ToolError, match="cannot be read") as error:
        cmsis.cmsis_dsp()
    assert "ENTRAIN_CMSISDSP" in str(error.value)


def test_an_index_without_the_package_says_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", tmp_path.as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", cmsis.GIVEN):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ToolError, match="cannot be fetched") as error:
        cmsis.cmsis_dsp()
    assert "ENTRAIN_CMSISDSP=FILE" in str(error.value)


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "entrain").write_text("a file where the folder would be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="cannot write the folder") as error:
        cmsis.cmsis_dsp()
    assert error.value.where.startswith(str(tmp_path))

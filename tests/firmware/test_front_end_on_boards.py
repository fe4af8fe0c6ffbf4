"""The front end on the boards is that of this machine, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from programs import require_emulator
from real_data import SPEECH_COMMANDS

from entrain.deploy.boards import find_board
from entrain.deploy.build import Audio, build_firmware
from entrain.deploy.device import connect
from entrain.deploy.device.address import QemuAddress
from entrain.models.data.recordings import decode_clips
from entrain.models.front_end.cmsis import cmsis_dsp
from entrain.models.front_end.library import log_mel_steps

MODEL = Path(__file__).parent / "models" / "front_end"
BOARDS = ("mps2-an386", "mps3-an547", "mps2-an385", "mps2-an385-m0")
MOST_INSTRUCTIONS = {  # of a frame; the last core has no long multiplication
    "mps2-an386": 45_000,
    "mps3-an547": 45_000,
    "mps2-an385": 45_000,
    "mps2-an385-m0": 250_000,
}


@pytest.fixture(scope="module", params=BOARDS)
def board(request, tmp_path_factory):
    """The board's name, and a client of the board that makes features of what it is sent."""
    require_emulator()
    name = request.param
    image = tmp_path_factory.mktemp("front-end") / f"firmware-{name}.elf"
    build_firmware(find_board(name), MODEL, image, audio=Audio(cmsis_dsp().folder))
    with connect(QemuAddress(name), image) as client:
        yield name, client


def hears_as_this_machine_does(client, clips):
    for clip, expected in zip(clips, log_mel_steps(clips), strict=True):
        heard = np.frombuffer(client.classify(clip.tobytes()), "<i2").reshape(expected.shape)
        np.testing.assert_array_equal(heard, expected)


def test_silence_full_scale_dc_noise_and_tones(board):
    _, client = board
    random = np.random.default_rng(0)
    seconds = np.arange(16_000) / 16_000
    clips = [
        np.zeros(16_000),
        np.full(16_000, -32_768),
        np.full(16_000, 1_000),
        random.integers(-32_768, 32_768, 16_000),
        random.normal(0, 30, 16_000),
        32_767 * np.sin(2 * np.pi * 1_000 * seconds),
    ]
    hears_as_this_machine_does(client, np.rint(clips).astype(np.int16))


def test_a_frame_costs_half_of_what_5_per_cent_of_120_mhz_allow_but_on_m0_code(board):
    """50 frames a second: 120,000 cycles each; instructions are counted."""
    name, client = board
    client.classify(bytes(32_000))
    frames = 49
    assert client.counts().total < frames * MOST_INSTRUCTIONS[name]


@pytest.mark.long
def test_a_thousand_recordings(board):
    if not SPEECH_COMMANDS.is_dir():
        pytest.skip(f"no recordings at {SPEECH_COMMANDS}")
    _, client = board
    paths = sorted(SPEECH_COMMANDS.glob("[a-z]*/*.flac"))[::7][:1_000]
    assert len(paths) == 1_000
    hears_as_this_machine_does(client, decode_clips(paths))

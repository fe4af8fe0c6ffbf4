"""Firmware that listens: sound over the serial line, on every core, as this machine hears it."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_spotter import CLASSES, MODEL, host_spotter, settings, tones
from programs import require_emulator

from entrain.deploy.boards import find_board
from entrain.deploy.build import Audio, build_firmware
from entrain.deploy.device import connect, hearing, protocol
from entrain.deploy.device.address import QemuAddress
from entrain.deploy.errors import DeviceMissing, DeviceRefused
from entrain.deploy.listening.board import AdpcmCoder, BoardSpotter, PcmCoder
from entrain.models.front_end.cmsis import cmsis_dsp

BOARDS = ("mps2-an386", "mps3-an547", "mps2-an385", "mps2-an385-m0")
CHOSEN = settings((0.5, 0.5), (0.3, 0.3))
HOP = np.zeros(1_600, "<i2").tobytes()


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The spotter on this machine, and the folder of its settings in C."""
    folder = tmp_path_factory.mktemp("spotter")
    return host_spotter(folder, CHOSEN), folder


@pytest.fixture(scope="module", params=BOARDS)
def client(request, here, tmp_path_factory):
    require_emulator()
    image = tmp_path_factory.mktemp("listening") / f"firmware-{request.param}.elf"
    audio = Audio(cmsis_dsp().folder, here[1])
    build_firmware(find_board(request.param), MODEL, image, audio=audio)
    with connect(QemuAddress(request.param), image) as connected:
        yield connected


@pytest.mark.parametrize("coder", [PcmCoder, AdpcmCoder])
def test_a_board_hears_what_this_machine_hears(client, here, coder):
    sound = tones(5, seed=2)
    board = BoardSpotter(client, CHOSEN, CLASSES, coder)
    found = board.hear(sound)
    here[0].start()
    expected = here[0].hear(board.arrived)
    np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(found.in_silence, expected.in_silence)
    assert found.heard == expected.heard
    assert found.heard
    assert found.at[-1] == len(sound)


def test_sound_that_comes_in_odd_pieces_waits_until_a_hop_is_whole(client):
    sound = tones(2, seed=4)
    board = BoardSpotter(client, CHOSEN, CLASSES)
    hops = [len(board.hear(part)) for part in np.array_split(sound, 33)]
    assert sum(hops) == 20
    assert max(hops) == 1


def test_a_damaged_block_is_sent_again_and_heard_once(client, here, monkeypatch):
    sound = tones(1, seed=6)
    write = client._transport.write
    writes = []

    def damage(data):
        writes.append(len(data))
        write(data[:-1] + bytes([data[-1] ^ 255]) if len(writes) in (3, 4) else data)

    board = BoardSpotter(client, CHOSEN, CLASSES)
    monkeypatch.setattr(client._transport, "write", damage)
    found = board.hear(sound)
    here[0].start()
    np.testing.assert_array_equal(found.scores, here[0].hear(sound).scores)
    assert len(writes) == 10 + 2


def test_a_block_out_of_turn_is_refused_and_changes_nothing(client):
    client.listen()
    with pytest.raises(DeviceRefused, match="expected block 0"):
        client.hear(hearing.PCM, 1, HOP)
    assert [hop.at for hop in client.hear(hearing.PCM, 0, HOP)] == [1_600]


@pytest.mark.parametrize(
    ("block", "complaint"),
    [(HOP + HOP, "too long"), (HOP[:-2], "whole frames of 640 bytes")],
)
def test_a_block_of_another_size_is_refused_and_the_line_goes_on(client, block, complaint):
    client.listen()
    with pytest.raises(DeviceRefused, match=complaint):
        client.hear(hearing.PCM, 0, block)
    assert client.hear(hearing.PCM, 0, HOP)


def test_a_block_shorter_than_a_hop_is_heard(client):
    client.listen()
    assert client.hear(hearing.PCM, 0, HOP[: 3 * 640]) == []
    assert [hop.at for hop in client.hear(hearing.PCM, 1, HOP[: 2 * 640])] == [1_600]


def test_what_is_no_number_is_refused(client):
    with pytest.raises(DeviceRefused, match="must be numbers"):
        protocol.answer_lines(_asked(client, b"hear a b%"))


def _asked(client, command):
    client._transport.write(command)
    return client._answer(5)


def test_another_runs_settings_are_noticed(client):
    with pytest.raises(DeviceMissing, match="the device spots low, high every 5 frames"):
        BoardSpotter(client, settings(hop_frames=4), CLASSES)


def test_the_front_end_and_the_network_are_counted_apart(client):
    board = BoardSpotter(client, CHOSEN, CLASSES)
    board.hear(tones(1, pauses=False))
    assert board.work.hops == 10
    assert 40_000 * 50 < board.work.front_end_instructions < 300_000 * 50
    assert 0 < board.work.network_instructions < 10_000


def test_help_names_the_commands(client):
    assert any("hear-adpcm" in line for line in client.help())

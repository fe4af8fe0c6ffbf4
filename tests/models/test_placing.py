"""Where varied clips lie: words whole and in the middle, or pieces of them at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from entrain.models.data.spoken import spoken_part
from entrain.models.placing import AsInAStream, Centred

COUNT = 400


def words(first, behind):
    """Clips that are silent but for a stretch."""
    clip = np.zeros(16_000, np.int16)
    clip[first:behind] = 8_000
    return np.tile(clip, (COUNT, 1))


def placed(placing, clips, speed=1.0):
    return placing.place(clips, np.full(COUNT, speed), np.random.default_rng(0))


def test_a_centred_clip_moves_at_most_so_far_and_is_never_cut():
    found = placed(Centred(0.1), words(2_000, 6_000))
    assert -1_600 <= found.shifts.min() < -1_400
    assert 1_400 < found.shifts.max() <= 1_600
    assert not found.is_cut.any()


@pytest.mark.parametrize("speed", [0.88, 1.12])
def test_a_whole_word_lies_about_the_middle_wherever_it_was(speed):
    found = placed(AsInAStream(fragments=0.0, reach=0.1), words(1_000, 7_000), speed)
    middle = (4_000 - 8_000) / speed + 8_000 + found.shifts
    assert np.abs(middle - 8_000).max() <= 1_601
    assert np.abs(middle - 8_000).max() > 1_500


def test_a_whole_word_stays_within_its_second():
    found = placed(AsInAStream(fragments=0.0, reach=0.5), words(1_000, 14_000))
    assert (1_000 + found.shifts).min() >= 0
    assert (14_000 + found.shifts).max() <= 16_000


def test_of_a_cut_word_its_beginning_or_its_end_is_left():
    found = placed(AsInAStream(fragments=1.0, seen=(0.1, 0.5)), words(3_840, 9_600))
    assert found.is_cut.all()
    starts, ends = 3_840 + found.shifts, 9_600 + found.shifts
    enters = ends > 16_000
    seen = np.where(enters, 16_000 - starts, ends)
    assert (seen >= 575).all()
    assert (seen <= 2_881).all()
    assert 0.4 < enters.mean() < 0.6


def test_a_share_of_the_words_is_cut():
    found = placed(AsInAStream(fragments=0.25), words(3_840, 9_600))
    assert found.is_cut.mean() == pytest.approx(0.25, abs=0.07)


def test_what_fills_its_second_is_neither_moved_nor_cut():
    noise = np.random.default_rng(0).integers(-3_000, 3_000, (COUNT, 16_000)).astype(np.int16)
    assert spoken_part(noise[0]) == (0, 16_000)
    found = placed(AsInAStream(fragments=1.0), noise)
    assert not found.shifts.any()
    assert not found.is_cut.any()

"""The spotter's C on this machine: features of new frames, scores, and the rule of decisions."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_spotter import BANDS, host_spotter, settings, tones

from entrain.deploy.listening.decide import decide
from entrain.deploy.listening.hops import joined
from entrain.models.front_end import log_mel_steps

SCALE = 0.05


@pytest.fixture(scope="module")
def spotter(tmp_path_factory):
    return host_spotter(tmp_path_factory.mktemp("spotter"), settings())


def heard_whole(spotter, sound):
    spotter.start()
    return spotter.hear(sound)


def test_scores_are_the_networks_of_the_newest_features(spotter):
    sound = tones(4, pauses=False)
    hops = heard_whole(spotter, sound)
    before = np.zeros(80, np.int16)  # a stream's first frame reaches back into silence
    rows = BANDS.apply(log_mel_steps(np.concatenate([before, sound])[None])[0])[4::5]
    logits = np.stack([rows[:, 2], rows[:, 20], rows[:, 38], np.full(len(rows), -20)], axis=1)
    exponentials = np.exp(SCALE * (logits - logits.max(axis=1, keepdims=True).astype(float)))
    expected = exponentials / exponentials.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(hops.scores / 1e6, expected, atol=2e-6)


@pytest.mark.parametrize("size", [1, 319, 320, 1_000, 7_777])
def test_what_is_heard_does_not_depend_on_how_it_is_handed_over(spotter, size):
    sound = tones(3)
    whole = heard_whole(spotter, sound)
    spotter.start()
    step = max(size, 160)
    parts = joined([spotter.hear(sound[at : at + step]) for at in range(0, len(sound), step)], 4)
    np.testing.assert_array_equal(parts.scores, whole.scores)
    assert parts.heard == whole.heard


def test_hops_come_every_hundred_milliseconds(spotter):
    hops = heard_whole(spotter, tones(2))
    np.testing.assert_array_equal(hops.at, 1_600 * np.arange(1, 21))


@pytest.mark.parametrize(
    "chosen",
    [
        settings(),
        settings((0.5, 0.6), (0.0, 0.0)),
        settings((0.5, 0.5), (0.3, 2.0), smoothed_hops=1),
        settings((0.4, 0.7), (0.2, 0.2), smoothed_hops=5, hop_frames=4),
    ],
    ids=["usual", "eager", "unsmoothed", "smooth"],
)
def test_the_rule_in_python_decides_as_the_c_does(tmp_path, chosen):
    hops = heard_whole(host_spotter(tmp_path, chosen), tones(120, seed=3))
    found = decide(hops, chosen.smoothed_hops, chosen.threshold_millionths, chosen.refractory_hops)
    assert found == hops.heard
    assert {each.word for each in found} == {0, 1}


def test_in_silence_the_network_does_not_run(spotter):
    sound = np.concatenate([tones(1, pauses=False), np.zeros(32_000, np.int16)])
    hops = heard_whole(spotter, sound)
    assert not hops.in_silence[:19].any()  # the second that is heard still holds sound
    assert hops.in_silence[20:].all()
    assert not hops.scores[20:].any()


def test_the_gate_is_where_it_was_set(tmp_path):
    chosen = settings(gate_decibels=-40.0)
    tone = np.sin(2 * np.pi * 1_000 * np.arange(16_000) / 16_000) * 2**0.5 * 32_768
    levels = {}
    for decibels in (-41.0, -39.0):
        spotter = host_spotter(tmp_path, chosen)
        hops = spotter.hear(np.rint(tone * 10 ** (decibels / 20)).astype(np.int16))
        levels[decibels] = bool(hops.in_silence[-1])
    assert levels == {-41.0: True, -39.0: False}


def test_full_scale_does_not_overflow_the_gate(spotter):
    hops = heard_whole(spotter, np.full(16_000, -32_768, np.int16))
    assert not hops.in_silence.any()


def test_a_stream_that_starts_anew_remembers_nothing(spotter):
    sound = tones(3, seed=5)
    first = heard_whole(spotter, sound)
    again = heard_whole(spotter, sound)
    np.testing.assert_array_equal(first.scores, again.scores)
    assert first.heard == again.heard

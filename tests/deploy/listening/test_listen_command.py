"""``entrain tune``, ``listen`` and ``stream-test``, as they are typed."""

from __future__ import annotations

import itertools
import json
import shutil

import numpy as np
import pytest
import soundfile
from commands import entrain

from entrain.deploy.runs import Run


@pytest.fixture
def run(spotter_run, tmp_path):
    """A copy of the run, to tune or to break."""
    shutil.copytree(spotter_run.folder, tmp_path / "runs" / "beeps")
    return Run(tmp_path / "runs" / "beeps")


def of(run):
    return ("--runs-dir", run.folder.parent, "--run", run.name)


def events(ended):
    return [json.loads(line) for line in ended.out.splitlines()]


def in_turn(words):
    """Words without those that only say the last one again: the tones are hardly learned."""
    return [word for word, _ in itertools.groupby(words)]


def listen(run, path, *more):
    return entrain("listen", *of(run), "--wav", path, "--json", *more)


@pytest.fixture
def tuned(tuned_run, tmp_path):
    """A copy of the tuned run."""
    shutil.copytree(tuned_run.folder, tmp_path / "tuned" / "beeps")
    return Run(tmp_path / "tuned" / "beeps")


def test_the_emulated_board_hears_what_was_said_and_what_this_machine_hears(tuned, said):
    here = listen(tuned, said, "--device", "host")
    there = listen(tuned, said, "--device", "qemu:mps3-an547")
    assert in_turn(each["word"] for each in events(here)) == ["down", "up", "left"]
    alike = [(each["word"], each["seconds"], each["confidence"]) for each in events(here)]
    assert [(e["word"], e["seconds"], e["confidence"]) for e in events(there)] == alike
    for each in events(there):
        second = {"down": 1, "up": 3, "left": 5}[each["word"]]
        assert second + 0.3 < each["seconds"] < second + 2
        assert each["front_end_share"] > 0
        assert each["network_share"] > 0  # less where most of the sound is silence
        assert each["shares_are"] == "modelled"
        assert each["latency_ms"] > 0


def test_a_person_reads_a_line_a_word_and_a_sum(tuned, said):
    ended = entrain("listen", *of(tuned), "--wav", said, "--device", "host")
    words = [line.split()[2] for line in ended.out.splitlines()]
    assert in_turn(words) == ["down", "up", "left"]
    assert f"{len(words)} words heard" in ended.err


def test_tuning_writes_thresholds_that_the_next_firmware_has(tuned):
    text = (tuned.folder / "listening.toml").read_text()
    assert "[thresholds]" in text
    ended = entrain("build", *of(tuned))
    assert ended.code == 0, ended.err
    assert "spotter_thresholds" in (tuned.folder / "listening" / "spotter_settings.c").read_text()


def test_untuned_it_says_so(run, said):
    assert "Not tuned yet" in listen(run, said, "--device", "host").err


def test_settings_of_another_network_are_refused(tuned, said):
    tuned.onnx.write_bytes(tuned.onnx.read_bytes() + b" ")
    (tuned.lowered / "layers.json").touch()
    ended = listen(tuned, said, "--device", "host")
    assert ended.code == 2
    assert "tuned for another network" in ended.err
    assert "entrain tune" in ended.err


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("hop_frames = 0", "hop_frames"),
        ("hop_frames = ", "not TOML"),
        ("smoothed = 3", "smoothed"),
    ],
)
def test_damaged_settings_are_refused_with_their_place(tuned, said, line, complaint):
    path = tuned.folder / "listening.toml"
    path.write_text(path.read_text().replace("hop_frames = 6", line))
    ended = listen(tuned, said, "--device", "host")
    assert ended.code == 2
    assert complaint in ended.err
    assert str(path) in ended.err


def test_files_as_they_come_are_heard_or_refused_one_by_one(tuned, said, tmp_path):
    sound, rate = soundfile.read(said, dtype="float32")
    folder = tmp_path / "folder"
    folder.mkdir()
    kinds = {"PCM_U8": "wav", "PCM_16": "wav", "PCM_24": "wav", "PCM_32": "wav", "FLOAT": "wav"}
    for kind, suffix in kinds.items():
        soundfile.write(folder / f"{kind}.{suffix}", sound, rate, subtype=kind)
    soundfile.write(folder / "extensible.wav", sound, rate, format="WAVEX", subtype="PCM_16")
    soundfile.write(folder / "stereo.flac", np.stack([sound, sound], axis=1), rate)
    soundfile.write(folder / "vorbis.ogg", sound, rate)
    upsampled = np.repeat(sound, 3)
    soundfile.write(folder / "three-times.wav", upsampled, 3 * rate)
    whole = (folder / "PCM_16.wav").read_bytes()
    (folder / "a-half.wav").write_bytes(whole[: len(whole) // 2])
    (folder / "b-no-sound.wav").write_bytes(b"this is no sound")
    (folder / "c-empty.wav").write_bytes(b"")
    ended = listen(tuned, folder, "--device", "host")
    assert ended.code == 1
    found = {}
    for each in events(ended):
        name = each["source"].rpartition("/")[2]
        found.setdefault(name, []).append(each.get("word", "refused"))
    refused = {"a-half.wav", "b-no-sound.wav", "c-empty.wav"}
    assert {name for name, words in found.items() if words == ["refused"]} == refused
    names = [*(f"{kind}.{suffix}" for kind, suffix in kinds.items())]
    names += ["extensible.wav", "stereo.flac", "vorbis.ogg", "three-times.wav"]
    assert set(found) - refused == set(names)
    for name in names:
        assert in_turn(found[name]) == ["down", "up", "left"], name
    assert "resampled from 48,000 to 16,000 Hz" in ended.err
    assert "2 channels mixed into one" in ended.err


def test_a_plot_is_drawn(tuned, said, tmp_path):
    plot = tmp_path / "heard.png"
    assert listen(tuned, said, "--device", "host", "--plot", plot).code == 0
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "what is there to hear"),
        (("--wav", "x.wav", "--mic"), "what is there to hear"),
        (("--wav", "x.wav", "--coding", "mp3"), "no coding 'mp3'"),
        (("--wav", "x.wav", "--device", "radio"), "no device is addressed"),
    ],
)
def test_what_makes_no_sense_is_refused(run, arguments, complaint):
    ended = entrain("listen", *of(run), *arguments)
    assert ended.code == 2
    assert complaint in ended.err


def test_a_folder_without_sounds_is_refused(run, tmp_path):
    (tmp_path / "nothing").mkdir()
    ended = listen(run, tmp_path / "nothing", "--device", "host")
    assert ended.code != 0
    assert "no sound files" in ended.err


def test_without_a_spotter_it_says_how_to_train_one(tmp_path, own_cache):  # noqa: ARG001
    ended = entrain("listen", "--runs-dir", tmp_path, "--wav", "x.wav")
    assert ended.code == 2
    assert "entrain train keyword-stream" in ended.err


def test_a_stream_test_hears_the_same_on_the_device(tuned, tmp_path):
    plot = tmp_path / "curves.svg"
    ended = entrain(
        *("stream-test", *of(tuned), "--hours", 0.03, "--snr", 20, "--json"),
        *("--device", "qemu:mps3-an547", "--minutes", 0.2, "--coding", "adpcm", "--plot", plot),
    )
    assert ended.code == 0, ended.err
    (value,) = ended.value
    assert value["device"]["hops_equal"] == 100
    assert value["words"]["misses"]["share"] < 0.3
    shares = [point["misses"] for point in value["curve"]]
    assert shares == sorted(shares)
    assert "<svg" in plot.read_text()

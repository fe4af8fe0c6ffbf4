"""A microphone, which here is a file that ALSA reads; PortAudio and sounddevice are real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from entrain.deploy.errors import UsageError
from entrain.deploy.listening.sources import Microphone

ALSA = Path("/usr/share/alsa/alsa.conf")
# PortAudio looks at ALSA's configuration once: every test has a process of its own.
TAKE = """
import numpy as np, sys
from entrain.deploy.listening.sources import Microphone
blocks = Microphone(sys.argv[2] if len(sys.argv) > 2 else None).blocks()
np.save(sys.argv[1], np.concatenate([next(blocks) for _ in range(100)]))
"""
ENTRAIN = "from entrain.deploy.cli import main; main()"


@pytest.fixture
def environment(tmp_path):
    """In which the microphone hears what is in a file, as quickly as it is asked."""
    try:
        import sounddevice  # noqa: F401
    except OSError:
        pytest.skip("PortAudio is not installed (libportaudio2)")
    if not ALSA.is_file():
        pytest.skip("ALSA is not installed")
    configuration = tmp_path / "asound.conf"
    configuration.write_text(
        f'pcm.virtual {{ type file\n slave.pcm null\n file "/dev/null"\n'
        f' infile "{tmp_path / "heard.raw"}"\n format raw }}\n'
        "pcm.!default { type plug\n slave.pcm virtual }\n"
    )
    return {**os.environ, "ALSA_CONFIG_PATH": f"{ALSA}:{configuration}"}


def test_the_stream_of_a_microphone_is_what_it_hears(environment, tmp_path):
    sound = np.random.default_rng(0).integers(-9_000, 9_000, 16_000 * 4).astype(np.int16)
    sound.tofile(tmp_path / "heard.raw")
    subprocess.run(
        [sys.executable, "-c", TAKE, tmp_path / "taken.npy"], env=environment, check=True
    )
    taken = np.load(tmp_path / "taken.npy")
    np.testing.assert_array_equal(taken, sound[: len(taken)])
    assert len(taken) == 32_000


def test_words_at_the_microphone_are_heard_as_in_a_file(environment, tuned_run, said, tmp_path):
    sound, _ = soundfile.read(said, dtype="int16")
    sound.tofile(tmp_path / "heard.raw")
    command = [sys.executable, "-c", ENTRAIN, "listen", "--json", "--device", "host"]
    command += ["--runs-dir", tuned_run.folder.parent, "--run", tuned_run.name]
    heard = [
        [json.loads(line)["word"] for line in _printed([*command, *source], environment)]
        for source in (("--mic", "--seconds", "6.5"), ("--wav", said))
    ]
    assert heard[0] == heard[1]
    assert heard[0]


def _printed(command, environment):
    ended = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_a_microphone_that_is_not_there_is_refused_with_those_that_are():
    pytest.importorskip("sounddevice", exc_type=OSError)
    with pytest.raises(UsageError, match="no such microphone"):
        Microphone("none of that name")

"""What a run's firmware needs in order to listen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from entrain.deploy.errors import UsageError
from entrain.deploy.listening.bands import BandMaps, band_maps
from entrain.deploy.listening.c_sources import write_sources
from entrain.deploy.listening.host import HostSpotter
from entrain.deploy.listening.settings import SpotterSettings, read_settings, untuned
from entrain.deploy.listening.streams import BLOCK_SAMPLES, hear_all
from entrain.deploy.listening.tuning import Stream
from entrain.deploy.lowering.artifact import read_lowered
from entrain.deploy.recipe import task_of
from entrain.deploy.runs import Run
from entrain.deploy.tasks.keyword import statistics_of
from entrain.deploy.tasks.keyword_stream import KeywordStreamTask, words_of
from entrain.models.checkpoint import load_checkpoint
from entrain.models.data.long_recordings import LongRecording

if TYPE_CHECKING:
    from entrain.deploy.pipeline import Progress


@dataclass(frozen=True, eq=False)
class Spotter:
    """A run's spotter.

    Args:
        run: trained and lowered.
        labels: all classes of its network, the words first.
        settings: what decisions go by.
        bands: from log-mel values to the network's integers.
    """

    run: Run
    labels: tuple[str, ...]
    settings: SpotterSettings
    bands: BandMaps

    def sources(self) -> Path:
        """The folder of its settings in C, written anew."""
        folder = (self.run.folder / "listening").resolve()
        write_sources(folder, self.settings, self.bands, len(self.labels))
        return folder

    def on_host(self) -> HostSpotter:
        """The same C, on this machine."""
        return HostSpotter(
            self.run.lowered, self.sources(), len(self.settings.words), len(self.labels)
        )

    def through(self, recording: LongRecording, what: str, progress: Progress) -> Stream:
        """All that the spotter on this machine makes of a recording.

        Args:
            recording: the sound.
            what: it is, in words.
            progress: is told, minute by minute.
        """
        hours = recording.seconds / 3600
        minutes = -(-recording.samples // BLOCK_SAMPLES)
        with progress.stage(self.run, f"hear {what}, {hours:g} h", minutes) as step:
            hops = hear_all(self.on_host(), recording, len(self.labels), step)
        return Stream(recording.said, hops, hours)


def is_spotter(run: Run) -> bool:
    """Whether the run's network spots words in a stream."""
    return run.task == KeywordStreamTask.recipe_type.task


def spotter_of(run: Run) -> Spotter:
    """The spotter of a run that is trained and lowered, by the settings in its folder.

    Raises:
        UsageError: the run's network is no spotter, or its settings are damaged or another's.
        CheckpointError: no usable checkpoint.
        ModelError: it is not lowered.
    """
    found = untuned_spotter_of(run)
    return replace(found, settings=read_settings(run, found.settings.words))


def untuned_spotter_of(run: Run) -> Spotter:
    """The same as if nothing had been tuned.

    Raises:
        UsageError: the run's network is no spotter.
        CheckpointError: no usable checkpoint.
        ModelError: it is not lowered.
    """
    if not is_spotter(run):
        raise UsageError(
            f"its network answers clips (task {task_of(run).name}), not a stream",
            where=run.name,
            remedy="train a spotter with 'entrain train keyword-stream', or name one with --run",
        )
    checkpoint = load_checkpoint(run.checkpoint)
    record = read_lowered(run.lowered).input
    return Spotter(
        run,
        checkpoint.labels,
        untuned(words_of(checkpoint.labels)),
        band_maps(statistics_of(checkpoint), record),
    )

"""The spotter on a device: sound goes over the serial line, what is heard comes back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from entrain.deploy.device import hearing
from entrain.deploy.device.client import Client
from entrain.deploy.device.counting import LIBRARY
from entrain.deploy.device.hearing import HopOnDevice
from entrain.deploy.errors import DeviceMissing, ProtocolError, UsageError
from entrain.deploy.listening.adpcm import AdpcmStream
from entrain.deploy.listening.c_sources import plain
from entrain.deploy.listening.hops import Heard, Hops, joined
from entrain.deploy.listening.settings import SpotterSettings
from entrain.models.data.clips import Samples
from entrain.models.features import HOP


class Coder(Protocol):
    """How samples become a block's bytes."""

    command: str

    def encode(self, samples: Samples) -> bytes:
        """The bytes of the stream's next samples."""

    def decode(self, coded: bytes) -> Samples:
        """What the device makes of them."""


class PcmCoder:
    """Samples as they are, two bytes each."""

    command = hearing.PCM

    def encode(self, samples: Samples) -> bytes:
        """See `Coder`."""
        return samples.astype("<i2").tobytes()

    def decode(self, coded: bytes) -> Samples:
        """See `Coder`."""
        return np.frombuffer(coded, "<i2").astype(np.int16)


class AdpcmCoder:
    """Four bits a sample."""

    command = hearing.ADPCM

    def __init__(self) -> None:
        self._there, self._back = AdpcmStream(), AdpcmStream()

    def encode(self, samples: Samples) -> bytes:
        """See `Coder`."""
        return self._there.encode(samples)

    def decode(self, coded: bytes) -> Samples:
        """See `Coder`."""
        return self._back.decode(coded)


CODERS: dict[str, Callable[[], Coder]] = {"pcm": PcmCoder, "adpcm": AdpcmCoder}


def coder_named(name: str) -> Callable[[], Coder]:
    """What codes samples as the option --coding has it.

    Raises:
        UsageError: there is no such coding.
    """
    if name not in CODERS:
        raise UsageError(
            f"there is no coding {name!r}", where="--coding", remedy=f"use {' or '.join(CODERS)}"
        )
    return CODERS[name]


@dataclass(frozen=True)
class Work:
    """What hops took on the device.

    Args:
        hops: how many.
        front_end_us: microseconds of its clock for all their features.
        network_us: for the network and the decisions.
        front_end_instructions: counted, on an emulator; a frame's, times the frames of a hop.
        network_instructions: likewise.
    """

    hops: int = 0
    front_end_us: int = 0
    network_us: int = 0
    front_end_instructions: int = 0
    network_instructions: int = 0


class BoardSpotter:
    """A spotter behind a serial line.

    Args:
        client: the device, whose firmware listens.
        settings: that it was built with.
        classes: of its network.
        coder: makes what codes samples.

    Attributes:
        work: what the hops so far took.
        arrived: of the last call, what the device made of the samples that were sent.

    Raises:
        DeviceMissing: it listens for other words, or at another pace.
        DeviceRefused: its firmware does not listen.
    """

    def __init__(
        self,
        client: Client,
        settings: SpotterSettings,
        classes: int,
        coder: Callable[[], Coder] = PcmCoder,
    ) -> None:
        self._client = client
        self._words = plain(settings.words)  # as the device calls them
        self._settings = settings
        self._classes = classes
        self._new_coder = coder
        self.start()

    def start(self) -> None:
        """Forget everything."""
        found = self._client.listen()
        wanted = (HOP, self._settings.hop_frames, self._words)
        if (found.frame_samples, found.hop_frames, found.words) != wanted:
            raise DeviceMissing(
                f"the device spots {', '.join(found.words)} every {found.hop_frames} frames, and "
                f"the run {', '.join(wanted[2])} every {wanted[1]}",
                remedy="flash this run's firmware",
            )
        self._coder = self._new_coder()
        self._left: Samples = np.zeros(0, np.int16)
        self._sent = 0
        self.work = Work()
        self.arrived: Samples = np.zeros(0, np.int16)

    def hear(self, samples: Samples) -> Hops:
        """Hear samples, int16 [N]; less than a hop waits for the next call.

        Raises:
            DeviceLost: the device went away.
            ProtocolError: it did not hear what it was sent.
        """
        given = np.concatenate([self._left, samples])
        size = self._settings.hop_samples
        whole = len(given) // size * size
        self._left = given[whole:]
        self.arrived = np.zeros(0, np.int16)
        blocks = given[:whole].reshape(-1, size)
        return joined([self._hear_block(block) for block in blocks], self._classes)

    def _hear_block(self, block: Samples) -> Hops:
        coded = self._coder.encode(block)
        hops = self._client.hear(self._coder.command, self._sent, coded)
        self._sent += 1
        self.arrived = np.concatenate([self.arrived, self._coder.decode(coded)])
        if [hop.at for hop in hops] != [self._sent * self._settings.hop_samples]:
            raise ProtocolError(
                f"after block {self._sent} the device has heard {[hop.at for hop in hops]} samples"
            )
        self.work = self._with(hops[0])
        return _hops(hops, self._words)

    def _with(self, hop: HopOnDevice) -> Work:
        """The work so far and this hop's; the counter has seen its last frame and its inference."""
        work, frame, network = self.work, 0, 0
        if self._client.counts_instructions:
            counts = self._client.counts()
            frame = counts.by_function.get(LIBRARY, 0)  # all that is not the network
            network = counts.total - frame
        return Work(
            work.hops + 1,
            work.front_end_us + hop.front_end_us,
            work.network_us + hop.network_us,
            work.front_end_instructions + self._settings.hop_frames * frame,
            work.network_instructions + network,
        )


def _hops(hops: list[HopOnDevice], words: tuple[str, ...]) -> Hops:
    heard = tuple(
        Heard(words.index(hop.heard[0]), hop.heard[1], hop.at)
        for hop in hops
        if hop.heard is not None
    )
    return Hops(
        np.array([hop.at for hop in hops], np.int64),
        np.array([hop.scores for hop in hops], np.uint32),
        np.array([hop.in_silence for hop in hops], np.bool_),
        heard,
    )

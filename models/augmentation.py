"""Fresh variations of the training clips for every epoch.

Speed, place, loudness, room and background noise change the sound; after the features are
normalised, one band of frequencies and one stretch of time are set to the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from entrain.models.data import Clips
from entrain.models.data.clips import CLIP_SAMPLES, FULL_SCALE, Samples, to_samples
from entrain.models.placing import Centred, Placing
from entrain.models.rooms import reverberated


@dataclass(frozen=True)
class Augmentation:
    """Ranges of the variations, each drawn uniformly for every clip.

    Args:
        speed: how much faster a clip plays.
        placing: where in its second it lies.
        gain: its loudness, as a power of ten.
        noise_probability: how often noise is added.
        noise_decibels: ratio of the clip's power to the noise's.
        room_probability: how often it is heard in a room that answers.
        scrambled: the share of words that are made into none.
        masked_bands: most bands that are hidden.
        masked_frames: most frames that are hidden.
    """

    speed: tuple[float, float] = (0.88, 1.12)
    placing: Placing = field(default_factory=lambda: Centred(0.1))
    gain: tuple[float, float] = (-0.4, 0.3)
    noise_probability: float = 0.8
    noise_decibels: tuple[float, float] = (0.0, 30.0)
    room_probability: float = 0.0
    scrambled: float = 0.0
    masked_bands: int = 5
    masked_frames: int = 6


@dataclass(frozen=True, eq=False)
class Varied:
    """Clips that were varied.

    Args:
        samples: int16 [N, 16000]; what became too loud is cut.
        is_cut: bool [N]: whether less is left of a word than makes it one.
    """

    samples: Samples
    is_cut: NDArray[np.bool_]


def vary_sound(
    samples: Samples,
    background: Sequence[Samples],
    augmentation: Augmentation,
    random: np.random.Generator,
) -> Varied:
    """Vary clips.

    Args:
        samples: int16 [N, 16000].
        background: noise recordings of a second or more each; without any, no noise is added.
        augmentation: the ranges.
        random: where the draws come from.
    """
    count = len(samples)
    speeds = random.uniform(*augmentation.speed, count)
    placed = augmentation.placing.place(samples, speeds, random)
    gains = _column(10.0 ** random.uniform(*augmentation.gain, count) / FULL_SCALE)
    sound = torch.from_numpy(samples)
    moved = torch.zeros(count, CLIP_SAMPLES)
    # Clip by clip, which stays in the processor's cache.
    for clip, source, gain, speed, shift in zip(
        moved, sound, gains, speeds, placed.shifts, strict=True
    ):
        _place(clip, _resampled(source * gain, speed), int(shift))
    in_a_room = random.random(count) < augmentation.room_probability
    if in_a_room.any():
        moved[in_a_room] = reverberated(moved[in_a_room], random)
    if background:
        moved += _noise(moved, background, augmentation, random)
    return Varied(to_samples(moved.numpy()), placed.is_cut)


def mask_features(
    features: Tensor, augmentation: Augmentation, random: np.random.Generator
) -> Tensor:
    """Hide one band of frequencies and one stretch of time: set them to 0, the mean.

    Args:
        features: normalised, [N, T, F].
        augmentation: the largest widths.
        random: where the draws come from.
    """
    count, frames, bands = features.shape
    hidden_frames = _stretches(count, frames, augmentation.masked_frames, random)[:, :, None]
    hidden_bands = _stretches(count, bands, augmentation.masked_bands, random)[:, None, :]
    return features.masked_fill(hidden_frames | hidden_bands, 0.0)


def shuffled_batches(
    clips: Clips, batch: int, random: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Indices of the clips in a random order, in batches that differ by one clip at most."""
    order = random.permutation(len(clips))
    return np.array_split(order, max(1, -(-len(clips) // batch)))


def _resampled(clip: Tensor, speed: float) -> Tensor:
    """The clip, played at `speed` times its own, interpolated linearly."""
    length = round(len(clip) / speed)
    return F.interpolate(clip.view(1, 1, -1), size=length, mode="linear").view(-1)


def _place(clip: Tensor, sound: Tensor, shift: int) -> None:
    """Lay `sound` on the empty `clip`, middle on middle and then `shift` samples later."""
    offset = (len(clip) - len(sound)) // 2 + shift
    start, stop = max(offset, 0), min(offset + len(sound), len(clip))
    clip[start:stop] = sound[start - offset : stop - offset]


def _noise(
    sound: Tensor,
    background: Sequence[Samples],
    augmentation: Augmentation,
    random: np.random.Generator,
) -> Tensor:
    """Noise for each clip at a random ratio to its power; none for some."""
    count = len(sound)
    crops = np.empty((count, CLIP_SAMPLES), dtype=np.float32)
    for crop, choice in zip(crops, random.integers(len(background), size=count), strict=True):
        noise = background[choice]
        start = random.integers(len(noise) - CLIP_SAMPLES + 1)
        crop[:] = noise[start : start + CLIP_SAMPLES]
    noises = torch.from_numpy(crops)
    ratio = _column(10.0 ** (-random.uniform(*augmentation.noise_decibels, count) / 20))
    wanted = _column(random.random(count) < augmentation.noise_probability)
    silent = 1e-9
    scale = _root_mean_square(sound) / _root_mean_square(noises).clamp(min=silent)
    return noises.mul_(scale * ratio * wanted)


def _root_mean_square(sound: Tensor) -> Tensor:
    return sound.square().mean(dim=1, keepdim=True).sqrt()


def _column(values: NDArray[np.generic]) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))[:, None]


def _stretches(count: int, length: int, widest: int, random: np.random.Generator) -> Tensor:
    """For each of `count` rows, true in one random stretch of 0 to `widest` places."""
    widths = random.integers(0, min(widest, length) + 1, size=(count, 1))
    starts = random.integers(0, length - widths + 1)
    places = np.arange(length)
    return torch.from_numpy((places >= starts) & (places < starts + widths))

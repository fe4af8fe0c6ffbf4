"""Rooms that answer: what is said comes again, later and fainter."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from entrain.models.data.clips import SAMPLE_RATE

DECAY = (0.1, 0.6)  # seconds until the echo has fallen by 60 dB
DIRECT = (0.0, 12.0)  # decibels by which what comes straight is above all echoes together
LONGEST = SAMPLE_RATE // 4  # samples of a response


def reverberated(sound: Tensor, random: np.random.Generator) -> Tensor:
    """Clips as heard in rooms, one drawn for each: white echoes that die away exponentially.

    Args:
        sound: float [N, samples].
        random: where the draws come from.
    """
    count, samples = sound.shape
    after = np.arange(LONGEST) / SAMPLE_RATE
    fall = np.log(1e3) / random.uniform(*DECAY, (count, 1))
    echo = random.standard_normal((count, LONGEST)) * np.exp(-fall * after)
    echo[:, 0] = 0
    direct = 10.0 ** (random.uniform(*DIRECT, (count, 1)) / 20)
    response = echo / (direct * np.sqrt(np.square(echo).sum(axis=1, keepdims=True)))
    response[:, 0] = 1
    length = samples + LONGEST
    spectrum = torch.fft.rfft(sound, n=length)
    answer = torch.fft.rfft(torch.from_numpy(response.astype(np.float32)), n=length)
    heard: Tensor = torch.fft.irfft(spectrum * answer, n=length)[:, :samples]
    return heard

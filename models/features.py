"""Log-mel features: one second of sound to 49 frames of 40 bands.

Frames of 400 samples under a periodic Hann window, every 320 samples, without centring; the
power of a 512-point Fourier transform; 40 triangular filters of peak 1, evenly spaced on the HTK
mel scale from 20 to 7600 Hz; the natural logarithm of power + 1e-4.
"""

from __future__ import annotations

from functools import cache
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from entrain.models.data.clips import CLIP_SAMPLES, FULL_SCALE, SAMPLE_RATE

WINDOW = 400
HOP = 320
TRANSFORM = 512
FRAMES = 1 + (CLIP_SAMPLES - WINDOW) // HOP
BANDS = 40
LOWEST_HERTZ = 20.0
HIGHEST_HERTZ = 7600.0
FLOOR = 1e-4

# Clips transformed at a time: few enough for the processor's cache.
_CHUNK = 16


@overload
def log_mel(samples: Tensor) -> Tensor: ...
@overload
def log_mel(samples: NDArray[Any]) -> NDArray[np.float32]: ...
def log_mel(samples: Tensor | NDArray[Any]) -> Tensor | NDArray[np.float32]:
    """Features of clips, in the array library of the clips.

    Args:
        samples: [N, 16000], int16, or floating point in [-1, 1].

    Returns:
        float32 [N, 49, 40].

    Raises:
        ValueError: if the clips have another shape.
    """
    if isinstance(samples, Tensor):
        return _log_mel(samples)
    features: NDArray[np.float32] = _log_mel(torch.from_numpy(samples)).numpy()
    return features


@torch.no_grad()
def _log_mel(samples: Tensor) -> Tensor:
    if samples.ndim != 2 or samples.shape[1] != CLIP_SAMPLES:
        raise ValueError(f"clips must be [N, {CLIP_SAMPLES}], not {list(samples.shape)}")
    features = torch.empty(len(samples), FRAMES, BANDS)
    for start in range(0, len(samples), _CHUNK):
        chunk = samples[start : start + _CHUNK]
        sound = chunk.float() / (1.0 if chunk.is_floating_point() else FULL_SCALE)
        frames = sound.unfold(1, WINDOW, HOP) * _window()
        spectrum = torch.fft.rfft(frames, n=TRANSFORM)
        power = spectrum.real.square() + spectrum.imag.square()
        features[start : start + _CHUNK] = (power @ _filters()).add_(FLOOR).log_()
    return features


def mel(hertz: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Hertz on the HTK mel scale."""
    return 2595.0 * np.log10(1.0 + np.asarray(hertz) / 700.0)


def hertz(mels: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """HTK mels in hertz."""
    return 700.0 * (10.0 ** (np.asarray(mels) / 2595.0) - 1.0)


def mel_filters() -> NDArray[np.float64]:
    """Weights of the triangular filters, [257 bins, 40 bands], each rising to 1 at its centre."""
    edges = hertz(np.linspace(mel(LOWEST_HERTZ), mel(HIGHEST_HERTZ), BANDS + 2))
    bins = np.arange(TRANSFORM // 2 + 1)[:, None] * (SAMPLE_RATE / TRANSFORM)
    lower, centre, upper = edges[:-2], edges[1:-1], edges[2:]
    rising = (bins - lower) / (centre - lower)
    falling = (upper - bins) / (upper - centre)
    return np.maximum(0.0, np.minimum(rising, falling))


def hann_window() -> NDArray[np.float64]:
    """The periodic Hann window, [400]."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)


@cache
def _filters() -> Tensor:
    return torch.from_numpy(mel_filters()).float()


@cache
def _window() -> Tensor:
    return torch.from_numpy(hann_window()).float()

"""What log-mel features are: one second of sound is 49 frames of 40 bands.

Frames of 400 samples under a periodic Hann window, every 320 samples, without centring; the
power of a 512-point Fourier transform; 40 triangular filters of peak 1, evenly spaced on the HTK
mel scale from 20 to 7600 Hz; the natural logarithm of power + 1e-4. What computes them, on the
board and here, is `front_end`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from entrain.models.data.clips import CLIP_SAMPLES, SAMPLE_RATE

WINDOW = 400
HOP = 320
TRANSFORM = 512
FRAMES = 1 + (CLIP_SAMPLES - WINDOW) // HOP
BANDS = 40
LOWEST_HERTZ = 20.0
HIGHEST_HERTZ = 7600.0
FLOOR = 1e-4


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

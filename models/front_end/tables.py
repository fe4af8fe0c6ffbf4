"""The front end's tables in C, from the formulas of the features.

``python -m entrain.models.front_end.tables`` writes ``firmware/audio/log_mel_tables.[ch]`` anew; a
test holds those to this.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from entrain.deploy.files import write_whole
from entrain.models.features import BANDS, FLOOR, TRANSFORM, hann_window, mel_filters
from entrain.models.front_end.library import AUDIO

POWER_SHIFT = 16
CHORDS = 64
# The transform is scaled by 1/256, and a full sample is 2^31: |X| counts 2^(31 - 8).
POWER_BITS = 2 * (31 - 8) - POWER_SHIFT
WEIGHT_BITS, ANGLE_BITS, LOGARITHM_BITS, STEP_BITS = 15, 31, 16, 11
_COLUMNS = 96


def header() -> str:
    """``log_mel_tables.h``."""
    bits = POWER_BITS + WEIGHT_BITS
    unit = round(bits * np.log(2) * 2**STEP_BITS)
    weights = sum(len(row) for _, row in filters())
    ln_2 = round(np.log(2) * 2**LOGARITHM_BITS)
    return f"""{_NOTE}
#ifndef ENTRAIN_LOG_MEL_TABLES_H
#define ENTRAIN_LOG_MEL_TABLES_H

#include <stdint.h>

#define LOG_MEL_POWER_SHIFT {POWER_SHIFT}
#define LOG_MEL_FLOOR       {round(FLOOR * 2**bits)}u /* {FLOOR:g} in steps of 2^-{bits} */
#define LOG_MEL_UNIT        {unit}       /* ln 2^{bits} in steps of 2^-{STEP_BITS} */
#define LOG_MEL_LN_2        {ln_2}       /* ln 2 in steps of 2^-16 */

/* The Hann window in steps of 2^-15. */
extern const uint16_t log_mel_window[{len(hann_window())}];
/* cos(2 pi k / {TRANSFORM}) in steps of 2^-{ANGLE_BITS}, the first one just below 1. */
extern const int32_t log_mel_cosine[{TRANSFORM // 4 + 1}];
/* log2(1 + i / {CHORDS}) in steps of 2^-{LOGARITHM_BITS}. */
extern const int32_t log_mel_logarithm[{CHORDS + 1}];
/* The filters: bins where each begins, how many it has, and all weights in steps of 2^-15. */
extern const uint8_t log_mel_first_bin[{BANDS}];
extern const uint8_t log_mel_bins[{BANDS}];
extern const uint16_t log_mel_weights[{weights}];

#endif
"""


def source() -> str:
    """``log_mel_tables.c``."""
    angles = 2 * np.pi * np.arange(TRANSFORM // 4 + 1) / TRANSFORM
    cosines = np.minimum(np.rint(np.cos(angles) * 2.0**ANGLE_BITS), 2**ANGLE_BITS - 1)
    logarithms = np.rint(np.log2(1 + np.arange(CHORDS + 1) / CHORDS) * 2**LOGARITHM_BITS)
    bands = filters()
    return "\n".join(
        [
            _NOTE,
            _AS_IT_IS,
            '#include "log_mel_tables.h"',
            "",
            *_array("uint16_t", "window", _steps(hann_window())),
            *_array("int32_t", "cosine", cosines.astype(np.int64).tolist()),
            *_array("int32_t", "logarithm", logarithms.astype(np.int64).tolist()),
            *_array("uint8_t", "first_bin", [first for first, _ in bands]),
            *_array("uint8_t", "bins", [len(row) for _, row in bands]),
            *_array("uint16_t", "weights", [w for _, row in bands for w in row]),
        ]
    )


def filters() -> list[tuple[int, list[int]]]:
    """Of each band its first bin and the weights from there, in steps of 2**-15."""
    rows = []
    for row in mel_filters().T:
        weights = _steps(row)
        used = np.flatnonzero(weights)
        rows.append((int(used[0]), weights[used[0] : used[-1] + 1]))
    return rows


def _steps(numbers: NDArray[np.float64]) -> list[int]:
    steps: list[int] = np.rint(numbers * 2**WEIGHT_BITS).astype(np.int64).tolist()
    return steps


_NOTE = "/* Made by entrain/models/front_end/tables.py from the formulas of features.py. */"
_AS_IT_IS = "/* clang-format off */"


def _array(kind: str, name: str, numbers: Sequence[int]) -> list[str]:
    lines, line = [], "   "
    for number in numbers:
        if len(line) + len(f" {number},") > _COLUMNS:
            lines.append(line)
            line = "   "
        line += f" {number},"
    lines.append(line)
    return [f"const {kind} log_mel_{name}[{len(numbers)}] = {{", *lines, "};", ""]


if __name__ == "__main__":
    write_whole(AUDIO / "log_mel_tables.h", header())
    write_whole(AUDIO / "log_mel_tables.c", source())

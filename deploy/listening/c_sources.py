"""The spotter's settings in C: spotter_settings.h and spotter_settings.c."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from entrain.deploy.files import write_whole
from entrain.deploy.listening.bands import SHIFT, BandMaps
from entrain.deploy.listening.settings import SpotterSettings

HEADER, SOURCE = "spotter_settings.h", "spotter_settings.c"


def write_sources(folder: Path, settings: SpotterSettings, bands: BandMaps, classes: int) -> None:
    """Write both files.

    Args:
        folder: where.
        settings: what decisions go by.
        bands: from log-mel values to the network's integers.
        classes: of the network, the words first.
    """
    write_whole(folder / HEADER, _header(settings, bands, classes))
    write_whole(folder / SOURCE, _source(settings, bands))


def _header(settings: SpotterSettings, bands: BandMaps, classes: int) -> str:
    return f"""\
/* How words are spotted, by `entrain tune`: made from listening.toml. */
#ifndef ENTRAIN_SPOTTER_SETTINGS_H
#define ENTRAIN_SPOTTER_SETTINGS_H

#include <stdint.h>

#define SPOTTER_WORDS       {len(settings.words)}u /* the first of the network's classes */
#define SPOTTER_CLASSES     {classes}u
#define SPOTTER_HOP_FRAMES  {settings.hop_frames}u /* of 20 ms, from one inference to the next */
#define SPOTTER_SMOOTHED    {settings.smoothed_hops}u /* hops over which scores are averaged */
#define SPOTTER_GATE        {settings.gate}u /* mean square: {settings.gate_decibels:g} dB */
#define SPOTTER_BAND_SHIFT  {SHIFT}
#define SPOTTER_INPUT_LEAST ({bands.least})
#define SPOTTER_INPUT_MOST  {bands.most}

/* A log-mel value v is the network's (v * multiplier + offset) >> SPOTTER_BAND_SHIFT. */
struct spotter_band {{
    int32_t multiplier;
    int64_t offset;
}};

extern const struct spotter_band spotter_bands[{len(bands.multipliers)}];
extern const uint32_t spotter_thresholds[SPOTTER_WORDS]; /* millionths */
extern const uint32_t spotter_refractory[SPOTTER_WORDS]; /* hops */
extern const char *const spotter_names[SPOTTER_WORDS];

#endif
"""


def _source(settings: SpotterSettings, bands: BandMaps) -> str:
    maps = [
        f"    {{{multiplier}, INT64_C({offset})}},"
        for multiplier, offset in zip(bands.multipliers, bands.offsets, strict=True)
    ]
    thresholds = ", ".join(f"{each}u" for each in settings.threshold_millionths)
    refractory = ", ".join(f"{each}u" for each in settings.refractory_hops)
    names = ", ".join(f'"{word}"' for word in plain(settings.words))
    return "\n".join(
        [
            f'#include "{HEADER}"',
            "",
            f"const struct spotter_band spotter_bands[{len(maps)}] = {{",
            *maps,
            "};",
            f"const uint32_t spotter_thresholds[SPOTTER_WORDS] = {{{thresholds}}};",
            f"const uint32_t spotter_refractory[SPOTTER_WORDS] = {{{refractory}}};",
            f"const char *const spotter_names[SPOTTER_WORDS] = {{{names}}};",
            "",
        ]
    )


def plain(words: Sequence[str]) -> tuple[str, ...]:
    """Words as the serial line's answers can hold them: no bracket, comma, quote or escape."""
    return tuple(re.sub(r"[^\w '-]", "_", word, flags=re.ASCII) for word in words)

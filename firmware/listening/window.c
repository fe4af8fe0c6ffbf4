#include "window.h"

#include "model.h"
#include "spotter_settings.h"

#include <string.h>

#define ROWS    (MODEL_INPUT_BYTES / LOG_MEL_BANDS)
#define OVERLAP (LOG_MEL_WINDOW - LOG_MEL_HOP) /* samples shared with the frame before */

_Static_assert(MODEL_INPUT_BYTES % LOG_MEL_BANDS == 0u, "the model reads whole rows of bands");

static int16_t sound[LOG_MEL_WINDOW]; /* the frame under the window */
static _Alignas(16) int8_t features[MODEL_INPUT_BYTES];
static uint32_t loudness[ROWS]; /* mean squares of the frames, oldest first */

/* A log-mel value as the model's integer, by the band's own affine map. */
static int8_t quantized(int16_t value, const struct spotter_band *band) {
    const int64_t scaled = (int64_t)value * band->multiplier + band->offset;
    const int64_t whole = scaled >> SPOTTER_BAND_SHIFT;
    if (whole < SPOTTER_INPUT_LEAST) {
        return (int8_t)SPOTTER_INPUT_LEAST;
    }
    return (int8_t)((whole > SPOTTER_INPUT_MOST) ? SPOTTER_INPUT_MOST : whole);
}

static void add_row(void) {
    static int16_t values[LOG_MEL_BANDS];
    int8_t *row = &features[MODEL_INPUT_BYTES - LOG_MEL_BANDS];
    log_mel_frame(sound, values);
    (void)memmove(features, &features[LOG_MEL_BANDS], MODEL_INPUT_BYTES - LOG_MEL_BANDS);
    for (uint32_t i = 0; i < LOG_MEL_BANDS; i++) {
        row[i] = quantized(values[i], &spotter_bands[i]);
    }
}

static uint32_t mean_square(const int16_t samples[LOG_MEL_HOP]) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < LOG_MEL_HOP; i++) {
        sum += (uint32_t)((int32_t)samples[i] * samples[i]);
    }
    return (uint32_t)(sum / LOG_MEL_HOP);
}

void window_add(const int16_t samples[LOG_MEL_HOP]) {
    (void)memmove(sound, &sound[LOG_MEL_HOP], OVERLAP * sizeof sound[0]);
    (void)memcpy(&sound[OVERLAP], samples, LOG_MEL_HOP * sizeof sound[0]);
    (void)memmove(loudness, &loudness[1], sizeof loudness - sizeof loudness[0]);
    loudness[ROWS - 1u] = mean_square(samples);
    add_row();
}

void window_start(void) {
    (void)memset(sound, 0, sizeof sound);
    (void)memset(loudness, 0, sizeof loudness);
    add_row();
    for (uint32_t i = 0; i + 1u < ROWS; i++) {
        (void)memcpy(&features[i * LOG_MEL_BANDS], &features[MODEL_INPUT_BYTES - LOG_MEL_BANDS],
                     LOG_MEL_BANDS);
    }
}

const int8_t *window_features(void) {
    return features;
}

uint32_t window_loudest(void) {
    uint32_t loudest = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        loudest = (loudness[i] > loudest) ? loudness[i] : loudest;
    }
    return loudest;
}

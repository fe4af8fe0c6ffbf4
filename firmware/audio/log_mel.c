#include "log_mel.h"

#include "log_mel_tables.h"

#include <dsp/transform_functions.h>

#include <arm_const_structs.h>

#define TRANSFORM 512u             /* points of the real transform */
#define HALF      (TRANSFORM / 2u) /* points of the complex one */

/* A frame's samples; then its transform, complex; then the powers of its bins. */
static union {
    int32_t samples[TRANSFORM];
    int32_t transform[HALF][2];
    uint64_t power[HALF];
} frame;

/* x w to nearest, w in steps of 2^-31. */
static int32_t weighted(int32_t x, int32_t w) {
    return (int32_t)(((int64_t)x * w + 0x40000000) >> 31);
}

static void window_samples(const int16_t samples[LOG_MEL_WINDOW]) {
    for (uint32_t i = 0; i < LOG_MEL_WINDOW; i++) {
        /* at most 2^30; doubled, the product has 31 bits of fraction */
        frame.samples[i] = (int32_t)samples[i] * log_mel_window[i] * 2;
    }
    for (uint32_t i = LOG_MEL_WINDOW; i < TRANSFORM; i++) {
        frame.samples[i] = 0;
    }
}

/* |X|^2 / 2^16 of X = re + j im. */
static uint64_t power_of(int32_t re, int32_t im) {
    const uint64_t squares = (uint64_t)((int64_t)re * re) + (uint64_t)((int64_t)im * im);
    return squares >> LOG_MEL_POWER_SHIFT;
}

/* From Z, the transform of even samples + j odd samples, to the powers of bins k and n = 256 - k:
 *
 *     e = (Z[k] + Z*[n]) / 2,  o = (Z[k] - Z*[n]) / 2,  t = j exp(-2 pi j k / 512) o,
 *     X[k] = e - t,  X[n] = (e + t)*
 */
static void split_bins(uint32_t k) {
    const uint32_t n = HALF - k;
    const int32_t cosine = log_mel_cosine[k];
    const int32_t sine = log_mel_cosine[HALF / 2u - k];
    const int32_t k_re = frame.transform[k][0] >> 1;
    const int32_t k_im = frame.transform[k][1] >> 1;
    const int32_t n_re = frame.transform[n][0] >> 1;
    const int32_t n_im = frame.transform[n][1] >> 1;
    const int32_t e_re = k_re + n_re;
    const int32_t e_im = k_im - n_im;
    const int32_t o_re = k_re - n_re;
    const int32_t o_im = k_im + n_im;
    const int32_t t_re = weighted(o_re, sine) - weighted(o_im, cosine);
    const int32_t t_im = weighted(o_re, cosine) + weighted(o_im, sine);
    frame.power[k] = power_of(e_re - t_re, e_im - t_im);
    frame.power[n] = power_of(e_re + t_re, e_im + t_im);
}

/* The powers of bins 1 to 255; no filter reaches the others. */
static void transform_powers(void) {
    arm_cfft_q31(&arm_cfft_sR_q31_len256, frame.samples, 0u, 1u);
    for (uint32_t k = 1; k < HALF / 2u; k++) {
        split_bins(k);
    }
    frame.power[HALF / 2u] = power_of(frame.transform[HALF / 2u][0], frame.transform[HALF / 2u][1]);
}

/* ln(x) in steps of 2^-11: the binary logarithm from a table of 64 chords, times ln 2. */
static int32_t natural_logarithm(uint64_t x) {
    const int32_t zeros = __builtin_clzll(x);
    const uint64_t mantissa = x << zeros;
    const uint32_t chord = (uint32_t)(mantissa >> 57) & 63u;
    const int64_t part = (int64_t)((mantissa >> 41) & 0xffffu);
    const int64_t from = log_mel_logarithm[chord];
    const int64_t to = log_mel_logarithm[chord + 1u];
    const int64_t binary = (int64_t)(63 - zeros) * 65536 + from + (((to - from) * part) >> 16);
    return (int32_t)((binary * LOG_MEL_LN_2 + (1 << 20)) >> 21);
}

void log_mel_frame(const int16_t samples[LOG_MEL_WINDOW], int16_t values[LOG_MEL_BANDS]) {
    window_samples(samples);
    transform_powers();
    const uint16_t *weight = log_mel_weights;
    for (uint32_t band = 0; band < LOG_MEL_BANDS; band++) {
        const uint32_t first = log_mel_first_bin[band];
        const uint32_t end = first + log_mel_bins[band];
        uint64_t sum = LOG_MEL_FLOOR;
        for (uint32_t bin = first; bin < end; bin++) {
            sum += frame.power[bin] * *weight;
            weight++;
        }
        values[band] = (int16_t)(natural_logarithm(sum) - LOG_MEL_UNIT);
    }
}

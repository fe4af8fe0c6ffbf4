/* The algorithm of the IMA's Recommended Practices for Enhancing Digital Audio Compatibility in
 * Multimedia Systems, revision 3.00, 1992. */
#include "adpcm.h"

#define STEPS   89
#define SIGN    8u
#define MOST    32767
#define LEAST   (-32768)
#define FULL    4u
#define HALF    2u
#define QUARTER 1u

static const int16_t steps[STEPS] = {
    7,     8,     9,     10,    11,    12,    13,    14,    16,    17,    19,    21,    23,
    25,    28,    31,    34,    37,    41,    45,    50,    55,    60,    66,    73,    80,
    88,    97,    107,   118,   130,   143,   157,   173,   190,   209,   230,   253,   279,
    307,   337,   371,   408,   449,   494,   544,   598,   658,   724,   796,   876,   963,
    1060,  1166,  1282,  1411,  1552,  1707,  1878,  2066,  2272,  2499,  2749,  3024,  3327,
    3660,  4026,  4428,  4871,  5358,  5894,  6484,  7132,  7845,  8630,  9493,  10442, 11487,
    12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
};
static const int8_t moves[8] = {-1, -1, -1, -1, 2, 4, 6, 8};

int16_t adpcm_decode(struct adpcm *state, uint32_t code) {
    const int32_t step = steps[state->index];
    int32_t difference = step / 8;
    difference += ((code & FULL) != 0u) ? step : 0;
    difference += ((code & HALF) != 0u) ? (step / 2) : 0;
    difference += ((code & QUARTER) != 0u) ? (step / 4) : 0;
    int32_t next = state->predicted + (((code & SIGN) != 0u) ? -difference : difference);
    next = (next > MOST) ? MOST : next;
    next = (next < LEAST) ? LEAST : next;
    int32_t index = state->index + moves[code & 7u];
    index = (index < 0) ? 0 : index;
    state->index = (index >= STEPS) ? (STEPS - 1) : index;
    state->predicted = next;
    return (int16_t)next;
}

uint32_t adpcm_encode(struct adpcm *state, int16_t sample) {
    int32_t step = steps[state->index];
    int32_t difference = sample - state->predicted;
    uint32_t code = 0;
    if (difference < 0) {
        code = SIGN;
        difference = -difference;
    }
    for (uint32_t bit = FULL; bit != 0u; bit >>= 1) {
        if (difference >= step) {
            code |= bit;
            difference -= step;
        }
        step /= 2;
    }
    (void)adpcm_decode(state, code);
    return code;
}

/* ADPCM over stretches of sound, for Python. */
#include "adpcm.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC void stream_encode(int32_t state[2], const int16_t *samples, uint32_t count, uint8_t *codes);
PUBLIC void stream_decode(int32_t state[2], const uint8_t *codes, uint32_t count, int16_t *samples);

/* An even number of samples as ADPCM, two to a byte, and back. */
void stream_encode(int32_t state[2], const int16_t *samples, uint32_t count, uint8_t *codes) {
    struct adpcm adpcm = {state[0], state[1]};
    for (uint32_t i = 0; i < count; i += 2u) {
        const uint32_t low = adpcm_encode(&adpcm, samples[i]);
        codes[i / 2u] = (uint8_t)(low | (adpcm_encode(&adpcm, samples[i + 1u]) << 4));
    }
    state[0] = adpcm.predicted;
    state[1] = adpcm.index;
}

void stream_decode(int32_t state[2], const uint8_t *codes, uint32_t count, int16_t *samples) {
    struct adpcm adpcm = {state[0], state[1]};
    for (uint32_t i = 0; i < count; i += 2u) {
        samples[i] = adpcm_decode(&adpcm, codes[i / 2u] & 15u);
        samples[i + 1u] = adpcm_decode(&adpcm, (uint32_t)codes[i / 2u] >> 4);
    }
    state[0] = adpcm.predicted;
    state[1] = adpcm.index;
}

/* The front end over whole clips, for Python. */
#include "log_mel.h"

#include <stddef.h>

__attribute__((visibility("default"))) void log_mel_clips(const int16_t *samples, uint32_t clips,
                                                          uint32_t clip_samples, int16_t *values);

/* clips of clip_samples each, one behind the other; of each all whole frames. */
void log_mel_clips(const int16_t *samples, uint32_t clips, uint32_t clip_samples, int16_t *values) {
    const uint32_t frames = 1u + (clip_samples - LOG_MEL_WINDOW) / LOG_MEL_HOP;
    for (uint32_t clip = 0; clip < clips; clip++) {
        const int16_t *clip_start = samples + (size_t)clip * clip_samples;
        for (uint32_t i = 0; i < frames; i++) {
            log_mel_frame(clip_start + (size_t)i * LOG_MEL_HOP, values);
            values += LOG_MEL_BANDS;
        }
    }
}

/* The spotter over a stretch of sound, for Python. */
#include "spotter.h"

#include <stddef.h>

#define PUBLIC __attribute__((visibility("default")))

PUBLIC void stream_start(void);
PUBLIC uint32_t stream_hear(const int16_t *samples, uint32_t frames, struct spotter_hop *hops);

void stream_start(void) {
    spotter_start();
}

/* Hears whole frames; returns how many hops ended, and what each came to. */
uint32_t stream_hear(const int16_t *samples, uint32_t frames, struct spotter_hop *hops) {
    uint32_t ended = 0;
    for (uint32_t i = 0; i < frames; i++) {
        if (spotter_frame(samples + (size_t)i * SPOTTER_FRAME)) {
            hops[ended] = *spotter_decide();
            ended++;
        }
    }
    return ended;
}

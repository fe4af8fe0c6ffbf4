/* Words in a stream of sound: features of each new frame, the network over the last second at every
 * hop, smoothed scores, a decision. The same C on every board and on the host. */
#ifndef ENTRAIN_SPOTTER_H
#define ENTRAIN_SPOTTER_H

#include "log_mel.h"
#include "spotter_settings.h"

#include <stdbool.h>
#include <stdint.h>

#define SPOTTER_FRAME   LOG_MEL_HOP /* samples that are heard at a time: 20 ms */
#define SPOTTER_NO_WORD UINT32_MAX

/* What a hop came to. */
struct spotter_hop {
    uint64_t heard;                   /* samples since the start, this hop's among them */
    uint32_t raw[SPOTTER_CLASSES];    /* the network's scores, in millionths; all 0 in silence */
    uint32_t smoothed[SPOTTER_WORDS]; /* means of the last SPOTTER_SMOOTHED hops' */
    uint32_t word;                    /* that was heard, or SPOTTER_NO_WORD */
    bool in_silence;                  /* nothing was loud enough: the network did not run */
};

/* Forgets everything: silence was heard for ever. */
void spotter_start(void);

/* Hears the next samples and makes their features; true if a hop ends with them. */
bool spotter_frame(const int16_t samples[SPOTTER_FRAME]);

/* After a hop's last frame: what it came to. It stands until the next one. */
const struct spotter_hop *spotter_decide(void);

#endif

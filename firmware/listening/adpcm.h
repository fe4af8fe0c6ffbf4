/* IMA ADPCM, four bits a sample: half the line's bytes twice over. Sound over a slow serial line.
 */
#ifndef ENTRAIN_ADPCM_H
#define ENTRAIN_ADPCM_H

#include <stdint.h>

/* Where a stream stands; {0, 0} at its start. */
struct adpcm {
    int32_t predicted; /* the last sample */
    int32_t index;     /* into the table of steps */
};

/* The next sample, from four bits. */
int16_t adpcm_decode(struct adpcm *state, uint32_t code);

/* The four bits for the next sample; the state goes as the decoder's does. */
uint32_t adpcm_encode(struct adpcm *state, int16_t sample);

#endif

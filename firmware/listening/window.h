/* The last second of sound as the network reads it: one row of features a frame. */
#ifndef ENTRAIN_WINDOW_H
#define ENTRAIN_WINDOW_H

#include "log_mel.h"

#include <stdint.h>

/* Fills the second with silence. */
void window_start(void);

/* Adds the next samples: one new row, before which the oldest one goes. */
void window_add(const int16_t samples[LOG_MEL_HOP]);

/* The model's input, oldest row first. */
const int8_t *window_features(void);

/* The mean square of the loudest frame in the window, of samples as they are. */
uint32_t window_loudest(void);

#endif

/* The front end: a frame of sound to log-mel values, in integers; one code path on every core.
 *
 * Frames of 400 samples at 16 kHz under a periodic Hann window; the power of a 512-point Fourier
 * transform; 40 triangular filters, evenly spaced on the HTK mel scale from 20 to 7600 Hz; the
 * natural logarithm of power + 1e-4, samples counting from -1 to 1. */
#ifndef ENTRAIN_LOG_MEL_H
#define ENTRAIN_LOG_MEL_H

#include <stdint.h>

#define LOG_MEL_WINDOW    400u /* samples of a frame */
#define LOG_MEL_HOP       320u /* from a frame to the next */
#define LOG_MEL_BANDS     40u
#define LOG_MEL_STEP_BITS 11 /* a value is a multiple of 2^-11 */

/* The log-mel values of one frame, lowest band first, in steps of 2^-11: within 2^-10 of the exact
 * ones of noise and speech, and within 2^-5 in what a window of 15 bits leaks of a tone of full
 * scale. Not reentrant: a frame's transform is static. */
void log_mel_frame(const int16_t samples[LOG_MEL_WINDOW], int16_t values[LOG_MEL_BANDS]);

#endif

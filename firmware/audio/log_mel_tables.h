/* Made by entrain/models/front_end/tables.py from the formulas of features.py. */
#ifndef ENTRAIN_LOG_MEL_TABLES_H
#define ENTRAIN_LOG_MEL_TABLES_H

#include <stdint.h>

#define LOG_MEL_POWER_SHIFT 16
#define LOG_MEL_FLOOR       3518437209u /* 0.0001 in steps of 2^-45 */
#define LOG_MEL_UNIT        63880       /* ln 2^45 in steps of 2^-11 */
#define LOG_MEL_LN_2        45426       /* ln 2 in steps of 2^-16 */

/* The Hann window in steps of 2^-15. */
extern const uint16_t log_mel_window[400];
/* cos(2 pi k / 512) in steps of 2^-31, the first one just below 1. */
extern const int32_t log_mel_cosine[129];
/* log2(1 + i / 64) in steps of 2^-16. */
extern const int32_t log_mel_logarithm[65];
/* The filters: bins where each begins, how many it has, and all weights in steps of 2^-15. */
extern const uint8_t log_mel_first_bin[40];
extern const uint8_t log_mel_bins[40];
extern const uint16_t log_mel_weights[468];

#endif

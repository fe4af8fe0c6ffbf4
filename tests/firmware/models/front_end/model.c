#include "model.h"

#include "log_mel.h"

#include <string.h>

void model_run(const int8_t *input, int8_t *output) {
    int16_t samples[LOG_MEL_WINDOW];
    int16_t values[LOG_MEL_BANDS];
    for (uint32_t i = 0; i < MODEL_FRAMES; i++) {
        memcpy(samples, &input[i * LOG_MEL_HOP * sizeof samples[0]], sizeof samples);
        log_mel_frame(samples, values);
        memcpy(&output[i * sizeof values], values, sizeof values);
    }
}

/* In a trace build the model calls model_trace after each layer, before the arena is reused. */
#include "model.h"

#ifdef MODEL_TRACE

#include <stdint.h>

#include "text.h"

/* The line m-trace-LAYER-[hex]. */
void model_trace(uint32_t layer, const void *values, uint32_t bytes) {
    text_send("m-trace-");
    text_send_unsigned(layer);
    text_send("-[");
    text_send_hex(values, bytes);
    text_send_line("]");
}

#else

typedef int trace_is_off; /* a translation unit may not be empty */

#endif

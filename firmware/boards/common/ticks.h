#ifndef ENTRAIN_TICKS_H
#define ENTRAIN_TICKS_H

#include <stdint.h>

void ticks_start(void);

/* Core clock ticks since ticks_start; wraps after more than a thousand years. */
uint64_t ticks_now(void);

#endif

/* A function of a wide integer by a table: the C of deploy/arithmetic/interpolation.py. */
#ifndef ENTRAIN_INTERPOLATION_H
#define ENTRAIN_INTERPOLATION_H

#include "entrain_isa.h"

/* Between `here` and `next`, int16 values, at fraction / 2^bits of the way; bits up to 12. */
ENTRAIN_INLINE int32_t entrain_interpolate(int32_t here, int32_t next, int32_t fraction,
                                           int32_t bits) {
    return here + (((next - here) * fraction + ((int32_t)1 << (bits - 1))) >> bits);
}

#endif

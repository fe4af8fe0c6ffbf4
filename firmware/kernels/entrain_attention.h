/* What every attention kernel reads and writes: rows of 8-bit channels, several heads of them. */
#ifndef ENTRAIN_ATTENTION_H
#define ENTRAIN_ATTENTION_H

#include <stdbool.h>

#include "entrain_arithmetic.h"
#include "entrain_isa.h"

/* Queries, keys or values: the row of head h and token t begins at first + h * head + t * token,
 * and its channels lie side by side. They are bytes without a sign if is_unsigned. */
struct entrain_rows {
    const int8_t *first;
    int32_t head;
    int32_t token;
    int32_t zero_point;
    bool is_unsigned;
};

/* Contexts, likewise. */
struct entrain_result {
    int8_t *first;
    int32_t head;
    int32_t token;
    int32_t zero_point;
    bool is_unsigned;
};

ENTRAIN_INLINE const int8_t *entrain_row(struct entrain_rows rows, int32_t head, int32_t token) {
    return rows.first + head * rows.head + token * rows.token;
}

ENTRAIN_INLINE int8_t *entrain_result_row(struct entrain_result result, int32_t head,
                                          int32_t token) {
    return result.first + head * result.head + token * result.token;
}

/* A channel as it is stored, its zero point not taken off. */
ENTRAIN_INLINE int32_t entrain_channel(struct entrain_rows rows, const int8_t *row, int32_t c) {
    return rows.is_unsigned ? (int32_t)(uint8_t)row[c] : (int32_t)row[c];
}

ENTRAIN_INLINE int32_t entrain_least(int32_t a, int32_t b) {
    return (a < b) ? a : b;
}

/* n rounded up to a multiple of a power of two. */
ENTRAIN_INLINE int32_t entrain_up_to(int32_t n, int32_t multiple) {
    return (n + multiple - 1) & -multiple;
}

#endif

/* One head of oscillator attention with SMLAD, two queries at a time. */
#ifndef ENTRAIN_OSCILLATOR_DSP_H
#define ENTRAIN_OSCILLATOR_DSP_H

#include "entrain_oscillator_coupling_dsp.h"
#include "entrain_oscillator_moments_dsp.h"
#include "entrain_oscillator_read_out_dsp.h"

/* What all queries of a head share. */
ENTRAIN_INLINE void entrain_oscillator_begin(struct entrain_oscillator oscillator, int32_t head,
                                             const int16_t *anchors,
                                             struct entrain_oscillator_plan plan) {
    if (oscillator.coupling == ENTRAIN_SEPARABLE) {
        entrain_oscillator_drive(oscillator, head, anchors, plan);
    } else {
        for (int32_t w = 0; w < plan.key_words; w++) {
            const int32_t next = entrain_least(2 * w + 1, oscillator.keys - 1);
            entrain_pair_rows(oscillator.key, entrain_row(oscillator.key, head, 2 * w),
                              entrain_row(oscillator.key, head, next), oscillator.d_head,
                              plan.keys + w * 2 * plan.channel_words);
        }
    }
    if (oscillator.exponent == 1) {
        entrain_oscillator_moments(oscillator, head, anchors, plan);
    } else {
        entrain_pair_channels(oscillator.value, head, oscillator.keys, oscillator.d_value,
                              plan.key_words, plan.values);
    }
}

ENTRAIN_INLINE void entrain_oscillator_head(struct entrain_oscillator oscillator, int32_t head,
                                            void *scratch) {
    const struct entrain_oscillator_plan plan = entrain_oscillator_plan(oscillator, scratch);
    const int16_t *anchors = entrain_head_anchors(oscillator, head);
    const bool separable = oscillator.coupling == ENTRAIN_SEPARABLE;
    entrain_oscillator_begin(oscillator, head, anchors, plan);
    for (int32_t i = 0; i < oscillator.queries; i += 2) {
        const int32_t next = entrain_least(i + 1, oscillator.queries - 1);
        int8_t *first = entrain_result_row(oscillator.result, head, i);
        int8_t *second = entrain_result_row(oscillator.result, head, next);
        entrain_pair_rows(oscillator.query, entrain_row(oscillator.query, head, i),
                          entrain_row(oscillator.query, head, next), oscillator.d_head,
                          plan.queries);
        if (!separable) {
            entrain_oscillator_couplings(oscillator, plan);
        } else if (!(oscillator.query.is_unsigned && oscillator.query.zero_point == 0)) {
            for (int32_t w = 0; w < 2 * plan.channel_words; w++) {
                plan.queries[w] = entrain_rectified_halves(plan.queries[w]);
            }
        }
        entrain_oscillator_settle(oscillator, head, anchors, plan);
        if (oscillator.exponent == 1) {
            entrain_oscillator_factorised(oscillator, head, plan, first, second);
        } else {
            entrain_oscillator_plain(oscillator, anchors, plan, first, second);
        }
    }
}

#endif

/* One head of oscillator attention with Helium, four queries at a time. */
#ifndef ENTRAIN_OSCILLATOR_MVE_H
#define ENTRAIN_OSCILLATOR_MVE_H

#include "entrain_oscillator_coupling_mve.h"
#include "entrain_oscillator_moments_mve.h"
#include "entrain_oscillator_read_out_mve.h"

/* The fields of four queries, [component][query]. */
ENTRAIN_INLINE void entrain_four_fields(struct entrain_oscillator oscillator, int32_t head,
                                        const int16_t *anchors, struct entrain_oscillator_plan plan,
                                        const int8_t *const queries[ENTRAIN_OSCILLATOR_QUERIES]) {
    const int32_t *bias = oscillator.bias + entrain_head_components(oscillator, head);
    for (int32_t q = 0; q < ENTRAIN_OSCILLATOR_QUERIES; q += 2) {
        if (oscillator.coupling == ENTRAIN_SEPARABLE) {
            entrain_separable_field(oscillator, queries[q], plan, plan.fields + q);
            entrain_separable_field(oscillator, queries[q + 1], plan, plan.fields + q + 1);
        } else {
            entrain_oscillator_couplings(oscillator, head, queries[q], queries[q + 1], plan.weights,
                                         plan.lanes);
            entrain_two_fields(oscillator, anchors, plan.weights, plan, bias, plan.fields + q);
        }
    }
}

ENTRAIN_INLINE void entrain_oscillator_head(struct entrain_oscillator oscillator, int32_t head,
                                            void *scratch) {
    const struct entrain_oscillator_plan plan = entrain_oscillator_plan(oscillator, scratch);
    const int16_t *anchors = entrain_head_anchors(oscillator, head);
    if (oscillator.coupling == ENTRAIN_SEPARABLE) {
        entrain_oscillator_drive(oscillator, head, anchors, plan);
    }
    if (oscillator.exponent == 1) {
        entrain_oscillator_moments(oscillator, head, anchors, plan);
    }
    for (int32_t i = 0; i < oscillator.queries; i += ENTRAIN_OSCILLATOR_QUERIES) {
        const int8_t *queries[ENTRAIN_OSCILLATOR_QUERIES];
        int8_t *results[ENTRAIN_OSCILLATOR_QUERIES];
        for (int32_t q = 0; q < ENTRAIN_OSCILLATOR_QUERIES; q++) {
            const int32_t token = entrain_least(i + q, oscillator.queries - 1);
            queries[q] = entrain_row(oscillator.query, head, token);
            results[q] = entrain_result_row(oscillator.result, head, token);
        }
        entrain_four_fields(oscillator, head, anchors, plan, queries);
        entrain_settle_four(plan.fields, oscillator.d_osc);
        if (oscillator.exponent == 1) {
            entrain_oscillator_factorised(oscillator, head, plan, results);
        } else {
            entrain_oscillator_plain(oscillator, head, anchors, plan, results);
        }
    }
}

#endif

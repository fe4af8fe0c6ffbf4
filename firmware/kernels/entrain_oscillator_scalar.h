/* One head of oscillator attention in plain C, a query at a time. */
#ifndef ENTRAIN_OSCILLATOR_SCALAR_H
#define ENTRAIN_OSCILLATOR_SCALAR_H

/* What a head keeps. Of one query: channels, field, state, and for an exponent above 1 the
 * closenesses of all keys. Of the head: drive [channel][component] as sums and in halves with the
 * bias that belongs to it, moments [channel][component] and sums of values. */
struct entrain_oscillator_plan {
    int32_t components; /* padded */
    int32_t *fields;
    int32_t *bias;
    int32_t *totals;
    int32_t *sums;
    int32_t *closeness;
    int16_t *states;
    int16_t *moments;
    int16_t *drive;
    int16_t *query;
};

ENTRAIN_INLINE struct entrain_oscillator_plan
entrain_oscillator_plan(struct entrain_oscillator oscillator, void *scratch) {
    const bool separable = oscillator.coupling == ENTRAIN_SEPARABLE;
    const bool factorised = oscillator.exponent == 1;
    struct entrain_oscillator_plan plan;
    plan.components = 2 * entrain_component_pairs(oscillator);
    plan.fields = (int32_t *)scratch;
    plan.bias = plan.fields + plan.components;
    plan.totals = plan.bias + plan.components;
    plan.sums = plan.totals + oscillator.d_value;
    plan.closeness = plan.sums + (separable ? oscillator.d_head * plan.components : 0);
    plan.states = (int16_t *)(plan.closeness + (factorised ? 0 : oscillator.keys));
    plan.moments = plan.states + plan.components;
    plan.drive = plan.moments + (factorised ? oscillator.d_value * plan.components : 0);
    plan.query = plan.drive + (separable ? oscillator.d_head * plan.components : 0);
    return plan;
}

/* One component of one token's anchor. */
ENTRAIN_INLINE int32_t entrain_anchor(struct entrain_oscillator oscillator, const int16_t *anchors,
                                      int32_t token, int32_t component) {
    const int32_t place = (token / 2) * 4 + (component % 2) * 2 + token % 2;
    return anchors[(component / 2) * entrain_anchor_pair(oscillator) + place];
}

ENTRAIN_INLINE int32_t entrain_plain_channel(struct entrain_rows rows, const int8_t *row, int32_t c,
                                             bool rectified) {
    const int32_t x = entrain_channel(rows, row, c) - rows.zero_point;
    return (rectified && x < 0) ? 0 : x;
}

ENTRAIN_INLINE int32_t entrain_one_moment(struct entrain_oscillator oscillator,
                                          struct entrain_rows rows, int32_t head,
                                          const int16_t *anchors, int32_t channel,
                                          int32_t component, bool rectified) {
    const int8_t *row = entrain_row(rows, head, 0);
    int32_t sum = 0;
    for (int32_t j = 0; j < oscillator.keys; j++) {
        sum += entrain_plain_channel(rows, row, channel, rectified) *
               entrain_anchor(oscillator, anchors, j, component);
        row += rows.token;
    }
    return sum;
}

/* A = sum_j max(k_j, 0) r_j^T and the bias in its unit. */
ENTRAIN_INLINE void entrain_oscillator_drive(struct entrain_oscillator oscillator, int32_t head,
                                             const int16_t *anchors,
                                             struct entrain_oscillator_plan plan) {
    const int32_t size = oscillator.d_head * plan.components;
    const int32_t *bias = oscillator.bias + entrain_head_components(oscillator, head);
    uint32_t magnitudes = 0;
    for (int32_t c = 0; c < oscillator.d_head; c++) {
        for (int32_t o = 0; o < plan.components; o++) {
            const int32_t sum =
                entrain_one_moment(oscillator, oscillator.key, head, anchors, c, o, true);
            plan.sums[c * plan.components + o] = sum;
            magnitudes |= entrain_magnitude(sum);
        }
    }
    const int32_t shift = entrain_drive_shift(magnitudes, oscillator.weight_bits);
    for (int32_t i = 0; i < size; i++) {
        plan.drive[i] = entrain_half(plan.sums[i], shift, oscillator.weight_bits);
    }
    for (int32_t o = 0; o < plan.components; o++) {
        plan.bias[o] = entrain_rounded(bias[o], shift);
    }
}

ENTRAIN_INLINE void entrain_oscillator_separable(struct entrain_oscillator oscillator,
                                                 struct entrain_oscillator_plan plan) {
    for (int32_t o = 0; o < plan.components; o++) {
        int32_t sum = 0;
        for (int32_t c = 0; c < oscillator.d_head; c++) {
            sum += plan.query[c] * plan.drive[c * plan.components + o];
        }
        plan.fields[o] = sum * (1 << oscillator.lift) + plan.bias[o];
    }
}

ENTRAIN_INLINE void entrain_oscillator_pairs(struct entrain_oscillator oscillator, int32_t head,
                                             const int16_t *anchors,
                                             struct entrain_oscillator_plan plan) {
    const int32_t *bias = oscillator.bias + entrain_head_components(oscillator, head);
    const int8_t *key = entrain_row(oscillator.key, head, 0);
    for (int32_t o = 0; o < plan.components; o++) {
        plan.fields[o] = 0;
    }
    for (int32_t j = 0; j < oscillator.keys; j++) {
        int32_t score = 0;
        for (int32_t c = 0; c < oscillator.d_head; c++) {
            score += plan.query[c] * entrain_plain_channel(oscillator.key, key, c, false);
        }
        const int32_t weight = entrain_coupling_weight(oscillator, score);
        for (int32_t o = 0; o < plan.components; o++) {
            plan.fields[o] += weight * entrain_anchor(oscillator, anchors, j, o);
        }
        key += oscillator.key.token;
    }
    for (int32_t o = 0; o < plan.components; o++) {
        plan.fields[o] = plan.fields[o] * (1 << oscillator.lift) + bias[o];
    }
}

/* M and V of a head. */
ENTRAIN_INLINE void entrain_oscillator_moments(struct entrain_oscillator oscillator, int32_t head,
                                               const int16_t *anchors,
                                               struct entrain_oscillator_plan plan) {
    for (int32_t c = 0; c < oscillator.d_value; c++) {
        const int8_t *value = entrain_row(oscillator.value, head, 0);
        int32_t total = 0;
        for (int32_t j = 0; j < oscillator.keys; j++) {
            total += entrain_plain_channel(oscillator.value, value, c, false);
            value += oscillator.value.token;
        }
        plan.totals[c] = total * oscillator.value_factor;
        for (int32_t o = 0; o < plan.components; o++) {
            const int32_t sum =
                entrain_one_moment(oscillator, oscillator.value, head, anchors, c, o, false);
            plan.moments[c * plan.components + o] = entrain_half(sum, oscillator.moment_shift, 15);
        }
    }
}

ENTRAIN_INLINE void entrain_oscillator_factorised(struct entrain_oscillator oscillator,
                                                  int32_t head, int8_t *result,
                                                  struct entrain_oscillator_plan plan) {
    const int16_t *sums = oscillator.anchor_sums + entrain_head_components(oscillator, head);
    int32_t weight = oscillator.token_weight;
    for (int32_t o = 0; o < plan.components; o++) {
        weight += plan.states[o] * sums[o];
    }
    const int32_t factor = entrain_read_out_factor(oscillator, weight);
    for (int32_t c = 0; c < oscillator.d_value; c++) {
        int32_t numerator = plan.totals[c];
        for (int32_t o = 0; o < plan.components; o++) {
            numerator += plan.states[o] * plan.moments[c * plan.components + o];
        }
        result[c] = entrain_read_out(oscillator, numerator, factor);
    }
}

/* 1 + z.r of all keys, 0 at least; the largest of them. */
ENTRAIN_INLINE int32_t entrain_oscillator_closeness(struct entrain_oscillator oscillator,
                                                    const int16_t *anchors,
                                                    struct entrain_oscillator_plan plan) {
    int32_t largest = 0;
    for (int32_t j = 0; j < oscillator.keys; j++) {
        int32_t sum = oscillator.one;
        for (int32_t o = 0; o < plan.components; o++) {
            sum += plan.states[o] * entrain_anchor(oscillator, anchors, j, o);
        }
        sum = (sum > 0) ? sum : 0;
        largest = (sum > largest) ? sum : largest;
        plan.closeness[j] = sum;
    }
    return largest;
}

ENTRAIN_INLINE void entrain_oscillator_plain(struct entrain_oscillator oscillator, int32_t head,
                                             const int16_t *anchors, int8_t *result,
                                             struct entrain_oscillator_plan plan) {
    const int32_t largest = entrain_oscillator_closeness(oscillator, anchors, plan);
    const struct entrain_closeness_scale scale = entrain_closeness_scale(oscillator, largest);
    int32_t total = 0;
    for (int32_t j = 0; j < oscillator.keys; j++) {
        plan.closeness[j] = entrain_closeness_weight(oscillator, plan.closeness[j], scale);
        total += plan.closeness[j];
    }
    const int32_t factor = entrain_read_out_factor(oscillator, total);
    for (int32_t c = 0; c < oscillator.d_value; c++) {
        const int8_t *value = entrain_row(oscillator.value, head, 0);
        int32_t numerator = 0;
        for (int32_t j = 0; j < oscillator.keys; j++) {
            numerator +=
                plan.closeness[j] * entrain_plain_channel(oscillator.value, value, c, false);
            value += oscillator.value.token;
        }
        result[c] = entrain_read_out(oscillator, numerator, factor);
    }
}

ENTRAIN_INLINE void entrain_oscillator_head(struct entrain_oscillator oscillator, int32_t head,
                                            void *scratch) {
    const struct entrain_oscillator_plan plan = entrain_oscillator_plan(oscillator, scratch);
    const int16_t *anchors = entrain_head_anchors(oscillator, head);
    const bool separable = oscillator.coupling == ENTRAIN_SEPARABLE;
    if (separable) {
        entrain_oscillator_drive(oscillator, head, anchors, plan);
    }
    if (oscillator.exponent == 1) {
        entrain_oscillator_moments(oscillator, head, anchors, plan);
    }
    for (int32_t i = 0; i < oscillator.queries; i++) {
        const int8_t *query = entrain_row(oscillator.query, head, i);
        int8_t *result = entrain_result_row(oscillator.result, head, i);
        for (int32_t c = 0; c < oscillator.d_head; c++) {
            plan.query[c] = (int16_t)entrain_plain_channel(oscillator.query, query, c, separable);
        }
        if (separable) {
            entrain_oscillator_separable(oscillator, plan);
        } else {
            entrain_oscillator_pairs(oscillator, head, anchors, plan);
        }
        plan.states[plan.components - 1] = 0; /* the padding, if there is any */
        entrain_settle(plan.fields, plan.states, oscillator.d_osc);
        if (oscillator.exponent == 1) {
            entrain_oscillator_factorised(oscillator, head, result, plan);
        } else {
            entrain_oscillator_plain(oscillator, head, anchors, result, plan);
        }
    }
}

#endif

/* One head of linear attention in plain C, two features or two queries at a time. */
#ifndef ENTRAIN_LINEAR_ATTENTION_SCALAR_H
#define ENTRAIN_LINEAR_ATTENTION_SCALAR_H

/* What a head keeps. Channel d_value is that of the weights. */
struct entrain_linear_plan {
    int32_t *sums;    /* [feature][channel] */
    int16_t *moments; /* [channel][feature] */
    int16_t *keys;    /* of two features: [key][2] */
    int16_t *queries; /* of two queries: [feature][2] */
};

ENTRAIN_INLINE struct entrain_linear_plan entrain_linear_plan(struct entrain_linear linear,
                                                              void *scratch) {
    struct entrain_linear_plan plan;
    plan.sums = (int32_t *)scratch;
    plan.moments = (int16_t *)(plan.sums + linear.d_head * (linear.d_value + 1));
    plan.keys = plan.moments + linear.d_head * (linear.d_value + 1);
    plan.queries = plan.keys + 2 * linear.keys;
    return plan;
}

/* Features f and g of all keys; their sums. */
ENTRAIN_INLINE void entrain_linear_keys(struct entrain_linear linear,
                                        struct entrain_linear_plan plan, int32_t head, int32_t f,
                                        int32_t g, uint32_t totals[2]) {
    const int8_t *key = entrain_row(linear.key, head, 0);
    totals[0] = 0;
    totals[1] = 0;
    for (int32_t j = 0; j < linear.keys; j++) {
        const int32_t a = entrain_feature(linear.key_features, key[f]);
        const int32_t b = entrain_feature(linear.key_features, key[g]);
        plan.keys[2 * j] = (int16_t)a;
        plan.keys[2 * j + 1] = (int16_t)b;
        totals[0] += (uint32_t)a;
        totals[1] += (uint32_t)b;
        key += linear.key.token;
    }
}

/* Sums of two features with all values. The zero point comes off the sums, modulo 2^32. */
ENTRAIN_INLINE void entrain_linear_sums(struct entrain_linear linear,
                                        struct entrain_linear_plan plan, int32_t head,
                                        const uint32_t totals[2], int32_t *first, int32_t *second) {
    const uint32_t zero = (uint32_t)-linear.value.zero_point;
    for (int32_t c = 0; c < linear.d_value; c++) {
        const int8_t *value = entrain_row(linear.value, head, 0);
        uint32_t a = totals[0] * zero;
        uint32_t b = totals[1] * zero;
        for (int32_t j = 0; j < linear.keys; j++) {
            const uint32_t v = (uint32_t)entrain_channel(linear.value, value, c);
            a += (uint32_t)plan.keys[2 * j] * v;
            b += (uint32_t)plan.keys[2 * j + 1] * v;
            value += linear.value.token;
        }
        first[c] = (int32_t)a;
        second[c] = (int32_t)b;
    }
    first[linear.d_value] = (int32_t)(totals[0] << linear.value_bits);
    second[linear.d_value] = (int32_t)(totals[1] << linear.value_bits);
}

ENTRAIN_INLINE void entrain_linear_moments(struct entrain_linear linear,
                                           struct entrain_linear_plan plan, int32_t head) {
    const int32_t width = linear.d_value + 1;
    uint32_t largest = 0;
    for (int32_t f = 0; f < linear.d_head; f += 2) {
        const int32_t g = entrain_least(f + 1, linear.d_head - 1);
        uint32_t totals[2];
        entrain_linear_keys(linear, plan, head, f, g, totals);
        entrain_linear_sums(linear, plan, head, totals, plan.sums + f * width,
                            plan.sums + g * width);
        largest = (totals[0] > largest) ? totals[0] : largest;
        largest = (totals[1] > largest) ? totals[1] : largest;
    }
    const struct entrain_moment_shift shift = entrain_moment_shift(linear, (int32_t)largest);
    for (int32_t f = 0; f < linear.d_head; f++) {
        for (int32_t c = 0; c < width; c++) {
            plan.moments[c * linear.d_head + f] =
                (int16_t)entrain_moment(plan.sums[f * width + c], shift);
        }
    }
}

/* What two queries read of a channel of the moments. */
ENTRAIN_INLINE void entrain_linear_read(struct entrain_linear linear,
                                        struct entrain_linear_plan plan, int32_t channel,
                                        int32_t read[2]) {
    const int16_t *moments = plan.moments + channel * linear.d_head;
    read[0] = 0;
    read[1] = 0;
    for (int32_t f = 0; f < linear.d_head; f++) {
        read[0] += moments[f] * plan.queries[2 * f];
        read[1] += moments[f] * plan.queries[2 * f + 1];
    }
}

ENTRAIN_INLINE void entrain_linear_head(struct entrain_linear linear, int32_t head, void *scratch) {
    const struct entrain_linear_plan plan = entrain_linear_plan(linear, scratch);
    entrain_linear_moments(linear, plan, head);
    for (int32_t i = 0; i < linear.queries; i += 2) {
        const int32_t next = entrain_least(i + 1, linear.queries - 1);
        const int8_t *query = entrain_row(linear.query, head, i);
        const int8_t *neighbour = entrain_row(linear.query, head, next);
        for (int32_t f = 0; f < linear.d_head; f++) {
            plan.queries[2 * f] = (int16_t)entrain_feature(linear.query_features, query[f]);
            plan.queries[2 * f + 1] = (int16_t)entrain_feature(linear.query_features, neighbour[f]);
        }
        int8_t *first = entrain_result_row(linear.result, head, i);
        int8_t *second = entrain_result_row(linear.result, head, next);
        int32_t read[2];
        entrain_linear_read(linear, plan, linear.d_value, read);
        const int32_t f0 = entrain_linear_factor(linear, read[0]);
        const int32_t f1 = entrain_linear_factor(linear, read[1]);
        for (int32_t c = 0; c < linear.d_value; c++) {
            entrain_linear_read(linear, plan, c, read);
            first[c] = entrain_linear_average(linear, read[0], f0);
            second[c] = entrain_linear_average(linear, read[1], f1);
        }
    }
}

#endif

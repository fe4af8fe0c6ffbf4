/* What a head of oscillator attention keeps with Helium, and its sums over all tokens. */
#ifndef ENTRAIN_OSCILLATOR_MOMENTS_MVE_H
#define ENTRAIN_OSCILLATOR_MOMENTS_MVE_H

#define ENTRAIN_OSCILLATOR_QUERIES 4
#define ENTRAIN_LANES_OF_BYTES     16
#define ENTRAIN_LANES_OF_HALVES    8
#define ENTRAIN_LANES_OF_WORDS     4

/* What a head keeps.
 *
 * Of four queries: fields and then states [component][query], couplings or read-out weights
 * [query][key]. Of the head: the drive [component][channel] as sums and in halves, the bias in the
 * unit of the fields, the moments [component][channel] with the sums of values; for an exponent
 * above 1, of one query at a time, closenesses. */
struct entrain_oscillator_plan {
    int32_t components; /* padded */
    int32_t channels;   /* of the drive */
    int32_t values;     /* channels of the moments */
    int32_t lanes;      /* keys of a row of weights */
    int32_t *fields;
    int32_t *bias;
    int32_t *drive_sums;
    int32_t *totals;
    int32_t *closeness;
    int16_t *drive;
    int16_t *weights;
    int16_t *moments;
};

ENTRAIN_INLINE struct entrain_oscillator_plan
entrain_oscillator_plan(struct entrain_oscillator oscillator, void *scratch) {
    const bool separable = oscillator.coupling == ENTRAIN_SEPARABLE;
    const bool factorised = oscillator.exponent == 1;
    struct entrain_oscillator_plan plan;
    plan.components = 2 * entrain_component_pairs(oscillator);
    plan.channels = entrain_up_to(oscillator.d_head, ENTRAIN_LANES_OF_HALVES);
    plan.values = entrain_up_to(oscillator.d_value, ENTRAIN_LANES_OF_WORDS);
    plan.lanes = entrain_up_to(oscillator.keys, ENTRAIN_LANES_OF_HALVES);
    plan.fields = (int32_t *)scratch;
    plan.bias = plan.fields + ENTRAIN_OSCILLATOR_QUERIES * plan.components;
    plan.drive_sums = plan.bias + plan.components;
    plan.totals = plan.drive_sums + (separable ? plan.components * plan.channels : 0);
    plan.closeness = plan.totals + (factorised ? plan.values : 0);
    plan.drive = (int16_t *)(plan.closeness + (factorised ? 0 : plan.lanes));
    plan.weights = plan.drive + (separable ? plan.components * plan.channels : 0);
    plan.moments =
        plan.weights + (separable && factorised ? 0 : ENTRAIN_OSCILLATOR_QUERIES * plan.lanes);
    return plan;
}

/* Four channels without their zero point, 0 behind the last one. */
ENTRAIN_INLINE int32x4_t entrain_four_words(struct entrain_rows rows, const int8_t *row,
                                            int32_t present, bool rectified) {
    const mve_pred16_t lanes = vctp32q((uint32_t)present);
    int32x4_t words = rows.is_unsigned
                          ? vreinterpretq_s32_u32(vldrbq_z_u32((const uint8_t *)row, lanes))
                          : vldrbq_z_s32(row, lanes);
    if (present >= ENTRAIN_LANES_OF_WORDS) {
        words = rows.is_unsigned ? vreinterpretq_s32_u32(vldrbq_u32((const uint8_t *)row))
                                 : vldrbq_s32(row);
    }
    if (rows.zero_point != 0) {
        words = vsubq_x_n_s32(words, rows.zero_point, lanes);
        words = vpselq_s32(words, vdupq_n_s32(0), lanes);
    }
    const bool positive = rows.is_unsigned && rows.zero_point == 0;
    return (rectified && !positive) ? vmaxq_s32(words, vdupq_n_s32(0)) : words;
}

/* Eight channels likewise, in halves. */
ENTRAIN_INLINE int16x8_t entrain_eight_halves(struct entrain_rows rows, const int8_t *row,
                                              int32_t present, bool rectified) {
    const mve_pred16_t lanes = vctp16q((uint32_t)present);
    int16x8_t halves = rows.is_unsigned
                           ? vreinterpretq_s16_u16(vldrbq_z_u16((const uint8_t *)row, lanes))
                           : vldrbq_z_s16(row, lanes);
    if (present >= ENTRAIN_LANES_OF_HALVES) {
        halves = rows.is_unsigned ? vreinterpretq_s16_u16(vldrbq_u16((const uint8_t *)row))
                                  : vldrbq_s16(row);
    }
    if (rows.zero_point != 0) {
        halves = vsubq_x_n_s16(halves, (int16_t)rows.zero_point, lanes);
        halves = vpselq_s16(halves, vdupq_n_s16(0), lanes);
    }
    const bool positive = rows.is_unsigned && rows.zero_point == 0;
    return (rectified && !positive) ? vmaxq_s16(halves, vdupq_n_s16(0)) : halves;
}

/* The sums over all tokens of four channels: times two components of the anchors, and alone. */
struct entrain_moments {
    int32x4_t first;
    int32x4_t second;
    int32x4_t total;
};

ENTRAIN_INLINE void entrain_add_moment(struct entrain_moments *moments, int32x4_t channels,
                                       const int16_t *anchor) {
    moments->first = vmlaq_n_s32(moments->first, channels, anchor[0]);
    moments->second = vmlaq_n_s32(moments->second, channels, anchor[2]);
    moments->total = vaddq_s32(moments->total, channels);
}

ENTRAIN_INLINE struct entrain_moments entrain_four_moments(struct entrain_rows rows,
                                                           const int8_t *row, int32_t tokens,
                                                           int32_t present, bool rectified,
                                                           const int16_t *anchors) {
    const int32x4_t none = vdupq_n_s32(0);
    struct entrain_moments moments = {none, none, none};
    for (int32_t t = 0; t < tokens / 2; t++) {
        entrain_add_moment(&moments, entrain_four_words(rows, row, present, rectified), anchors);
        row += rows.token;
        entrain_add_moment(&moments, entrain_four_words(rows, row, present, rectified),
                           anchors + 1);
        row += rows.token;
        anchors += 4;
    }
    if (tokens % 2 != 0) {
        entrain_add_moment(&moments, entrain_four_words(rows, row, present, rectified), anchors);
    }
    return moments;
}

/* x / 2^shift to nearest, in 15 bits or fewer and a sign, as halves in words. */
ENTRAIN_INLINE int32x4_t entrain_four_halves(int32x4_t x, int32_t shift, int32_t bits) {
    return vminq_s32(vrshlq_n_s32(x, -shift), vdupq_n_s32((1 << bits) - 1));
}

ENTRAIN_INLINE void entrain_oscillator_drive(struct entrain_oscillator oscillator, int32_t head,
                                             const int16_t *anchors,
                                             struct entrain_oscillator_plan plan) {
    const int8_t *key = entrain_row(oscillator.key, head, 0);
    uint32x4_t magnitudes = vdupq_n_u32(0);
    for (int32_t o = 0; o < plan.components; o += 2) {
        const int16_t *pair = anchors + (o / 2) * entrain_anchor_pair(oscillator);
        int32_t *sums = plan.drive_sums + o * plan.channels;
        for (int32_t c = 0; c < oscillator.d_head; c += ENTRAIN_LANES_OF_WORDS) {
            const struct entrain_moments moments = entrain_four_moments(
                oscillator.key, key + c, oscillator.keys, oscillator.d_head - c, true, pair);
            const uint32x4_t first = vreinterpretq_u32_s32(vabsq_s32(moments.first));
            const uint32x4_t second = vreinterpretq_u32_s32(vabsq_s32(moments.second));
            magnitudes = vorrq_u32(magnitudes, vorrq_u32(first, second));
            vstrwq_s32(sums + c, moments.first);
            vstrwq_s32(sums + plan.channels + c, moments.second);
        }
    }
    const int32_t shift = entrain_drive_shift(vmaxvq_u32(0, magnitudes), oscillator.weight_bits);
    for (int32_t o = 0; o < plan.components; o++) {
        const int32_t *sums = plan.drive_sums + o * plan.channels;
        int16_t *drive = plan.drive + o * plan.channels;
        if (plan.channels > oscillator.d_head) {
            vstrhq_s16(drive + plan.channels - ENTRAIN_LANES_OF_HALVES, vdupq_n_s16(0));
        }
        for (int32_t c = 0; c < oscillator.d_head; c += ENTRAIN_LANES_OF_WORDS) {
            vstrhq_s32(drive + c,
                       entrain_four_halves(vldrwq_s32(sums + c), shift, oscillator.weight_bits));
        }
    }
    const int32_t *bias = oscillator.bias + entrain_head_components(oscillator, head);
    for (int32_t o = 0; o < plan.components; o++) {
        plan.bias[o] = entrain_rounded(bias[o], shift);
    }
}

ENTRAIN_INLINE void entrain_oscillator_moments(struct entrain_oscillator oscillator, int32_t head,
                                               const int16_t *anchors,
                                               struct entrain_oscillator_plan plan) {
    const int8_t *value = entrain_row(oscillator.value, head, 0);
    for (int32_t o = 0; o < plan.components; o += 2) {
        const int16_t *pair = anchors + (o / 2) * entrain_anchor_pair(oscillator);
        int16_t *to = plan.moments + o * plan.values;
        for (int32_t c = 0; c < oscillator.d_value; c += ENTRAIN_LANES_OF_WORDS) {
            const struct entrain_moments moments = entrain_four_moments(
                oscillator.value, value + c, oscillator.keys, oscillator.d_value - c, false, pair);
            vstrhq_s32(to + c, entrain_four_halves(moments.first, oscillator.moment_shift, 15));
            vstrhq_s32(to + plan.values + c,
                       entrain_four_halves(moments.second, oscillator.moment_shift, 15));
            vstrwq_s32(plan.totals + c, vmulq_n_s32(moments.total, oscillator.value_factor));
        }
    }
}

#endif

/* Four sums at once to bytes with Helium, by 32 bits of the product where those are enough. */
#ifndef ENTRAIN_MATMUL_RESCALE_MVE_H
#define ENTRAIN_MATMUL_RESCALE_MVE_H

/* Four steps, at the lowest half of each lane, to bytes at the lowest of each lane: the zero point
 * added, clipped. Narrowed in place by assembly: the compiler would copy first. */
ENTRAIN_INLINE uint32x4_t entrain_matmul_clipped(int32x4_t steps, int32_t zero_point,
                                                 struct entrain_rescale to) {
    const int16x8_t halves = vreinterpretq_s16_s32(steps);
    int16x8_t moved = (zero_point == 0) ? halves : vqaddq_n_s16(halves, (int16_t)zero_point);
    if (to.is_unsigned) {
        __asm("vqmovunb.s16 %q0, %q0" : "+w"(moved));
        uint8x16_t bytes = vreinterpretq_u8_s16(moved);
        bytes = (to.low > 0) ? vmaxq_u8(bytes, vdupq_n_u8((uint8_t)to.low)) : bytes;
        bytes = (to.high < 255) ? vminq_u8(bytes, vdupq_n_u8((uint8_t)to.high)) : bytes;
        return vreinterpretq_u32_u8(bytes);
    }
    __asm("vqmovnb.s16 %q0, %q0" : "+w"(moved));
    int8x16_t bytes = vreinterpretq_s8_s16(moved);
    bytes = (to.low > -128) ? vmaxq_s8(bytes, vdupq_n_s8((int8_t)to.low)) : bytes;
    bytes = (to.high < 127) ? vminq_s8(bytes, vdupq_n_s8((int8_t)to.high)) : bytes;
    return vreinterpretq_u32_s8(bytes);
}

/* What four columns are multiplied by: a vector, or one number for all. */
struct entrain_matmul_multipliers {
    int32x4_t each;
    int32_t all;
};

/* Rescaled without regard to the low words of the products, which cannot matter: shift >= 33. The
 * doubling product is the high word and one bit more. */
ENTRAIN_INLINE uint32x4_t entrain_matmul_narrow_four(int32x4_t sums,
                                                     struct entrain_matmul_multipliers by,
                                                     struct entrain_matmul of) {
    const int32_t drop = of.rescale.shift - 31;
    int32x4_t fine =
        of.rescale.for_each_channel ? vqdmulhq_s32(sums, by.each) : vqdmulhq_n_s32(sums, by.all);
    if (drop > 16) {
        fine = vshrq_n_s32(fine, drop > 16 ? drop - 16 : 1);
    }
    __asm("vqrshrnb.s32 %q0, %q0, %1" : "+w"(fine) : "i"(drop > 16 ? 16 : drop));
    return entrain_matmul_clipped(fine, of.rescale.zero_point, of.rescale);
}

/* Four 64-bit totals as their high words and their low words. The low words of several summands are
 * added by halving, so that no carry is lost; the bits halved away are below those that count. */
struct entrain_matmul_totals {
    int32x4_t high;
    uint32x4_t low;
};

/* sums * multipliers + constant, the low words halved once. */
ENTRAIN_INLINE struct entrain_matmul_totals
entrain_matmul_scaled(int32x4_t sums, int32x4_t multipliers, int64_t constant) {
    const uint32x4_t low = vreinterpretq_u32_s32(vmulq_s32(sums, multipliers));
    return (struct entrain_matmul_totals){
        vaddq_n_s32(vmulhq_s32(sums, multipliers), (int32_t)(constant >> 32)),
        vhaddq_n_u32(low, (uint32_t)constant)};
}

/* sums * multipliers + residuals * multiplier + constant, the low words halved twice. An odd
 * constant's last bit is added by rounding up in the first halving. */
ENTRAIN_INLINE struct entrain_matmul_totals
entrain_matmul_joined(int32x4_t sums, int32x4_t multipliers, int32x4_t residuals,
                      int32_t multiplier, int64_t constant) {
    const int32x4_t by = vdupq_n_s32(multiplier);
    const uint32x4_t first = vreinterpretq_u32_s32(vmulq_s32(sums, multipliers));
    const uint32x4_t second = vreinterpretq_u32_s32(vmulq_s32(residuals, by));
    const uint32x4_t both =
        (constant % 2 != 0) ? vrhaddq_u32(first, second) : vhaddq_u32(first, second);
    const int32x4_t high = vaddq_s32(vmulhq_s32(sums, multipliers), vmulhq_s32(residuals, by));
    return (struct entrain_matmul_totals){vaddq_n_s32(high, (int32_t)(constant >> 32)),
                                          vhaddq_n_u32(both, (uint32_t)constant / 2)};
}

/* The totals divided by 2^shift, down; their low words have been halved `halved` times. */
ENTRAIN_INLINE int32x4_t entrain_matmul_shifted(struct entrain_matmul_totals totals, int32_t halved,
                                                int32_t shift) {
    const int32_t taken = (shift < 32) ? shift : 32;
    const uint32x4_t low = (taken == halved)
                               ? totals.low
                               : vshrq_n_u32(totals.low, taken == halved ? 1 : taken - halved);
    const int32x4_t high =
        (taken == 32) ? totals.high : vshlq_n_s32(totals.high, taken == 32 ? 0 : 32 - taken);
    const int32x4_t sum = vaddq_s32(high, vreinterpretq_s32_u32(low));
    return (shift > 32) ? vshrq_n_s32(sum, shift > 32 ? shift - 32 : 1) : sum;
}

ENTRAIN_INLINE int32x4_t entrain_matmul_residuals(const uint8_t *residual, int32_t columns,
                                                  struct entrain_matmul of) {
    const mve_pred16_t lanes = vctp32q((uint32_t)columns);
    if (of.residual.is_unsigned) {
        return vreinterpretq_s32_u32((columns == 4) ? vldrbq_u32(residual)
                                                    : vldrbq_z_u32(residual, lanes));
    }
    const int8_t *bytes = (const int8_t *)residual;
    return (columns == 4) ? vldrbq_s32(bytes) : vldrbq_z_s32(bytes, lanes);
}

/* Rescaled in 64 bits, as entrain_matmul_wide does; the constant is even if there is a residual. */
ENTRAIN_INLINE uint32x4_t entrain_matmul_wide_four(int32x4_t sums,
                                                   struct entrain_matmul_multipliers by,
                                                   const uint8_t *residual, int32_t columns,
                                                   struct entrain_matmul of) {
    const int32_t shift = of.rescale.shift;
    const int64_t constant = entrain_matmul_constant(of);
    const int32x4_t multipliers = of.rescale.for_each_channel ? by.each : vdupq_n_s32(by.all);
    int32x4_t steps;
    if (residual != NULL) {
        const int32x4_t residuals = entrain_matmul_residuals(residual, columns, of);
        steps = entrain_matmul_shifted(
            entrain_matmul_joined(sums, multipliers, residuals, of.residual.multiplier, constant),
            2, shift);
    } else {
        steps =
            entrain_matmul_shifted(entrain_matmul_scaled(sums, multipliers, constant), 1, shift);
    }
    __asm("vqmovnb.s32 %q0, %q0" : "+w"(steps));
    const int32_t zero_point = entrain_matmul_joins(of) ? 0 : of.rescale.zero_point;
    return entrain_matmul_clipped(steps, zero_point, of.rescale);
}

ENTRAIN_INLINE int32x4_t entrain_load_four(const int32_t *numbers, int32_t count) {
    return (count == 4) ? vldrwq_s32(numbers) : vldrwq_z_s32(numbers, vctp32q((uint32_t)count));
}

ENTRAIN_INLINE struct entrain_matmul_multipliers
entrain_load_multipliers(const int32_t *multipliers, int32_t columns, struct entrain_matmul of) {
    if (of.rescale.for_each_channel) {
        return (struct entrain_matmul_multipliers){entrain_load_four(multipliers, columns), 0};
    }
    return (struct entrain_matmul_multipliers){vdupq_n_s32(0), *multipliers};
}

/* Four outputs of one row, or the first `columns` of them. */
ENTRAIN_INLINE void entrain_matmul_store_four(int32x4_t sums, struct entrain_matmul_multipliers by,
                                              struct entrain_matmul_operands to, int32_t columns,
                                              struct entrain_matmul of) {
    const bool is_wide = to.residual != NULL || of.rescale.shift < 33;
    const uint32x4_t bytes = is_wide ? entrain_matmul_wide_four(sums, by, to.residual, columns, of)
                                     : entrain_matmul_narrow_four(sums, by, of);
    const mve_pred16_t lanes = vctp32q((uint32_t)columns);
    if (of.output_gap > 0) {
        const uint32x4_t places = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)of.output_gap + 1);
        if (columns == 4) {
            vstrbq_scatter_offset_u32(to.output, places, bytes);
        } else {
            vstrbq_scatter_offset_p_u32(to.output, places, bytes, lanes);
        }
    } else if (columns == 4) {
        vstrbq_u32(to.output, bytes);
    } else {
        vstrbq_p_u32(to.output, bytes, lanes);
    }
}

#endif

/* Sums of products with Helium: sixteen products an instruction.
 *
 * Rows of input and weights are loaded a vector at a time, each row used for all others of the
 * block. The sums of up to three rows with two rows of weights are one statement of assembly: the
 * compiler would begin with more sums than there are registers of even number for them. */
#ifndef ENTRAIN_MATMUL_SUMS_MVE_H
#define ENTRAIN_MATMUL_SUMS_MVE_H

#define ENTRAIN_LANES           16
#define ENTRAIN_MOST_BLOCK_ROWS 3

/* Sixteen bytes, behind which the pointer then stands. */
ENTRAIN_INLINE int8x16_t entrain_next_vector(const int8_t **bytes) {
    int8x16_t vector;
    __asm volatile("vldrb.8 %q0, [%1], #16" : "=w"(vector), "+r"(*bytes) : : "memory");
    return vector;
}

/* The next vector of a row of input, of which `left` bytes are left; behind them, zeros. */
ENTRAIN_INLINE int8x16_t entrain_matmul_input(const int8_t **row, int32_t left,
                                              struct entrain_matmul of) {
    const int8x16_t flip = vdupq_n_s8(-128);
    if (left < ENTRAIN_LANES) {
        const mve_pred16_t lanes = vctp8q((uint32_t)left);
        const int8x16_t rest = vldrbq_z_s8(*row, lanes);
        return of.input_is_unsigned ? veorq_m_s8(rest, rest, flip, lanes) : rest;
    }
    const int8x16_t vector = entrain_next_vector(row);
    return of.input_is_unsigned ? veorq_s8(vector, flip) : vector;
}

/* Input that fits so many vectors stays in registers for all columns. */
#define ENTRAIN_HELD_VECTORS 4

struct entrain_matmul_held {
    int8x16_t vector[ENTRAIN_HELD_VECTORS];
};

ENTRAIN_INLINE int32_t entrain_matmul_vectors(struct entrain_matmul of) {
    return (of.depth + ENTRAIN_LANES - 1) / ENTRAIN_LANES;
}

ENTRAIN_INLINE bool entrain_matmul_holds(int32_t rows, struct entrain_matmul of) {
    return rows * entrain_matmul_vectors(of) <= ENTRAIN_HELD_VECTORS;
}

/* Vector 0 of all rows, then vector 1 and so on; behind them again the first one. */
ENTRAIN_INLINE struct entrain_matmul_held entrain_matmul_hold(const uint8_t *input, int32_t rows,
                                                              struct entrain_matmul of) {
    struct entrain_matmul_held held;
    if (entrain_matmul_holds(rows, of)) {
        const int32_t count = rows * entrain_matmul_vectors(of);
#pragma GCC unroll 4
        for (int32_t row = 0; row < rows; row++) {
            const int8_t *bytes = (const int8_t *)input + row * of.input_stride;
#pragma GCC unroll 4
            for (int32_t i = row; i < count; i += rows) {
                const int32_t k = i / rows * ENTRAIN_LANES;
                held.vector[i] = entrain_matmul_input(&bytes, of.depth - k, of);
            }
        }
#pragma GCC unroll 4
        for (int32_t i = count; i < ENTRAIN_HELD_VECTORS; i++) {
            held.vector[i] = held.vector[0];
        }
    }
    return held;
}

/* Sums of the same four columns of several rows. */
struct entrain_matmul_sums {
    int32x4_t row[ENTRAIN_MOST_BLOCK_ROWS];
};

/* Two rows of weights. */
struct entrain_matmul_weights {
    const int8_t *left;
    const int8_t *right;
};

/* The sums of one to three rows with two rows of weights. */
struct entrain_matmul_tile {
    int32_t left[ENTRAIN_MOST_BLOCK_ROWS];
    int32_t right[ENTRAIN_MOST_BLOCK_ROWS];
};

/* A vector of a row of input; of the last one what belongs to the row, and zeros. */
#define ENTRAIN_TILE_LOAD(row)      "vldrb.8 q2, [%[x" row "]], #16\n\t"
#define ENTRAIN_TILE_LOAD_REST(row) "vpst\n\tvldrbt.8 q2, [%[x" row "]]\n\t"

/* Such a vector against both of weights, and the same for one to three rows. */
#define ENTRAIN_TILE_ROW(load, dot, row)                                                           \
    load(row) dot " %[l" row "], q2, q0\n\t" dot " %[r" row "], q2, q1\n\t"
#define ENTRAIN_TILE_1(load, dot) ENTRAIN_TILE_ROW(load, dot, "0")
#define ENTRAIN_TILE_2(load, dot) ENTRAIN_TILE_1(load, dot) ENTRAIN_TILE_ROW(load, dot, "1")
#define ENTRAIN_TILE_3(load, dot) ENTRAIN_TILE_2(load, dot) ENTRAIN_TILE_ROW(load, dot, "2")
#define ENTRAIN_TILE_WEIGHTS      "vldrb.8 q0, [%[w0]], #16\n\tvldrb.8 q1, [%[w1]], #16\n\t"

/* Beginning the sums, adding to them, and adding the rest of the rows. */
#define ENTRAIN_TILE_BEGIN(rows)    ENTRAIN_TILE_WEIGHTS rows(ENTRAIN_TILE_LOAD, "vmladav.s8")
#define ENTRAIN_TILE_ADD(rows)      ENTRAIN_TILE_WEIGHTS rows(ENTRAIN_TILE_LOAD, "vmladava.s8")
#define ENTRAIN_TILE_ADD_REST(rows) ENTRAIN_TILE_WEIGHTS rows(ENTRAIN_TILE_LOAD_REST, "vmladava.s8")
#define ENTRAIN_TILE_IF_REST        ".if %c[rest]\n\t"
#define ENTRAIN_TILE_END_REST       ".endif"

/* One more vector if there are more than `count` of the few ones. Not by .rept: the compiler must
 * see how long the code may become, to keep its constants within reach. */
#define ENTRAIN_TILE_FEW(count, rows)                                                              \
    ".if %c[few] > " count "\n\t" ENTRAIN_TILE_ADD(rows) ".endif\n\t"
#define ENTRAIN_TILE_UP_TO_THREE(rows)                                                             \
    ENTRAIN_TILE_FEW("0", rows) ENTRAIN_TILE_FEW("1", rows) ENTRAIN_TILE_FEW("2", rows)
#define ENTRAIN_TILE_FOUR(rows)                                                                    \
    ENTRAIN_TILE_ADD(rows) ENTRAIN_TILE_ADD(rows) ENTRAIN_TILE_ADD(rows) ENTRAIN_TILE_ADD(rows)
#define ENTRAIN_TILE_IF_LOOPS ".if %c[loops] > 1\n\tmov lr, %[loops]\n\tdls lr, lr\n\t.endif\n\t"
#define ENTRAIN_TILE_LOOP     ".if %c[loops]\n1:\n\t"
#define ENTRAIN_TILE_AGAIN    ".if %c[loops] > 1\n\tle lr, 1b\n\t.endif\n\t.endif\n\t"

/* All vectors, in one piece, because the compiler does not find registers of even number for the
 * sums in time. */
#define ENTRAIN_TILE(rows)                                                                         \
    ENTRAIN_TILE_BEGIN(rows)                                                                       \
    ENTRAIN_TILE_UP_TO_THREE(rows) ENTRAIN_TILE_IF_LOOPS ENTRAIN_TILE_LOOP ENTRAIN_TILE_FOUR(rows) \
    ENTRAIN_TILE_AGAIN ENTRAIN_TILE_IF_REST ENTRAIN_TILE_ADD_REST(rows) ENTRAIN_TILE_END_REST

#define ENTRAIN_TILE_CONSTANTS(of)                                                                 \
    [few] "i"(entrain_tile_more(of) % 4), [loops] "i"(entrain_tile_more(of) / 4),                  \
        [rest] "i"((of).depth % ENTRAIN_LANES), [lanes] "Up"(entrain_tile_lanes(of))

/* The lanes of the rest, in VPR, where the assembly expects them; none in particular if there is no
 * rest. */
ENTRAIN_INLINE mve_pred16_t entrain_tile_lanes(struct entrain_matmul of) {
    mve_pred16_t lanes;
    if (of.depth % ENTRAIN_LANES > 0) {
        return vctp8q((uint32_t)(of.depth % ENTRAIN_LANES));
    }
    __asm("" : "=Up"(lanes));
    return lanes;
}

/* Whole vectors behind the first one. */
ENTRAIN_INLINE int32_t entrain_tile_more(struct entrain_matmul of) {
    return of.depth / ENTRAIN_LANES - 1;
}

/* The sums of at least 16 products; the weights move on by whole vectors. */
ENTRAIN_INLINE struct entrain_matmul_tile
entrain_matmul_sum_tile(const uint8_t *input, struct entrain_matmul_weights *weights, int32_t rows,
                        struct entrain_matmul of) {
    struct entrain_matmul_tile tile;
    const uint8_t *x0 = input;
    const uint8_t *x1 = input + of.input_stride;
    const uint8_t *x2 = input + 2 * of.input_stride;
    if (rows == 1) {
        __asm volatile(ENTRAIN_TILE(ENTRAIN_TILE_1)
                       : [l0] "=&Te"(tile.left[0]), [r0] "=&Te"(tile.right[0]), [x0] "+r"(x0),
                         [w0] "+r"(weights->left), [w1] "+r"(weights->right)
                       : ENTRAIN_TILE_CONSTANTS(of)
                       : "q0", "q1", "q2", "lr", "memory");
    } else if (rows == 2) {
        __asm volatile(ENTRAIN_TILE(ENTRAIN_TILE_2)
                       : [l0] "=&Te"(tile.left[0]), [r0] "=&Te"(tile.right[0]),
                         [l1] "=&Te"(tile.left[1]), [r1] "=&Te"(tile.right[1]), [x0] "+r"(x0),
                         [x1] "+r"(x1), [w0] "+r"(weights->left), [w1] "+r"(weights->right)
                       : ENTRAIN_TILE_CONSTANTS(of)
                       : "q0", "q1", "q2", "lr", "memory");
    } else {
        __asm volatile(
            ENTRAIN_TILE(ENTRAIN_TILE_3)
            : [l0] "=&Te"(tile.left[0]), [r0] "=&Te"(tile.right[0]), [l1] "=&Te"(tile.left[1]),
              [r1] "=&Te"(tile.right[1]), [l2] "=&Te"(tile.left[2]), [r2] "=&Te"(tile.right[2]),
              [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2), [w0] "+r"(weights->left),
              [w1] "+r"(weights->right)
            : ENTRAIN_TILE_CONSTANTS(of)
            : "q0", "q1", "q2", "lr", "memory");
    }
    return tile;
}

/* Held vectors against both of weights. */
#define ENTRAIN_HELD_ROW(dot, row, held)                                                           \
    dot " %[l" row "], %q[h" held "], q0\n\t" dot " %[r" row "], %q[h" held "], q1\n\t"
#define ENTRAIN_HELD_MORE(count) ".if %c[vectors] > " count "\n\t" ENTRAIN_TILE_WEIGHTS
#define ENTRAIN_HELD_END         ".endif\n\t"
#define ENTRAIN_HELD_1                                                                             \
    ENTRAIN_TILE_WEIGHTS                                                                           \
    ENTRAIN_HELD_ROW("vmladav.s8", "0", "0")                                                       \
    ENTRAIN_HELD_MORE("1")                                                                         \
    ENTRAIN_HELD_ROW("vmladava.s8", "0", "1")                                                      \
    ENTRAIN_HELD_END ENTRAIN_HELD_MORE("2") ENTRAIN_HELD_ROW("vmladava.s8", "0", "2")              \
        ENTRAIN_HELD_END ENTRAIN_HELD_MORE("3") ENTRAIN_HELD_ROW("vmladava.s8", "0", "3")          \
            ENTRAIN_HELD_END
#define ENTRAIN_HELD_2                                                                             \
    ENTRAIN_TILE_WEIGHTS                                                                           \
    ENTRAIN_HELD_ROW("vmladav.s8", "0", "0")                                                       \
    ENTRAIN_HELD_ROW("vmladav.s8", "1", "1")                                                       \
    ENTRAIN_HELD_MORE("1")                                                                         \
    ENTRAIN_HELD_ROW("vmladava.s8", "0", "2")                                                      \
    ENTRAIN_HELD_ROW("vmladava.s8", "1", "3") ENTRAIN_HELD_END
#define ENTRAIN_HELD_3                                                                             \
    ENTRAIN_TILE_WEIGHTS                                                                           \
    ENTRAIN_HELD_ROW("vmladav.s8", "0", "0")                                                       \
    ENTRAIN_HELD_ROW("vmladav.s8", "1", "1")                                                       \
    ENTRAIN_HELD_ROW("vmladav.s8", "2", "2")
#define ENTRAIN_HELD_VECTORS_OF(held)                                                              \
    [h0] "w"((held)->vector[0]), [h1] "w"((held)->vector[1]), [h2] "w"((held)->vector[2]),         \
        [h3] "w"((held)->vector[3])

/* The same with input that is held; so many vectors and rows as fit. */
ENTRAIN_INLINE struct entrain_matmul_tile
entrain_matmul_sum_held(const struct entrain_matmul_held *held,
                        struct entrain_matmul_weights *weights, int32_t rows,
                        struct entrain_matmul of) {
    struct entrain_matmul_tile tile;
    const int32_t vectors = entrain_matmul_vectors(of);
    if (rows == 1) {
        __asm volatile(ENTRAIN_HELD_1
                       : [l0] "=&Te"(tile.left[0]), [r0] "=&Te"(tile.right[0]),
                         [w0] "+r"(weights->left), [w1] "+r"(weights->right)
                       : ENTRAIN_HELD_VECTORS_OF(held), [vectors] "i"(vectors)
                       : "q0", "q1", "memory");
    } else if (rows == 2) {
        __asm volatile(
            ENTRAIN_HELD_2
            : [l0] "=&Te"(tile.left[0]), [r0] "=&Te"(tile.right[0]), [l1] "=&Te"(tile.left[1]),
              [r1] "=&Te"(tile.right[1]), [w0] "+r"(weights->left), [w1] "+r"(weights->right)
            : ENTRAIN_HELD_VECTORS_OF(held), [vectors] "i"(vectors)
            : "q0", "q1", "memory");
    } else {
        __asm volatile(
            ENTRAIN_HELD_3
            : [l0] "=&Te"(tile.left[0]), [r0] "=&Te"(tile.right[0]), [l1] "=&Te"(tile.left[1]),
              [r1] "=&Te"(tile.right[1]), [l2] "=&Te"(tile.left[2]), [r2] "=&Te"(tile.right[2]),
              [w0] "+r"(weights->left), [w1] "+r"(weights->right)
            : ENTRAIN_HELD_VECTORS_OF(held), [vectors] "i"(vectors)
            : "q0", "q1", "memory");
    }
    return tile;
}

/* The sums of all rows with two rows of weights, into lanes `lane` and `lane + 2`. */
ENTRAIN_INLINE void entrain_matmul_two_columns(const uint8_t *input,
                                               const struct entrain_matmul_held *held,
                                               struct entrain_matmul_weights *weights, int32_t lane,
                                               int32_t rows, struct entrain_matmul_sums *sums,
                                               struct entrain_matmul of) {
    const struct entrain_matmul_tile tile = entrain_matmul_holds(rows, of)
                                                ? entrain_matmul_sum_held(held, weights, rows, of)
                                                : entrain_matmul_sum_tile(input, weights, rows, of);
#pragma GCC unroll 4
    for (int32_t row = 0; row < rows; row++) {
        if (lane == 0) {
            __asm volatile("vmov %q0[2], %q0[0], %1, %2"
                           : "=w"(sums->row[row])
                           : "r"(tile.left[row]), "r"(tile.right[row]));
        } else {
            __asm volatile("vmov %q0[3], %q0[1], %1, %2"
                           : "+w"(sums->row[row])
                           : "r"(tile.left[row]), "r"(tile.right[row]));
        }
    }
}

/* The sums of all rows with four rows of weights or fewer: 0 and 2, then 1 and 3, each behind the
 * one before. Instead of missing rows others are taken; nobody stores what comes of it. */
ENTRAIN_INLINE struct entrain_matmul_sums
entrain_matmul_sum_four(struct entrain_matmul_operands at, const struct entrain_matmul_held *held,
                        int32_t columns, int32_t rows, struct entrain_matmul of) {
    const int32_t pitch = entrain_matmul_pitch(of);
    const int32_t behind = entrain_matmul_vectors(of) * ENTRAIN_LANES;
    struct entrain_matmul_weights weights = {at.weights,
                                             at.weights + (columns > 2 ? 2 : 0) * pitch};
    struct entrain_matmul_sums sums;
    entrain_matmul_two_columns(at.input, held, &weights, 0, rows, &sums, of);
    weights.left += (columns > 1 ? pitch : 0) - behind;
    weights.right += (columns > 3 ? pitch : 0) - behind;
    entrain_matmul_two_columns(at.input, held, &weights, 1, rows, &sums, of);
    return sums;
}

#endif

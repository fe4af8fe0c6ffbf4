// Roundings and divisions of entrain.deploy.arithmetic, to the last bit.
#pragma once

#include "ap_int.h"

namespace entrain {

// ceil(log2(n)): by how many bits a sum of n summands is wider than one of them.
constexpr int growth(int n) {
    return n <= 1 ? 0 : 1 + growth((n + 1) / 2);
}

template <class Word, int N> struct Vector { Word at[N]; };

// x / 2^shift to nearest, halves upwards; a shift of 0 leaves x as it is.
template <int W> ap_int<W> rounding_shift(ap_int<W> x, int shift) {
#pragma HLS INLINE
    const ap_int<W + 1> half = (ap_int<W + 1>(1) << shift) >> 1;
    return ap_int<W + 1>(x + half) >> shift;
}

// Cut to 8 bits.
template <int W> ap_int<8> saturated(ap_int<W> x) {
#pragma HLS INLINE
    return x > 127 ? ap_int<8>(127) : x < -128 ? ap_int<8>(-128) : ap_int<8>(x);
}

template <int W> ap_uint<W> magnitude(ap_int<W> x) {
#pragma HLS INLINE
    return x < 0 ? ap_uint<W>(-x) : ap_uint<W>(x);
}

// How many bits of x stand above its highest 1; W for 0.
template <int W> int leading_zeros(ap_uint<W> x) {
#pragma HLS INLINE
    int zeros = W;
    for (int bit = 0; bit < W; bit++) {
#pragma HLS UNROLL
        if (x[bit]) {
            zeros = W - 1 - bit;
        }
    }
    return zeros;
}

// 1/d is about inverse * 2^(zeros - 48).
struct Reciprocal {
    ap_uint<17> inverse; // 2^16 < inverse < 2^17
    int zeros;           // leading zeros of d in 32 bits, 1..31
};

inline Reciprocal reciprocal(ap_uint<31> d) { // d from 1
    const int zeros = leading_zeros(ap_uint<32>(d));
    const ap_uint<16> top = ap_uint<32>(ap_uint<32>(d) << zeros) >> 16; // 2^15..2^16 - 1
    return {ap_uint<17>(ap_uint<32>(0xffffffffU) / top), zeros};
}

// factor * numerator / d in integers, the factor as entrain.deploy.arithmetic.quotient makes it.
template <int MULTIPLIER, int DROP, int SHIFT, int LEAST> struct Quotient {
    // f, so that f / 2^SHIFT is about factor / d; a d below LEAST counts as LEAST.
    static ap_uint<31> factor(ap_int<32> d) {
        const Reciprocal found = reciprocal(d < LEAST ? ap_uint<31>(LEAST) : ap_uint<31>(d));
        const ap_uint<32> product = found.inverse * ap_uint<15>(MULTIPLIER); // 17 bits by 15
        return product >> (DROP - found.zeros);
    }

    // The nearest integer of factor * numerator / d, halves upwards.
    static ap_int<64 - SHIFT> divide(ap_int<32> numerator, ap_uint<31> f) {
        const ap_int<63> product = numerator * f;
        return (product + (ap_int<63>(1) << (SHIFT - 1))) >> SHIFT;
    }
};

} // namespace entrain

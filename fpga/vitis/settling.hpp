// z = h / |h| in closed form, as entrain.deploy.arithmetic.settling: no division and no table.
#pragma once

#include "arithmetic.hpp"

namespace entrain {

constexpr int STATE_ONE = 1 << 14; // a state of length 1

typedef ap_int<16> State; // -2^14 - 2 .. 2^14 + 2

// By how many bits a sum of d squares is shifted right so that it fits 32 bits; even.
constexpr int square_guard(int d) {
    return d < 4 ? 0 : d < 16 ? 2 : d < 64 ? 4 : 6;
}

template <int D> using Squares = ap_uint<31 + growth(D)>; // D squares of 2^15 at most

template <int D> struct Settled {
    Vector<State, D> state;
    ap_uint<8> steps; // that the dynamics took; 0 for the closed form
    bool converged;
};

template <int W, int D> bool is_zero(const Vector<ap_int<W>, D> &h) {
    bool zero = true;
    for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
        zero = zero && h.at[k] == 0;
    }
    return zero;
}

// The field shifted so that its largest component has 15 bits, to nearest: -2^15 .. 2^15.
template <int W, int D> Vector<ap_int<17>, D> normalised(const Vector<ap_int<W>, D> &h) {
    ap_uint<W - 1> bits = 1;
    for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
        // ~h for negative h: one bit pattern for both signs, and no overflow at the lowest
        bits |= ap_uint<W - 1>(h.at[k] < 0 ? ap_int<W>(~h.at[k]) : h.at[k]);
    }
    const int left = leading_zeros(bits);
    Vector<ap_int<17>, D> a;
    for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
        const ap_int<17> cut = ap_int<W>(h.at[k] << left) >> (W - 17); // one bit too many
        a.at[k] = (cut + 1) >> 1;
    }
    return a;
}

template <int D> Squares<D> squared_length(const Vector<ap_int<17>, D> &a) {
    Squares<D> sum = 0;
    for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
        sum += Squares<D>(a.at[k] * a.at[k]);
    }
    return sum;
}

// 1/sqrt(x / 2^16) in steps of 2^-15, 2^15..2^16 - 1, of x from 2^14 to 2^16: a polynomial of the
// second degree, within 2.5 %, and one step of third order.
inline ap_uint<16> inverse_root(ap_uint<17> x) {
    const ap_uint<16> slope = ap_uint<17>(53851) - ((ap_uint<15>(26863) * x) >> 16);
    const ap_uint<16> start = ap_uint<17>(43762) - ((slope * x) >> 16); // 2^14 - 2^10..2^15 + 2^10
    const ap_uint<19> square = (start * start) >> 12;
    // 1 - x y^2 in 2^-32: what is left of 2^32 when a product of 32 bits wraps
    const ap_int<32> rest = ap_int<34>(1LL << 32) - square * x;
    const ap_int<16> e = rest >> 13;
    const ap_int<17> pace = ap_int<17>(32800) + ((ap_int<3>(3) * e) >> 6); // about 2^15
    const ap_int<17> correction = (e * pace) >> 15;
    const ap_int<33> change = start * correction; // 2^19 to a step of the result
    return (ap_uint<17>(start) << 1) + ((change + (1 << 18)) >> 19);
}

struct ClosedForm {
    // The settled state; 0 where h = 0.
    template <int W, int D> static Settled<D> settle(const Vector<ap_int<W>, D> &h) {
        constexpr int GUARD = square_guard(D);
        const Vector<ap_int<17>, D> a = normalised(h);
        const ap_uint<32> s = ap_uint<32>(squared_length(a) >> GUARD) | 1;
        const int even = leading_zeros(s) & ~1;
        const ap_uint<17> x = (ap_uint<18>(ap_uint<32>(s << even) >> 15) + 1) >> 1;
        const ap_uint<16> y = inverse_root(x);
        const int shift = 16 + GUARD / 2 - even / 2; // one bit too few
        Settled<D> settled;
        settled.steps = 0;
        settled.converged = true;
        for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
            const ap_int<32> product = a.at[k] * y; // |a| y < 2^31
            settled.state.at[k] = (ap_int<32>(product >> shift) + 1) >> 1;
        }
        return settled;
    }
};

} // namespace entrain

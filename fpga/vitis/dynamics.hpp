// The oscillators' own way to their fixed point, as entrain.fpga.dynamics: Euler steps of
// dz/dt = h - z (z.h), each followed by z (3 - |z|^2) / 2, which keeps |z| at 1 but for rounding.
#pragma once

#include "settling.hpp"

namespace entrain {

// The field times a power of two, so that its length lies from 1/2 to 1 in steps of 2^-14.
template <int W, int D> Vector<State, D> scaled_field(const Vector<ap_int<W>, D> &h) {
    Vector<ap_int<17>, D> a = normalised(h);
    for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
        a.at[k] = a.at[k] > 32767 ? ap_int<17>(32767) : a.at[k]; // a multiplier's 16 bits
    }
    const Squares<D> squares = squared_length(a);
    const int length = Squares<D>::width - leading_zeros(squares); // 29 or more, but for h = 0
    const int shift = length > 27 ? (length - 27) / 2 : 0;
    Vector<State, D> scaled;
    for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
        scaled.at[k] = rounding_shift(a.at[k], shift);
    }
    return scaled;
}

template <int D> ap_int<32> dot(const Vector<State, D> &a, const Vector<State, D> &b) {
    ap_int<32> sum = 0; // the lengths are below 2^15 each
    for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
        sum += a.at[k] * b.at[k];
    }
    return sum;
}

// u = h - z (z.h), not longer than h but for rounding
template <int D> Vector<State, D> velocity(const Vector<State, D> &z, const Vector<State, D> &h) {
    const State along = rounding_shift(dot(z, h), 14);
    Vector<State, D> u;
    for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
        u.at[k] = h.at[k] - rounding_shift(ap_int<32>(z.at[k] * along), 14);
    }
    return u;
}

// z (3 - |z|^2) / 2 of |z| up to sqrt(2)
template <int D> Vector<State, D> renormalised(const Vector<State, D> &z) {
    const ap_int<16> factor = 3 * STATE_ONE / 2 - rounding_shift(dot(z, z), 15);
    Vector<State, D> v;
    for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
        v.at[k] = rounding_shift(ap_int<32>(z.at[k] * factor), 14);
    }
    return v;
}

template <int MOST_STEPS, int TOLERANCE> struct Dynamics {
    // The settled state; 0 where h = 0. The start, sign(h_1) e_1, is never the field's antipode.
    template <int W, int D> static Settled<D> settle(const Vector<ap_int<W>, D> &h) {
        const Vector<State, D> field = scaled_field(h);
        Settled<D> settled;
        settled.steps = 0;
        settled.converged = is_zero(h);
        for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
            settled.state.at[k] = 0;
        }
        if (!settled.converged) {
            settled.state.at[0] = field.at[0] < 0 ? -STATE_ONE : STATE_ONE;
        }
        while (!settled.converged && settled.steps < MOST_STEPS) {
#pragma HLS LOOP_TRIPCOUNT min = 0 avg = 8 max = MOST_STEPS
            const Vector<State, D> u = velocity(settled.state, field);
            bool still = true;
            for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
                settled.state.at[k] += u.at[k]; // below 2^15: at most sqrt(2) long
                still = still && magnitude(u.at[k]) <= TOLERANCE;
            }
            settled.state = renormalised(settled.state);
            settled.steps++;
            settled.converged = still;
        }
        return settled;
    }
};

} // namespace entrain

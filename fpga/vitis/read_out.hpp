// The factorised read-out, as entrain.deploy.arithmetic.oscillator.FactorisedReadOut:
// y = (V + z^T M) / (T + z.R) with V = sum_j v_j, M = sum_j r_j v_j^T, R = sum_j r_j.
#pragma once

#include "settling.hpp"
#include "streams.hpp"

namespace entrain {

typedef ap_int<8> Value;
typedef ap_int<8> Context;

template <int D> using AnchorSum = Vector<ap_int<8 + 7>, D>; // of 128 anchors at most

template <int T, int D> AnchorSum<D> sum_anchors(const Anchor (&anchors)[T][D]) {
    AnchorSum<D> sum;
#pragma HLS ARRAY_PARTITION variable = sum.at complete
    for (int j = 0; j < T; j++) {
#pragma HLS PIPELINE II = 1
        for (int k = 0; k < D; k++) {
            sum.at[k] = (j == 0 ? ap_int<15>(0) : sum.at[k]) + anchors[j][k];
        }
    }
    return sum;
}

// Everything of the read-out that does not depend on the query.
template <int D, int D_VALUE> struct Moments {
    ap_int<16> moment[D][D_VALUE]; // M / 2^MOMENT_SHIFT
    ap_int<32> value_sum[D_VALUE]; // V, times VALUE_FACTOR
    ap_int<16> anchor_sum[D];      // R / 2^SUM_SHIFT
};

// TOKENS: T in the units of z.R; the least denominator is the division's.
template <int MOMENT_SHIFT, int VALUE_FACTOR, int SUM_SHIFT, int TOKENS, class Division>
struct FactorisedReadOut {
    template <int T, int D, int D_VALUE>
    static void sum_values(const Anchor (&anchors)[T][D], const AnchorSum<D> &anchor_sum,
                           hls::stream<Value> &values, Moments<D, D_VALUE> &made) {
        ap_int<16 + growth(T)> sums[D][D_VALUE]; // products of 2^14 at most
        ap_int<8 + growth(T)> totals[D_VALUE];
#pragma HLS ARRAY_PARTITION variable = sums dim = 1 complete
        for (int j = 0; j < T; j++) {
            for (int c = 0; c < D_VALUE; c++) {
#pragma HLS PIPELINE II = 1
                const Value v = values.read();
                totals[c] = (j == 0 ? ap_int<8 + growth(T)>(0) : totals[c]) + v;
                for (int k = 0; k < D; k++) {
                    const ap_int<16 + growth(T)> before =
                        j == 0 ? ap_int<16 + growth(T)>(0) : sums[k][c];
                    sums[k][c] = before + anchors[j][k] * v;
                }
            }
        }
        for (int c = 0; c < D_VALUE; c++) {
#pragma HLS PIPELINE II = 1
            made.value_sum[c] = totals[c] * ap_int<32>(VALUE_FACTOR);
            for (int k = 0; k < D; k++) {
                const ap_int<16 + growth(T)> moment = rounding_shift(sums[k][c], MOMENT_SHIFT);
                made.moment[k][c] = moment > 32767 ? ap_int<16>(32767) : ap_int<16>(moment);
            }
        }
        for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
            made.anchor_sum[k] = rounding_shift(anchor_sum.at[k], SUM_SHIFT);
        }
    }

    template <int ZERO_POINT, int D, int D_VALUE>
    static void read(unsigned count, hls::stream<Vector<State, D>> &states,
                     const Moments<D, D_VALUE> &moments, hls::stream<Context> &contexts) {
        for (unsigned i = 0; i < count; i++) {
            const Vector<State, D> z = states.read();
            ap_int<32> weight = TOKENS; // every sum below lies within 32 bits
            for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
                weight += z.at[k] * moments.anchor_sum[k];
            }
            const ap_uint<31> f = Division::factor(weight);
            for (int c = 0; c < D_VALUE; c++) {
#pragma HLS PIPELINE II = 1
                ap_int<32> numerator = moments.value_sum[c];
                for (int k = 0; k < D; k++) {
                    numerator += z.at[k] * moments.moment[k][c];
                }
                contexts.write(saturated(Division::divide(numerator, f) + ap_int<9>(ZERO_POINT)));
            }
        }
    }
};

} // namespace entrain

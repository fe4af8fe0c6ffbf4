// The settling core, as entrain.fpga.reference.SettlingCore: couplings in; settled state, weights
// a_j = (1 + z.r_j) / sum_l (1 + z.r_l), flags and steps out.
#pragma once

#include "dynamics.hpp"
#include "settling.hpp"
#include "streams.hpp"

namespace entrain {

typedef ap_uint<15> Coupling;
typedef ap_uint<16> Weight; // steps of 2^-16
typedef ap_uint<4> Flags;
typedef ap_uint<8> Steps;

constexpr int ZERO = 1;
constexpr int WEAK = 2;
constexpr int NOT_CONVERGED = 4;
constexpr int SATURATED = 8;

constexpr int ONE = STATE_ONE * 127; // the number 1 in the units of z.r
constexpr int LARGEST_WEIGHT = (1 << 16) - 1;

template <int T> using Field = ap_int<23 + growth(T)>; // T couplings of 15 bits times codes
typedef ap_uint<23> Closeness;                         // 1 + z.r: 2.125 at most
template <int T> using ClosenessSum = ap_uint<23 + growth(T)>;

template <int D> struct Judged {
    Settled<D> settled;
    Flags flags;
};

// h = sum_j w_j r_j
template <int T, int D>
void sum_fields(unsigned count, hls::stream<Coupling> &couplings, const Anchor (&anchors)[T][D],
                hls::stream<Vector<Field<T>, D>> &fields) {
    for (unsigned i = 0; i < count; i++) {
        Vector<Field<T>, D> h;
#pragma HLS ARRAY_PARTITION variable = h.at complete
        for (int j = 0; j < T; j++) {
#pragma HLS PIPELINE II = 1
            const Coupling w = couplings.read();
            for (int k = 0; k < D; k++) {
                const Field<T> before = j == 0 ? Field<T>(0) : h.at[k];
                h.at[k] = before + w * anchors[j][k];
            }
        }
        fields.write(h);
    }
}

template <int ROUNDING, int W, int D> Flags strength(const Vector<ap_int<W>, D> &h) {
    bool weak = true;
    for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
        weak = weak && magnitude(h.at[k]) <= ROUNDING;
    }
    return is_zero(h) ? ZERO : weak ? WEAK : 0;
}

template <class Scheme, int ROUNDING, int T, int D>
void settle_fields(unsigned count, hls::stream<Vector<Field<T>, D>> &fields,
                   hls::stream<Judged<D>> &judged) {
    for (unsigned i = 0; i < count; i++) {
        const Vector<Field<T>, D> h = fields.read();
        Judged<D> found;
        found.settled = Scheme::settle(h);
        found.flags = strength<ROUNDING>(h);
        if (!found.settled.converged) {
            found.flags |= NOT_CONVERGED;
        }
        judged.write(found);
    }
}

// 1 + z.r, never negative
template <int D> Closeness closeness(const Vector<State, D> &z, const Anchor (&anchor)[D]) {
    ap_int<24> sum = ONE; // |z.r| is 1.125 at most
    for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
        sum += z.at[k] * anchor[k];
    }
    return sum < 0 ? ap_int<24>(0) : sum;
}

template <class Division, int T, int D>
void weigh(unsigned count, hls::stream<Judged<D>> &judged, const Anchor (&anchors)[T][D],
           hls::stream<State> &states, hls::stream<Weight> &weights, hls::stream<Flags> &flags,
           hls::stream<Steps> &steps) {
    for (unsigned i = 0; i < count; i++) {
        const Judged<D> found = judged.read();
        Closeness g[T];
        ClosenessSum<T> total = 0;
        for (int j = 0; j < T; j++) {
#pragma HLS PIPELINE II = 1
            g[j] = closeness(found.settled.state, anchors[j]);
            total += g[j];
        }
        const ap_uint<31> f = Division::factor(total);
        bool cut = false;
        for (int j = 0; j < T; j++) {
#pragma HLS PIPELINE II = 1
            const ap_int<32> weight = Division::divide(g[j], f);
            cut = cut || weight > LARGEST_WEIGHT;
            weights.write(weight > LARGEST_WEIGHT ? Weight(LARGEST_WEIGHT) : Weight(weight));
        }
        for (int k = 0; k < D; k++) {
#pragma HLS PIPELINE II = 1
            states.write(found.settled.state.at[k]);
        }
        flags.write(found.flags | Flags(cut ? SATURATED : 0));
        steps.write(found.settled.steps);
    }
}

// Each stage has its own copy of the anchors, so that all stages work at once.
template <class Scheme, int ROUNDING, class Division, int T, int D>
void settle_stages(unsigned count, hls::stream<Coupling> &couplings,
                   const Anchor (&field_anchors)[T][D], const Anchor (&weight_anchors)[T][D],
                   hls::stream<State> &states, hls::stream<Weight> &weights,
                   hls::stream<Flags> &flags, hls::stream<Steps> &steps) {
#pragma HLS DATAFLOW
    hls::stream<Vector<Field<T>, D>> fields("fields");
    hls::stream<Judged<D>> judged("judged");
#pragma HLS STREAM variable = fields depth = 2
#pragma HLS STREAM variable = judged depth = 2
    sum_fields<T, D>(count, couplings, field_anchors, fields);
    settle_fields<Scheme, ROUNDING, T, D>(count, fields, judged);
    weigh<Division, T, D>(count, judged, weight_anchors, states, weights, flags, steps);
}

template <class Scheme, int ROUNDING, class Division, int T, int D>
void settle_couplings(hls::stream<Anchor> &anchors, unsigned count,
                      hls::stream<Coupling> &couplings, hls::stream<State> &states,
                      hls::stream<Weight> &weights, hls::stream<Flags> &flags,
                      hls::stream<Steps> &steps) {
    Anchor field_anchors[T][D];
    Anchor weight_anchors[T][D];
#pragma HLS ARRAY_PARTITION variable = field_anchors dim = 2 complete
#pragma HLS ARRAY_PARTITION variable = weight_anchors dim = 2 complete
    for (int j = 0; j < T; j++) {
        for (int k = 0; k < D; k++) {
#pragma HLS PIPELINE II = 1
            const Anchor component = anchors.read();
            field_anchors[j][k] = component;
            weight_anchors[j][k] = component;
        }
    }
    settle_stages<Scheme, ROUNDING, Division, T, D>(count, couplings, field_anchors, weight_anchors,
                                                    states, weights, flags, steps);
}

} // namespace entrain

// Anchors [T, D_OSC] once, then for each of `count` queries couplings [T] in; state [D_OSC],
// weights [T], flags and steps out.
void settling_core(hls::stream<entrain::Anchor> &anchors, unsigned count,
                   hls::stream<entrain::Coupling> &couplings, hls::stream<entrain::State> &states,
                   hls::stream<entrain::Weight> &weights, hls::stream<entrain::Flags> &flags,
                   hls::stream<entrain::Steps> &steps);

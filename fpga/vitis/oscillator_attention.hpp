// Oscillator attention, as entrain.fpga.reference.OscillatorBlock: fields from queries and keys by
// one of two couplings, states in closed form, the factorised read-out.
#pragma once

#include "read_out.hpp"
#include "settling.hpp"
#include "streams.hpp"

namespace entrain {

typedef ap_int<8> Feature; // of a query or key; the separable coupling takes it without a sign
typedef ap_int<32> WideField;

// h = (sum << LIFT) + bias, bias = EPSILON sum_j r_j; all of it lies within 32 bits.
template <int LIFT, int EPSILON> struct FieldSum {
    typedef ap_int<32 - LIFT> Sum;

    static WideField field(Sum sum, ap_int<32> bias) {
        return (WideField(sum) << LIFT) + bias;
    }
    static ap_int<32> bias(ap_int<15> anchor_sum) {
        return anchor_sum * ap_int<32>(EPSILON);
    }
};

// w = q.k / 2^SHIFT to nearest, cut to BITS bits without a sign; q and k int8.
template <int SHIFT, int BITS> struct RectifiedCoupling {
    template <int W> static ap_uint<BITS> weight(ap_int<W> score) {
        const ap_int<W> w = rounding_shift(score, SHIFT);
        constexpr int LARGEST = (1 << BITS) - 1;
        return w < 0 ? ap_uint<BITS>(0) : w > LARGEST ? ap_uint<BITS>(LARGEST) : ap_uint<BITS>(w);
    }
};

// h_i = q_i . A, A = sum_j k_j r_j^T in BITS bits and a sign; q and k uint8.
template <int BITS> struct SeparableCoupling {};

template <class Coupling, class Total, int T, int D, int D_HEAD>
void rectified_fields(unsigned count, hls::stream<Feature> &queries,
                      const Feature (&keys)[T][D_HEAD], const Anchor (&anchors)[T][D],
                      const AnchorSum<D> &anchor_sum, hls::stream<Vector<WideField, D>> &fields) {
    for (unsigned i = 0; i < count; i++) {
        Feature query[D_HEAD];
        typename Total::Sum sums[D];
#pragma HLS ARRAY_PARTITION variable = query complete
#pragma HLS ARRAY_PARTITION variable = sums complete
        for (int c = 0; c < D_HEAD; c++) {
#pragma HLS PIPELINE II = 1
            query[c] = queries.read();
        }
        for (int j = 0; j < T; j++) {
#pragma HLS PIPELINE II = 1
            ap_int<16 + growth(D_HEAD)> score = 0; // products of 2^14 at most
            for (int c = 0; c < D_HEAD; c++) {
                score += query[c] * keys[j][c];
            }
            const auto w = Coupling::weight(score);
            for (int k = 0; k < D; k++) {
                const typename Total::Sum before = j == 0 ? typename Total::Sum(0) : sums[k];
                sums[k] = before + w * anchors[j][k];
            }
        }
        Vector<WideField, D> h;
        for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
            h.at[k] = Total::field(sums[k], Total::bias(anchor_sum.at[k]));
        }
        fields.write(h);
    }
}

// The keys' part of a separable coupling: A / 2^shift, and the bias in the same units.
template <int BITS, int D, int D_HEAD> struct Drive {
    ap_int<BITS + 1> drive[D_HEAD][D];
    ap_int<32> bias[D];
};

template <class Total, int BITS, int T, int D, int D_HEAD>
void sum_keys(hls::stream<Feature> &keys, const Anchor (&anchors)[T][D],
              const AnchorSum<D> &anchor_sum, Drive<BITS, D, D_HEAD> &made) {
    typedef ap_int<16 + growth(T)> Sum; // products below 2^15
    Sum sums[D_HEAD][D];
#pragma HLS ARRAY_PARTITION variable = sums dim = 2 complete
    for (int j = 0; j < T; j++) {
        for (int c = 0; c < D_HEAD; c++) {
#pragma HLS PIPELINE II = 1
            const ap_uint<8> key = keys.read();
            for (int k = 0; k < D; k++) {
                sums[c][k] = (j == 0 ? Sum(0) : sums[c][k]) + key * anchors[j][k];
            }
        }
    }
    ap_uint<Sum::width> largest = 0;
    for (int c = 0; c < D_HEAD; c++) {
#pragma HLS PIPELINE II = 1
        for (int k = 0; k < D; k++) {
            const ap_uint<Sum::width> size = magnitude(sums[c][k]);
            largest = size > largest ? size : largest;
        }
    }
    const int bits = Sum::width - leading_zeros(largest);
    const int shift = bits > BITS ? bits - BITS : 0; // as few bits as the largest sum needs
    constexpr int LARGEST = (1 << BITS) - 1;
    for (int c = 0; c < D_HEAD; c++) {
#pragma HLS PIPELINE II = 1
        for (int k = 0; k < D; k++) {
            const Sum a = rounding_shift(sums[c][k], shift);
            made.drive[c][k] = a > LARGEST ? Sum(LARGEST) : a;
        }
    }
    for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
        made.bias[k] = rounding_shift(Total::bias(anchor_sum.at[k]), shift);
    }
}

template <class Total, int BITS, int D, int D_HEAD>
void separable_fields(unsigned count, hls::stream<Feature> &queries,
                      const Drive<BITS, D, D_HEAD> &made,
                      hls::stream<Vector<WideField, D>> &fields) {
    for (unsigned i = 0; i < count; i++) {
        typename Total::Sum sums[D];
#pragma HLS ARRAY_PARTITION variable = sums complete
        for (int c = 0; c < D_HEAD; c++) {
#pragma HLS PIPELINE II = 1
            const ap_uint<8> query = queries.read();
            for (int k = 0; k < D; k++) {
                const typename Total::Sum before = c == 0 ? typename Total::Sum(0) : sums[k];
                sums[k] = before + query * made.drive[c][k];
            }
        }
        Vector<WideField, D> h;
        for (int k = 0; k < D; k++) {
#pragma HLS UNROLL
            h.at[k] = Total::field(sums[k], made.bias[k]);
        }
        fields.write(h);
    }
}

template <int D>
void settle_fields(unsigned count, hls::stream<Vector<WideField, D>> &fields,
                   hls::stream<Vector<State, D>> &states) {
    for (unsigned i = 0; i < count; i++) {
#pragma HLS PIPELINE
        states.write(ClosedForm::settle(fields.read()).state);
    }
}

template <class Coupling, class Total, class ReadOut, int ZERO_POINT, int T, int D, int D_HEAD,
          int D_VALUE>
void rectified_stages(unsigned count, hls::stream<Feature> &queries,
                      const Feature (&keys)[T][D_HEAD], const Anchor (&anchors)[T][D],
                      const AnchorSum<D> &anchor_sum, const Moments<D, D_VALUE> &moments,
                      hls::stream<Context> &contexts) {
#pragma HLS DATAFLOW
    hls::stream<Vector<WideField, D>> fields("fields");
    hls::stream<Vector<State, D>> states("states");
#pragma HLS STREAM variable = fields depth = 2
#pragma HLS STREAM variable = states depth = 2
    rectified_fields<Coupling, Total>(count, queries, keys, anchors, anchor_sum, fields);
    settle_fields<D>(count, fields, states);
    ReadOut::template read<ZERO_POINT>(count, states, moments, contexts);
}

template <class Total, class ReadOut, int ZERO_POINT, int BITS, int D, int D_HEAD, int D_VALUE>
void separable_stages(unsigned count, hls::stream<Feature> &queries,
                      const Drive<BITS, D, D_HEAD> &drive, const Moments<D, D_VALUE> &moments,
                      hls::stream<Context> &contexts) {
#pragma HLS DATAFLOW
    hls::stream<Vector<WideField, D>> fields("fields");
    hls::stream<Vector<State, D>> states("states");
#pragma HLS STREAM variable = fields depth = 2
#pragma HLS STREAM variable = states depth = 2
    separable_fields<Total>(count, queries, drive, fields);
    settle_fields<D>(count, fields, states);
    ReadOut::template read<ZERO_POINT>(count, states, moments, contexts);
}

template <int T, int D, int D_HEAD, int D_VALUE, class Total, class ReadOut, int ZERO_POINT,
          int SHIFT, int BITS>
void attend(RectifiedCoupling<SHIFT, BITS>, hls::stream<Anchor> &anchors,
            hls::stream<Feature> &keys, hls::stream<Value> &values, unsigned count,
            hls::stream<Feature> &queries, hls::stream<Context> &contexts) {
    Anchor anchor_table[T][D];
    Feature key_table[T][D_HEAD];
    Moments<D, D_VALUE> moments;
#pragma HLS ARRAY_PARTITION variable = anchor_table dim = 2 complete
#pragma HLS ARRAY_PARTITION variable = key_table dim = 2 complete
#pragma HLS ARRAY_PARTITION variable = moments.moment dim = 1 complete
    load(anchors, anchor_table);
    load(keys, key_table);
    const AnchorSum<D> anchor_sum = sum_anchors(anchor_table);
    ReadOut::sum_values(anchor_table, anchor_sum, values, moments);
    rectified_stages<RectifiedCoupling<SHIFT, BITS>, Total, ReadOut, ZERO_POINT>(
        count, queries, key_table, anchor_table, anchor_sum, moments, contexts);
}

template <int T, int D, int D_HEAD, int D_VALUE, class Total, class ReadOut, int ZERO_POINT,
          int BITS>
void attend(SeparableCoupling<BITS>, hls::stream<Anchor> &anchors, hls::stream<Feature> &keys,
            hls::stream<Value> &values, unsigned count, hls::stream<Feature> &queries,
            hls::stream<Context> &contexts) {
    Anchor anchor_table[T][D];
    Drive<BITS, D, D_HEAD> drive;
    Moments<D, D_VALUE> moments;
#pragma HLS ARRAY_PARTITION variable = anchor_table dim = 2 complete
#pragma HLS ARRAY_PARTITION variable = drive.drive dim = 2 complete
#pragma HLS ARRAY_PARTITION variable = moments.moment dim = 1 complete
    load(anchors, anchor_table);
    const AnchorSum<D> anchor_sum = sum_anchors(anchor_table);
    sum_keys<Total>(keys, anchor_table, anchor_sum, drive);
    ReadOut::sum_values(anchor_table, anchor_sum, values, moments);
    separable_stages<Total, ReadOut, ZERO_POINT>(count, queries, drive, moments, contexts);
}

} // namespace entrain

// Anchors [T, D_OSC], keys [T, D_HEAD] and values [T, D_VALUE] once, then `count` queries [D_HEAD]
// in, contexts [D_VALUE] out.
void oscillator_attention(hls::stream<entrain::Anchor> &anchors,
                          hls::stream<entrain::Feature> &keys, hls::stream<entrain::Value> &values,
                          unsigned count, hls::stream<entrain::Feature> &queries,
                          hls::stream<entrain::Context> &contexts);

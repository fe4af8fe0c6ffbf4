// Softmax attention, as entrain.fpga.reference.SoftmaxBlock: exponentials against the largest score
// of the row by one table, and one reciprocal a query.
#pragma once

#include "arithmetic.hpp"
#include "streams.hpp"

namespace entrain {

typedef ap_int<8> Feature;
typedef ap_int<8> Value;
typedef ap_int<8> Context;
typedef ap_uint<15> Exponential;
typedef ap_int<16> Place; // t = (score * MULTIPLIER) >> 16

// A row's scores in steps of the table, and the largest of them.
template <int T> struct Row {
    Place place[T];
    Place largest;
};

template <int MULTIPLIER, int T, int D_HEAD>
void score(unsigned count, hls::stream<Feature> &queries, const Feature (&keys)[T][D_HEAD],
           hls::stream<Row<T>> &rows) {
    for (unsigned i = 0; i < count; i++) {
        Feature query[D_HEAD];
#pragma HLS ARRAY_PARTITION variable = query complete
        for (int c = 0; c < D_HEAD; c++) {
#pragma HLS PIPELINE II = 1
            query[c] = queries.read();
        }
        Row<T> row;
        for (int j = 0; j < T; j++) {
#pragma HLS PIPELINE II = 1
            ap_int<16 + growth(D_HEAD)> sum = 0; // products of 2^14 at most
            for (int c = 0; c < D_HEAD; c++) {
                sum += query[c] * keys[j][c];
            }
            const ap_int<32> scaled = sum * ap_int<32>(MULTIPLIER); // proved below 2^31
            row.place[j] = scaled >> 16;
            row.largest = j == 0 || row.place[j] > row.largest ? row.place[j] : row.largest;
        }
        rows.write(row);
    }
}

template <class Division, int ZERO_POINT, int T, int D_VALUE, int ENTRIES>
void average(unsigned count, hls::stream<Row<T>> &rows, const Exponential (&table)[ENTRIES],
             const Value (&values)[T][D_VALUE], hls::stream<Context> &contexts) {
    typedef ap_int<23 + growth(T)> Numerator; // products below 2^22
    for (unsigned i = 0; i < count; i++) {
        const Row<T> row = rows.read();
        Numerator numerators[D_VALUE];
        ap_uint<15 + growth(T)> total = 0;
#pragma HLS ARRAY_PARTITION variable = numerators complete
        for (int j = 0; j < T; j++) {
#pragma HLS PIPELINE II = 1
            const ap_int<18> place = row.place[j] - row.largest + (ENTRIES - 1);
            const Exponential e = table[place < 0 ? 0 : place.to_int()];
            total += e;
            for (int c = 0; c < D_VALUE; c++) {
                numerators[c] = (j == 0 ? Numerator(0) : numerators[c]) + e * values[j][c];
            }
        }
        const ap_uint<31> f = Division::factor(total);
        for (int c = 0; c < D_VALUE; c++) {
#pragma HLS PIPELINE II = 1
            contexts.write(saturated(Division::divide(numerators[c], f) + ap_int<9>(ZERO_POINT)));
        }
    }
}

template <int MULTIPLIER, class Division, int ZERO_POINT, int T, int D_HEAD, int D_VALUE,
          int ENTRIES>
void softmax_stages(unsigned count, hls::stream<Feature> &queries, const Feature (&keys)[T][D_HEAD],
                    const Exponential (&table)[ENTRIES], const Value (&values)[T][D_VALUE],
                    hls::stream<Context> &contexts) {
#pragma HLS DATAFLOW
    hls::stream<Row<T>> rows("rows");
#pragma HLS STREAM variable = rows depth = 2
    score<MULTIPLIER>(count, queries, keys, rows);
    average<Division, ZERO_POINT>(count, rows, table, values, contexts);
}

template <int T, int D_HEAD, int D_VALUE, int ENTRIES, int MULTIPLIER, class Division,
          int ZERO_POINT>
void attend_softly(hls::stream<Exponential> &exponentials, hls::stream<Feature> &keys,
                   hls::stream<Value> &values, unsigned count, hls::stream<Feature> &queries,
                   hls::stream<Context> &contexts) {
    Exponential table[ENTRIES];
    Feature key_table[T][D_HEAD];
    Value value_table[T][D_VALUE];
#pragma HLS ARRAY_PARTITION variable = key_table dim = 2 complete
#pragma HLS ARRAY_PARTITION variable = value_table dim = 2 complete
    for (int entry = 0; entry < ENTRIES; entry++) {
#pragma HLS PIPELINE II = 1
        table[entry] = exponentials.read();
    }
    load(keys, key_table);
    load(values, value_table);
    softmax_stages<MULTIPLIER, Division, ZERO_POINT>(count, queries, key_table, table, value_table,
                                                     contexts);
}

} // namespace entrain

// The table of exponentials [ENTRIES], keys [T, D_HEAD] and values [T, D_VALUE] once, then `count`
// queries [D_HEAD] in, contexts [D_VALUE] out.
void softmax_attention(hls::stream<entrain::Exponential> &exponentials,
                       hls::stream<entrain::Feature> &keys, hls::stream<entrain::Value> &values,
                       unsigned count, hls::stream<entrain::Feature> &queries,
                       hls::stream<entrain::Context> &contexts);

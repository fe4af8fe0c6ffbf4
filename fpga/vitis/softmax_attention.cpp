#include "instance.hpp"

void softmax_attention(hls::stream<entrain::Exponential> &exponentials,
                       hls::stream<entrain::Feature> &keys, hls::stream<entrain::Value> &values,
                       unsigned count, hls::stream<entrain::Feature> &queries,
                       hls::stream<entrain::Context> &contexts) {
#pragma HLS INTERFACE axis port = exponentials
#pragma HLS INTERFACE axis port = keys
#pragma HLS INTERFACE axis port = values
#pragma HLS INTERFACE axis port = queries
#pragma HLS INTERFACE axis port = contexts
#pragma HLS INTERFACE s_axilite port = count
#pragma HLS INTERFACE s_axilite port = return
    using namespace instance;
    entrain::attend_softly<T, D_HEAD, D_VALUE, ENTRIES, MULTIPLIER, Division, ZERO_POINT>(
        exponentials, keys, values, count, queries, contexts);
}

#include "instance.hpp"

void oscillator_attention(hls::stream<entrain::Anchor> &anchors,
                          hls::stream<entrain::Feature> &keys, hls::stream<entrain::Value> &values,
                          unsigned count, hls::stream<entrain::Feature> &queries,
                          hls::stream<entrain::Context> &contexts) {
#pragma HLS INTERFACE axis port = anchors
#pragma HLS INTERFACE axis port = keys
#pragma HLS INTERFACE axis port = values
#pragma HLS INTERFACE axis port = queries
#pragma HLS INTERFACE axis port = contexts
#pragma HLS INTERFACE s_axilite port = count
#pragma HLS INTERFACE s_axilite port = return
    using namespace instance;
    entrain::attend<T, D_OSC, D_HEAD, D_VALUE, Total, ReadOut, ZERO_POINT>(
        Coupling(), anchors, keys, values, count, queries, contexts);
}

#include "instance.hpp"

void settling_core(hls::stream<entrain::Anchor> &anchors, unsigned count,
                   hls::stream<entrain::Coupling> &couplings, hls::stream<entrain::State> &states,
                   hls::stream<entrain::Weight> &weights, hls::stream<entrain::Flags> &flags,
                   hls::stream<entrain::Steps> &steps) {
#pragma HLS INTERFACE axis port = anchors
#pragma HLS INTERFACE axis port = couplings
#pragma HLS INTERFACE axis port = states
#pragma HLS INTERFACE axis port = weights
#pragma HLS INTERFACE axis port = flags
#pragma HLS INTERFACE axis port = steps
#pragma HLS INTERFACE s_axilite port = count
#pragma HLS INTERFACE s_axilite port = return
    entrain::settle_couplings<instance::Scheme, instance::ROUNDING, instance::Division, instance::T,
                              instance::D_OSC>(anchors, count, couplings, states, weights, flags,
                                               steps);
}

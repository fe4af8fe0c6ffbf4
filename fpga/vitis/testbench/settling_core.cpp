// Reads anchors.i8 [T, D_OSC] and couplings.u16 [queries, T] in a folder; writes states.i16
// [queries, D_OSC], weights.u16 [queries, T], flags.u8 and steps.u8 [queries].
#include "instance.hpp"
#include "vectors.hpp"

int main(int argc, char **argv) {
    return simulation::tested(argc, argv, [](const std::string &folder) {
        using namespace simulation;
        const auto anchors = read_numbers<std::int8_t>(folder + "anchors.i8");
        const auto couplings = read_numbers<std::uint16_t>(folder + "couplings.u16");
        std::vector<std::int16_t> states;
        std::vector<std::uint16_t> weights;
        std::vector<std::uint8_t> flags, steps;
        for_all(couplings.size() / instance::T, [&](std::size_t first, unsigned count) {
            hls::stream<entrain::Anchor> anchor("anchors");
            hls::stream<entrain::Coupling> coupling("couplings");
            hls::stream<entrain::State> state("states");
            hls::stream<entrain::Weight> weight("weights");
            hls::stream<entrain::Flags> flag("flags");
            hls::stream<entrain::Steps> step("steps");
            feed_all(anchor, anchors);
            feed(coupling, couplings, first * instance::T, count * instance::T);
            settling_core(anchor, count, coupling, state, weight, flag, step);
            drain(state, states);
            drain(weight, weights);
            drain(flag, flags);
            drain(step, steps);
        });
        write_numbers(folder + "states.i16", states);
        write_numbers(folder + "weights.u16", weights);
        write_numbers(folder + "flags.u8", flags);
        write_numbers(folder + "steps.u8", steps);
    });
}

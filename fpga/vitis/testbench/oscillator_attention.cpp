// Reads anchors.i8 [T, D_OSC], keys.i8 [T, D_HEAD], values.i8 [T, D_VALUE] and queries.i8
// [queries, D_HEAD] in a folder, keys and queries as uint8 for the separable coupling; writes
// contexts.i8 [queries, D_VALUE].
#include "instance.hpp"
#include "vectors.hpp"

int main(int argc, char **argv) {
    return simulation::tested(argc, argv, [](const std::string &folder) {
        using namespace simulation;
        using instance::D_HEAD;
        const auto anchors = read_numbers<std::int8_t>(folder + "anchors.i8");
        const auto keys = read_numbers<std::int8_t>(folder + "keys.i8");
        const auto values = read_numbers<std::int8_t>(folder + "values.i8");
        const auto queries = read_numbers<std::int8_t>(folder + "queries.i8");
        std::vector<std::int8_t> contexts;
        for_all(queries.size() / D_HEAD, [&](std::size_t first, unsigned count) {
            hls::stream<entrain::Anchor> anchor("anchors");
            hls::stream<entrain::Feature> key("keys"), query("queries");
            hls::stream<entrain::Value> value("values");
            hls::stream<entrain::Context> context("contexts");
            feed_all(anchor, anchors);
            feed_all(key, keys);
            feed_all(value, values);
            feed(query, queries, first * D_HEAD, count * D_HEAD);
            oscillator_attention(anchor, key, value, count, query, context);
            drain(context, contexts);
        });
        write_numbers(folder + "contexts.i8", contexts);
    });
}

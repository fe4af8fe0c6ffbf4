// Reads exponentials.u16 [ENTRIES], keys.i8 [T, D_HEAD], values.i8 [T, D_VALUE] and queries.i8
// [queries, D_HEAD] in a folder; writes contexts.i8 [queries, D_VALUE].
#include "instance.hpp"
#include "vectors.hpp"

int main(int argc, char **argv) {
    return simulation::tested(argc, argv, [](const std::string &folder) {
        using namespace simulation;
        using instance::D_HEAD;
        const auto exponentials = read_numbers<std::uint16_t>(folder + "exponentials.u16");
        const auto keys = read_numbers<std::int8_t>(folder + "keys.i8");
        const auto values = read_numbers<std::int8_t>(folder + "values.i8");
        const auto queries = read_numbers<std::int8_t>(folder + "queries.i8");
        std::vector<std::int8_t> contexts;
        for_all(queries.size() / D_HEAD, [&](std::size_t first, unsigned count) {
            hls::stream<entrain::Exponential> exponential("exponentials");
            hls::stream<entrain::Feature> key("keys"), query("queries");
            hls::stream<entrain::Value> value("values");
            hls::stream<entrain::Context> context("contexts");
            feed_all(exponential, exponentials);
            feed_all(key, keys);
            feed_all(value, values);
            feed(query, queries, first * D_HEAD, count * D_HEAD);
            softmax_attention(exponential, key, value, count, query, context);
            drain(context, contexts);
        });
        write_numbers(folder + "contexts.i8", contexts);
    });
}

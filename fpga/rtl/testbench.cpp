// Drives a verilated module: every input as fast as it is taken, unless pauses are asked for.
#include "Vtop.h"
#include "channels.h"
#include "verilated.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

namespace {

// A port of up to 64 bits is an integer, a wider one an array of words.
template <typename Port> void write_port(Port &port, const uint32_t *words, int count) {
    if constexpr (std::is_integral_v<Port>) {
        uint64_t value = 0;
        for (int i = count; i-- > 0;) {
            value = (value << 32) | words[i];
        }
        port = static_cast<Port>(value);
    } else {
        for (int i = 0; i < count; i++) {
            port[i] = words[i];
        }
    }
}

template <typename Port> void read_port(const Port &port, uint32_t *words, int count) {
    if constexpr (std::is_integral_v<Port>) {
        uint64_t value = port;
        for (int i = 0; i < count; i++) {
            words[i] = static_cast<uint32_t>(value >> (32 * i));
        }
    } else {
        for (int i = 0; i < count; i++) {
            words[i] = port[i];
        }
    }
}

// xorshift: whether a side pauses in this cycle
struct Pauses {
    uint32_t state;
    bool operator()() {
        if (state == 0) {
            return false;
        }
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        return (state & 3) == 0;
    }
};

} // namespace

extern "C" int entrain_run(const uint32_t *const *inputs, const uint64_t *input_counts,
                           uint32_t *const *outputs, uint64_t *const *times,
                           const uint64_t *output_counts, uint64_t most_cycles, uint32_t pauses,
                           uint64_t *cycles) {
    auto context = std::make_unique<VerilatedContext>();
    auto top = std::make_unique<Vtop>(context.get());
    uint64_t taken[INPUT_COUNT + 1] = {};
    uint64_t given[OUTPUT_COUNT + 1] = {};
    bool offered[INPUT_COUNT + 1] = {};
    Pauses pause{pauses};

    top->clk = 0;
    top->rst = 1;
    for (int i = 0; i < 4; i++) {
        top->clk = !top->clk;
        top->eval();
    }
    top->rst = 0;

    for (uint64_t cycle = 0; cycle < most_cycles; cycle++) {
        // what was offered stays offered until it is taken
#define OFFER(index, name, words)                                                                  \
    offered[index] = taken[index] < input_counts[index] && (offered[index] || !pause());           \
    top->name##_valid = offered[index];                                                            \
    if (offered[index]) {                                                                          \
        write_port(top->name##_data, inputs[index] + taken[index] * (words), words);               \
    }
        INPUTS(OFFER)
#define ACCEPT(index, name, words) top->name##_ready = !pause();
        OUTPUTS(ACCEPT)
        top->clk = 0;
        top->eval();

        bool all = true;
#define TAKE(index, name, words)                                                                   \
    if (offered[index] && top->name##_ready) {                                                     \
        taken[index]++;                                                                            \
        offered[index] = false;                                                                    \
    }
#define GATHER(index, name, words)                                                                 \
    if (top->name##_valid && top->name##_ready) {                                                  \
        if (given[index] < output_counts[index]) {                                                 \
            read_port(top->name##_data, outputs[index] + given[index] * (words), words);           \
            times[index][given[index]] = cycle;                                                    \
        }                                                                                          \
        given[index]++;                                                                            \
    }                                                                                              \
    all = all && given[index] >= output_counts[index];
        OUTPUTS(GATHER)
        INPUTS(TAKE)
        top->clk = 1;
        top->eval();
        *cycles = cycle + 1;
        if (all) {
            top->final();
            return 1;
        }
    }
    top->final();
    return 0;
}

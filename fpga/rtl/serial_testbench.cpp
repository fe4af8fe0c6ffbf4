// A verilated board whose serial pins lead, bit by bit, to a pseudo-terminal.
//
//   PROGRAM DESCRIPTOR
//
// DESCRIPTOR is the terminal's controlling side, already open. The clock runs as fast as it can
// while the board works or a byte is on its way, else the program sleeps; a silence of SILENCE_MS
// is PATIENCE cycles of the clock. It ends when the other side is closed. CLOCKS_PER_BIT and
// PATIENCE are the board's own, in cycles.
#include "Vtop.h"
#include "verilated.h"

#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

namespace {

constexpr int silence_ms = SILENCE_MS;
constexpr size_t read_at_once = 4096;
constexpr size_t written_at_once = 512;
constexpr uint64_t cycles_between_reads = 1024; // the first comes when the reset is over
constexpr uint64_t reset_cycles = 16;
constexpr int bits_of_byte = 10; // with start and stop bit

// The side that sends to the board.
class Sender {
  public:
    explicit Sender(int clocks) : clocks_(clocks) {}
    bool busy() const {
        return left_ > 0;
    }
    void send(uint8_t byte) {
        bits_ = (1U << 9) | (static_cast<unsigned>(byte) << 1);
        left_ = bits_of_byte * clocks_;
        phase_ = clocks_;
    }
    // the line in the next cycle
    bool step() {
        if (left_ == 0) {
            return true;
        }
        const bool line = (bits_ & 1U) != 0;
        left_--;
        if (--phase_ == 0) {
            phase_ = clocks_;
            bits_ >>= 1;
        }
        return line;
    }

  private:
    int clocks_;
    int left_ = 0;
    int phase_ = 0;
    unsigned bits_ = 0;
};

// The side that hears the board.
class Receiver {
  public:
    explicit Receiver(int clocks) : clocks_(clocks) {}
    bool busy() const {
        return place_ >= 0;
    }
    // what the line was in this cycle; whether a byte is complete
    bool step(bool line) {
        if (place_ < 0) {
            if (!line) {
                place_ = 0;
                phase_ = clocks_ / 2;
            }
            return false;
        }
        if (--phase_ > 0) {
            return false;
        }
        phase_ = clocks_;
        if (place_ == 0) {
            place_ = line ? -1 : 1;
            return false;
        }
        if (place_ <= 8) {
            byte_ = static_cast<uint8_t>((byte_ >> 1) | (line ? 0x80 : 0));
            place_++;
            return false;
        }
        place_ = -1;
        return line;
    }
    uint8_t byte() const {
        return byte_;
    }

  private:
    int clocks_;
    int place_ = -1; // of the bit; -1: the line is idle
    int phase_ = 0;
    uint8_t byte_ = 0;
};

// The terminal; everything here ends the program when the other side is gone.
class Terminal {
  public:
    explicit Terminal(int descriptor) : descriptor_(descriptor) {}

    // Whether bytes are there after at most so many milliseconds; -1 waits for ever.
    bool wait(int milliseconds) {
        pollfd asked{descriptor_, POLLIN, 0};
        if (poll(&asked, 1, milliseconds) <= 0) {
            return false;
        }
        if ((asked.revents & POLLIN) == 0) {
            std::exit(0);
        }
        return true;
    }
    std::string read() {
        char bytes[read_at_once];
        const ssize_t count = ::read(descriptor_, bytes, sizeof bytes);
        if (count <= 0) {
            std::exit(0);
        }
        return std::string(bytes, static_cast<size_t>(count));
    }
    void write(std::string &bytes) {
        size_t done = 0;
        while (done < bytes.size()) {
            const ssize_t count = ::write(descriptor_, bytes.data() + done, bytes.size() - done);
            if (count <= 0) {
                std::exit(0);
            }
            done += static_cast<size_t>(count);
        }
        bytes.clear();
    }

  private:
    int descriptor_;
};

} // namespace

int main(int count, char **arguments) {
    if (count != 2) {
        return 2;
    }
    Terminal terminal(std::atoi(arguments[1]));
    constexpr int clocks = CLOCKS_PER_BIT;
    constexpr uint64_t patience = PATIENCE;
    constexpr uint64_t idle = 4U * bits_of_byte * clocks;

    auto context = std::make_unique<VerilatedContext>();
    auto top = std::make_unique<Vtop>(context.get());
    Sender sender(clocks);
    Receiver receiver(clocks);
    std::string given;
    size_t taken = 0;
    std::string heard;
    uint64_t quiet = 0;
    uint64_t asleep_after = idle; // quiet cycles
    bool silent = false;          // the silence has been simulated already

    for (uint64_t cycle = 0;; cycle++) {
        const bool looks = cycle > 0 && cycle % cycles_between_reads == 0;
        if (taken == given.size() && looks && terminal.wait(0)) {
            given = terminal.read();
            taken = 0;
        }
        if (!sender.busy() && taken < given.size()) {
            sender.send(static_cast<uint8_t>(given[taken++]));
            silent = false;
            asleep_after = idle;
        }
        top->uart_rx = sender.step();
        top->reset_n = cycle >= reset_cycles;
        top->clk = 0;
        top->eval();
        top->clk = 1;
        top->eval();
        if (receiver.step(top->uart_tx != 0)) {
            heard.push_back(static_cast<char>(receiver.byte()));
        }
        const bool works = sender.busy() || taken < given.size() || receiver.busy() ||
                           top->led == 0 || cycle < 2 * reset_cycles;
        quiet = works ? 0 : quiet + 1;
        if (heard.size() >= written_at_once || (quiet > 0 && !heard.empty())) {
            terminal.write(heard);
        }
        if (quiet >= asleep_after) {
            if (terminal.wait(silent ? -1 : silence_ms)) {
                given = terminal.read();
                taken = 0;
            } else {
                silent = true;
                asleep_after = patience + idle;
            }
            quiet = 0;
        }
    }
}

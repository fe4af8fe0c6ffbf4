// A stream for C simulation without the vendor's tools, whose own header comes first there.
#pragma once

#include <cstddef>
#include <deque>
#include <stdexcept>
#include <string>

namespace hls {

template <class Word> class stream {
  public:
    explicit stream(const char *name = "a stream") : name_(name) {}
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;

    bool empty() const {
        return words_.empty();
    }
    std::size_t size() const {
        return words_.size();
    }
    void write(const Word &word) {
        words_.push_back(word);
    }
    Word read() {
        if (words_.empty()) {
            throw std::runtime_error("nothing left to read from " + name_);
        }
        const Word word = words_.front();
        words_.pop_front();
        return word;
    }

  private:
    std::string name_;
    std::deque<Word> words_;
};

} // namespace hls

// What the testbenches share: streams from files of numbers, and to them.
#pragma once

#include "hls_stream.h"
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace simulation {

constexpr std::size_t MOST_QUERIES = 4096; // a call, so that the streams stay small

// The numbers of a file, which has nothing else.
template <class Number> std::vector<Number> read_numbers(const std::string &path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) {
        throw std::runtime_error("cannot read " + path);
    }
    std::vector<Number> numbers(static_cast<std::size_t>(file.tellg()) / sizeof(Number));
    file.seekg(0);
    file.read(reinterpret_cast<char *>(numbers.data()),
              static_cast<std::streamsize>(numbers.size() * sizeof(Number)));
    return numbers;
}

template <class Number>
void write_numbers(const std::string &path, const std::vector<Number> &numbers) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char *>(numbers.data()),
               static_cast<std::streamsize>(numbers.size() * sizeof(Number)));
    if (!file.flush()) {
        throw std::runtime_error("cannot write " + path);
    }
}

template <class Word, class Number>
void feed(hls::stream<Word> &stream, const std::vector<Number> &numbers, std::size_t first,
          std::size_t count) {
    for (std::size_t i = first; i < first + count; i++) {
        stream.write(Word(numbers.at(i)));
    }
}

template <class Word, class Number>
void feed_all(hls::stream<Word> &stream, const std::vector<Number> &numbers) {
    feed(stream, numbers, 0, numbers.size());
}

template <class Word, class Number>
void drain(hls::stream<Word> &stream, std::vector<Number> &numbers) {
    while (!stream.empty()) {
        numbers.push_back(static_cast<Number>(stream.read().to_int()));
    }
}

// Calls `run(first, count)` until all queries had their turn.
template <class Run> void for_all(std::size_t queries, Run run) {
    for (std::size_t first = 0; first < queries; first += MOST_QUERIES) {
        run(first, static_cast<unsigned>(std::min(MOST_QUERIES, queries - first)));
    }
}

// The folder that the only argument names; and an error is said, not thrown further.
template <class Test> int tested(int argc, char **argv, Test test) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    try {
        test(std::string(argv[1]) + "/");
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}

} // namespace simulation

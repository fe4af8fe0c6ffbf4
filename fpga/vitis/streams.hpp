// Tables that are read from streams, a word at a time.
#pragma once

#include "ap_int.h"
#include "hls_stream.h"

namespace entrain {

typedef ap_int<8> Anchor; // a component of a unit vector, in steps of 1/127

template <class Word, int ROWS, int COLUMNS>
void load(hls::stream<Word> &words, Word (&table)[ROWS][COLUMNS]) {
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < COLUMNS; k++) {
#pragma HLS PIPELINE II = 1
            table[i][k] = words.read();
        }
    }
}

} // namespace entrain

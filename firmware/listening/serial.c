/* Sound over the serial line, block by block; a block is answered, so the next is not sent before
 * its time. What is heard comes with the answer. */
#include "commands.h"

#include "adpcm.h"
#include "block.h"
#include "board.h"
#include "inference.h"
#include "spotter.h"
#include "text.h"

#include <stddef.h>

#define MOST_FRAMES    SPOTTER_HOP_FRAMES /* of a block */
#define PCM_BYTES      2u                 /* of a sample */
#define MOST_BYTES     (MOST_FRAMES * SPOTTER_FRAME * PCM_BYTES)
#define ADPCM_PER_BYTE 2u /* samples, the earlier one in the low four bits */

static int8_t block[MOST_BYTES];
static int16_t samples[SPOTTER_FRAME];
static struct adpcm adpcm;
static uint32_t expected;  /* number of the next block */
static uint64_t front_end; /* microseconds that features took since the last hop */

static void send_settings(void) {
    text_send("m-listening-[");
    text_send_unsigned(SPOTTER_FRAME);
    text_send(",");
    text_send_unsigned(SPOTTER_HOP_FRAMES);
    for (uint32_t word = 0; word < SPOTTER_WORDS; word++) {
        text_send(",");
        text_send(spotter_names[word]);
    }
    text_send_line("]");
}

static void command_listen(const struct words *words) {
    (void)words;
    expected = 0;
    front_end = 0;
    adpcm = (struct adpcm){0, 0};
    spotter_start();
    send_settings();
}

/* m-hop-[samples heard, 1 in silence, microseconds of front end, of network, scores...] and, if a
 * word was heard, m-heard-[word,its smoothed score,samples heard]. */
static void send_hop(const struct spotter_hop *hop, uint64_t network) {
    text_send("m-hop-[");
    text_send_unsigned(hop->heard);
    text_send(hop->in_silence ? ",1," : ",0,");
    text_send_unsigned(front_end);
    text_send(",");
    text_send_unsigned(network);
    for (uint32_t i = 0; i < SPOTTER_CLASSES; i++) {
        text_send(",");
        text_send_unsigned(hop->raw[i]);
    }
    text_send_line("]");
    if (hop->word != SPOTTER_NO_WORD) {
        text_send("m-heard-[");
        text_send(spotter_names[hop->word]);
        text_send(",");
        text_send_unsigned(hop->smoothed[hop->word]);
        text_send(",");
        text_send_unsigned(hop->heard);
        text_send_line("]");
    }
}

/* Hears the frame in `samples`. What it takes lies between the marks that the counter watches. */
static void hear_frame(void) {
    const struct spotter_hop *hop = NULL;
    const uint64_t start = board_microseconds();
    inference_begin();
    const bool hop_ends = spotter_frame(samples);
    const uint64_t between = board_microseconds();
    if (hop_ends) {
        hop = spotter_decide();
    }
    inference_end();
    front_end += between - start;
    if (hop != NULL) {
        send_hop(hop, board_microseconds() - between);
        front_end = 0;
    }
}

static void decode_pcm(const int8_t *bytes) {
    for (uint32_t i = 0; i < SPOTTER_FRAME; i++) {
        const uint32_t low = (uint8_t)bytes[PCM_BYTES * i];
        samples[i] = (int16_t)(bytes[PCM_BYTES * i + 1u] * 256 + (int32_t)low);
    }
}

static void decode_adpcm(const int8_t *bytes) {
    for (uint32_t i = 0; i < SPOTTER_FRAME; i += ADPCM_PER_BYTE) {
        const uint32_t codes = (uint8_t)bytes[i / ADPCM_PER_BYTE];
        samples[i] = adpcm_decode(&adpcm, codes & 15u);
        samples[i + 1u] = adpcm_decode(&adpcm, codes >> 4);
    }
}

/* Receives block NUMBER of so many bytes and hears it, frame by frame. A block that did not arrive
 * whole changes nothing: it can be sent again. */
static void hear(const struct words *words, uint32_t frame_bytes, void (*decode)(const int8_t *)) {
    uint32_t number = 0;
    uint32_t bytes = 0;
    if (!text_parse_unsigned(words->word[1], UINT32_MAX, &number) ||
        !text_parse_unsigned(words->word[2], BLOCK_MOST_BYTES, &bytes)) {
        text_send_error("the block's number and its length must be numbers");
        return;
    }
    if (!block_is_whole(block_receive(block, MOST_FRAMES * frame_bytes, bytes))) {
        return;
    }
    if (bytes % frame_bytes != 0u) {
        text_send_number_line("e-[a block is whole frames of ", frame_bytes, " bytes]");
    } else if (number != expected) {
        text_send_number_line("e-[expected block ", expected, "]");
    } else {
        expected++;
        for (uint32_t at = 0; at < bytes; at += frame_bytes) {
            decode(&block[at]);
            hear_frame();
        }
    }
}

static void command_hear(const struct words *words) {
    hear(words, SPOTTER_FRAME * PCM_BYTES, decode_pcm);
}

static void command_hear_adpcm(const struct words *words) {
    hear(words, SPOTTER_FRAME / ADPCM_PER_BYTE, decode_adpcm);
}

static const struct command commands[] = {
    {"listen", 1u, 1u, "listen", command_listen},
    {"hear", 3u, 3u, "hear I N, then N bytes of 16-bit samples and their CRC-32", command_hear},
    {"hear-adpcm", 3u, 3u, "hear-adpcm I N, then N bytes of IMA ADPCM and their CRC-32",
     command_hear_adpcm},
};

const struct command_set further_commands = {commands, sizeof commands / sizeof commands[0]};

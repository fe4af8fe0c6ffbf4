#include "spotter.h"

#include "model.h"
#include "scores.h"
#include "window.h"

_Static_assert(MODEL_OUTPUT_COUNT == SPOTTER_CLASSES, "one score a class");
_Static_assert(MODEL_OUTPUT_BYTES >= SPOTTER_CLASSES, "one byte a score");

static struct spotter_hop hop;
static uint32_t recent[SPOTTER_SMOOTHED][SPOTTER_WORDS]; /* scores of the last hops, in a ring */
static uint32_t newest;
static uint32_t refractory[SPOTTER_WORDS]; /* hops for which a word is not heard again */
static uint32_t frames;                    /* of the hop under way */

static void forget_scores(void) {
    for (uint32_t i = 0; i < SPOTTER_SMOOTHED; i++) {
        for (uint32_t word = 0; word < SPOTTER_WORDS; word++) {
            recent[i][word] = 0;
        }
    }
}

void spotter_start(void) {
    hop = (struct spotter_hop){.word = SPOTTER_NO_WORD};
    newest = 0;
    frames = 0;
    forget_scores();
    for (uint32_t word = 0; word < SPOTTER_WORDS; word++) {
        refractory[word] = 0;
    }
    window_start();
}

bool spotter_frame(const int16_t samples[SPOTTER_FRAME]) {
    window_add(samples);
    hop.heard += SPOTTER_FRAME;
    frames++;
    if (frames < SPOTTER_HOP_FRAMES) {
        return false;
    }
    frames = 0;
    return true;
}

/* The network's scores of the last second; without any where nothing in it was loud enough. */
static void score(void) {
    static _Alignas(16) int8_t output[MODEL_OUTPUT_BYTES];
    hop.in_silence = window_loudest() < SPOTTER_GATE;
    if (hop.in_silence) {
        for (uint32_t i = 0; i < SPOTTER_CLASSES; i++) {
            hop.raw[i] = 0;
        }
        return;
    }
    model_run(window_features(), output);
    scores_from_logits(output, SPOTTER_CLASSES, MODEL_OUTPUT_LEAST,
                       SCORE_OCTAVES(MODEL_OUTPUT_SCALE), hop.raw);
}

static void smooth(void) {
    newest = (newest + 1u) % SPOTTER_SMOOTHED;
    for (uint32_t word = 0; word < SPOTTER_WORDS; word++) {
        uint32_t sum = 0;
        recent[newest][word] = hop.raw[word];
        for (uint32_t i = 0; i < SPOTTER_SMOOTHED; i++) {
            sum += recent[i][word];
        }
        hop.smoothed[word] = sum / SPOTTER_SMOOTHED;
    }
}

/* The likeliest word, if it is likely enough and was not heard just now. */
static uint32_t decide(void) {
    uint32_t best = 0;
    for (uint32_t word = 1; word < SPOTTER_WORDS; word++) {
        best = (hop.smoothed[word] > hop.smoothed[best]) ? word : best;
    }
    const bool is_heard = hop.smoothed[best] >= spotter_thresholds[best] && refractory[best] == 0u;
    return is_heard ? best : SPOTTER_NO_WORD;
}

const struct spotter_hop *spotter_decide(void) {
    score();
    smooth();
    for (uint32_t word = 0; word < SPOTTER_WORDS; word++) {
        refractory[word] -= (refractory[word] > 0u) ? 1u : 0u;
    }
    hop.word = decide();
    if (hop.word != SPOTTER_NO_WORD) {
        refractory[hop.word] = spotter_refractory[hop.word];
        forget_scores(); /* what made this word known says nothing of a next one */
    }
    return &hop;
}

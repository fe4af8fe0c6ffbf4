/* The commands of the serial line. MLPerf Tiny's grammar, and load, classify and raw of our own. */
#ifndef ENTRAIN_COMMANDS_H
#define ENTRAIN_COMMANDS_H

#include "line.h"

struct command {
    const char *name;
    uint32_t fewest_words;
    uint32_t most_words;
    const char *usage;
    void (*execute)(const struct words *words);
};

struct command_set {
    const struct command *commands;
    uint32_t count;
};

/* What a firmware does beside running a model: listening/commands.c, or app/without_listening.c. */
extern const struct command_set further_commands;

/* Carries out one command and sends its answer, all but the closing m-ready. */
void commands_execute(const struct words *words);

#endif

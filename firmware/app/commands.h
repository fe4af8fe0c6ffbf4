/* The commands of the serial line. MLPerf Tiny's grammar, and load, classify and raw of our own. */
#ifndef ENTRAIN_COMMANDS_H
#define ENTRAIN_COMMANDS_H

#include "line.h"

/* Carries out one command and sends its answer, all but the closing m-ready. */
void commands_execute(const struct words *words);

#endif

/* Gathers received bytes into one command: printable ASCII, ended by '%', at most 80 characters. */
#ifndef ENTRAIN_LINE_H
#define ENTRAIN_LINE_H

#include <stdbool.h>
#include <stdint.h>

#define LINE_CAPACITY  80u
#define LINE_MAX_WORDS 4u

struct line {
    char text[LINE_CAPACITY + 1u];
    uint32_t length;
    bool too_long;
    bool unprintable;
};

enum line_state { LINE_OPEN, LINE_COMPLETE, LINE_TOO_LONG, LINE_UNPRINTABLE };

struct words {
    const char *word[LINE_MAX_WORDS];
    uint32_t count; /* more than LINE_MAX_WORDS if some were left out */
};

void line_clear(struct line *line);

/* Adds a byte. Line breaks and tabs count as spaces. After anything but LINE_OPEN the caller
 * reads the line and clears it. */
enum line_state line_add(struct line *line, uint8_t byte);

/* Splits a complete line on its spaces, in place. */
struct words line_split(struct line *line);

#endif

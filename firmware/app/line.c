#include "line.h"

#define TERMINATOR '%'

void line_clear(struct line *line) {
    line->length = 0;
    line->too_long = false;
    line->unprintable = false;
}

enum line_state line_add(struct line *line, uint8_t byte) {
    if (byte == (uint8_t)TERMINATOR) {
        line->text[line->length] = '\0';
        if (line->unprintable) {
            return LINE_UNPRINTABLE;
        }
        return line->too_long ? LINE_TOO_LONG : LINE_COMPLETE;
    }
    if (byte == '\r' || byte == '\n' || byte == '\t') {
        byte = ' ';
    }
    if (byte == ' ' && line->length == 0u) {
        return LINE_OPEN;
    }
    if (byte < (uint8_t)' ' || byte > (uint8_t)'~') {
        line->unprintable = true;
    } else if (line->length == LINE_CAPACITY) {
        line->too_long = true;
    } else {
        line->text[line->length] = (char)byte;
        line->length++;
    }
    return LINE_OPEN;
}

struct words line_split(struct line *line) {
    struct words words = {.count = 0};
    bool inside = false;
    for (uint32_t i = 0; i < line->length; i++) {
        if (line->text[i] == ' ') {
            line->text[i] = '\0';
            inside = false;
        } else if (!inside) {
            inside = true;
            if (words.count < LINE_MAX_WORDS) {
                words.word[words.count] = &line->text[i];
            }
            words.count++;
        }
    }
    return words;
}

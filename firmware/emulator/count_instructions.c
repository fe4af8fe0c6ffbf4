/* SPDX-License-Identifier: MIT
 *
 * MIT License. Copyright (c) The Entrain authors.
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy of this software
 * and associated documentation files (the "Software"), to deal in the Software without
 * restriction, including without limitation the rights to use, copy, modify, merge, publish,
 * distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
 * Software is furnished to do so, subject to the following conditions:
 *
 * The above copyright notice and this permission notice shall be included in all copies or
 * substantial portions of the Software.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING
 * BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
 * NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
 * DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
 * OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
 *
 * This file alone is under the MIT licence, because it is loaded into QEMU's process, which is
 * under the GNU General Public License, version 2.
 *
 * A QEMU plugin that counts executed instructions per address between two marks.
 *
 *   -plugin count_instructions.so,begin=ADDRESS,end=ADDRESS,out=FILE
 *
 * The window opens when the function at `begin` is entered and closes when the one at `end` is.
 * At each window's end FILE holds that window alone, as pairs of 64-bit numbers in the machine's
 * byte order: (number of the window from 1, pairs that follow), then (address, executions).
 *
 * QEMU translates guest code in blocks that are left only at their end, or by a fault; interrupts
 * are taken between blocks. So counting the executions of blocks is exact and cheap.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* QEMU's plugin interface as documented; Debian ships no header for it. The version is chosen by
 * whoever compiles this: 1 up to QEMU 8.2, 2 from 9.0 on. */
typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
                                           void (*callback)(qemu_plugin_id_t,
                                                            struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block,
                                          void (*callback)(unsigned int, void *),
                                          enum qemu_plugin_cb_flags flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);

#define EXPORT __attribute__((visibility("default")))

EXPORT int qemu_plugin_version = PLUGIN_API_VERSION;

/* A translated block; the same code may be translated again, and then is another block. */
struct block {
    struct block *older;
    uint64_t executions;
    size_t length;
    uint64_t addresses[];
};

/* Executions at one address, gathered from all blocks at a window's end. */
struct place {
    uint64_t address;
    uint64_t executions;
};

static struct block *newest;
static size_t instructions_translated;
static uint64_t begin_address, end_address, windows;
static bool window_is_open;
static const char *path;

static void count(unsigned int cpu, void *data) {
    (void)cpu;
    ((struct block *)data)->executions++;
}

static void open_window(unsigned int cpu, void *data) {
    (void)cpu;
    (void)data;
    for (struct block *block = newest; block != NULL; block = block->older) {
        block->executions = 0;
    }
    window_is_open = true;
}

static int by_address(const void *left, const void *right) {
    const uint64_t a = ((const struct place *)left)->address;
    const uint64_t b = ((const struct place *)right)->address;
    return (a > b) - (a < b);
}

static void stop_emulator(const char *what) {
    fprintf(stderr, "count_instructions: %s\n", what);
    exit(EXIT_FAILURE);
}

/* All places executed in this window, sorted by address, each once; sets `places_count`. */
static struct place *gather(size_t *places_count) {
    struct place *places = malloc((instructions_translated + 1) * sizeof *places);
    size_t used = 0, merged = 0;
    if (places == NULL) {
        stop_emulator("out of memory");
    }
    for (struct block *block = newest; block != NULL; block = block->older) {
        for (size_t i = 0; block->executions != 0 && i < block->length; i++) {
            places[used++] = (struct place){block->addresses[i], block->executions};
        }
    }
    qsort(places, used, sizeof *places, by_address);
    for (size_t i = 0; i < used; i++) {
        if (merged > 0 && places[merged - 1].address == places[i].address) {
            places[merged - 1].executions += places[i].executions;
        } else {
            places[merged++] = places[i];
        }
    }
    *places_count = merged;
    return places;
}

static void close_window(unsigned int cpu, void *data) {
    size_t places_count = 0;
    (void)cpu;
    (void)data;
    if (!window_is_open) {
        return;
    }
    window_is_open = false;
    struct place *places = gather(&places_count);
    const struct place head = {++windows, places_count};
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(&head, sizeof head, 1, file) != 1 ||
        fwrite(places, sizeof *places, places_count, file) != places_count || fclose(file) != 0) {
        stop_emulator("cannot write the counts");
    }
    free(places);
}

static void block_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *translated) {
    const size_t length = qemu_plugin_tb_n_insns(translated);
    const uint64_t address = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(translated, 0));
    (void)id;
    /* The marks are functions, entered by a call, so a block begins at each; they do not count. */
    if (address == begin_address || address == end_address) {
        qemu_plugin_register_vcpu_tb_exec_cb(translated,
                                             address == begin_address ? open_window : close_window,
                                             QEMU_PLUGIN_CB_NO_REGS, NULL);
        return;
    }
    struct block *block = malloc(sizeof *block + length * sizeof block->addresses[0]);
    if (block == NULL) {
        stop_emulator("out of memory");
    }
    *block = (struct block){.older = newest, .length = length};
    for (size_t i = 0; i < length; i++) {
        block->addresses[i] = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(translated, i));
    }
    newest = block;
    instructions_translated += length;
    qemu_plugin_register_vcpu_tb_exec_cb(translated, count, QEMU_PLUGIN_CB_NO_REGS, block);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                               char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "begin=", 6) == 0) {
            begin_address = strtoull(argv[i] + 6, NULL, 0);
        } else if (strncmp(argv[i], "end=", 4) == 0) {
            end_address = strtoull(argv[i] + 4, NULL, 0);
        } else if (strncmp(argv[i], "out=", 4) == 0) {
            path = strdup(argv[i] + 4);
        } else {
            fprintf(stderr, "count_instructions: unknown argument %s\n", argv[i]);
            return -1;
        }
    }
    if (path == NULL) {
        fprintf(stderr, "count_instructions: out=FILE is missing\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
    return 0;
}

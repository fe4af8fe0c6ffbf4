/* CRC-32 as in Ethernet, zlib and PNG: polynomial 0x04c11db7 reflected, start and final inversion.
 */
#ifndef ENTRAIN_CRC32_H
#define ENTRAIN_CRC32_H

#include <stdint.h>

#define CRC32_START 0xffffffffu

uint32_t crc32_add(uint32_t crc, uint8_t byte);

static inline uint32_t crc32_finish(uint32_t crc) {
    return ~crc;
}

#endif

/* Writing MessagePack as short as it goes. Each returns where the next value goes;
 * there must be room for nine bytes. */
#ifndef FOLD_ENCODE_H
#define FOLD_ENCODE_H

#include <stdint.h>
#include <string.h>

static inline uint8_t *put_big_endian(uint8_t *at, uint64_t number, int width) {
    for (int i = 0; i < width; i++)
        at[i] = (uint8_t)(number >> (8 * (width - 1 - i)));
    return at + width;
}

static inline uint8_t *put_array(uint8_t *at, uint64_t length) {
    if (length < 16) {
        *at = (uint8_t)(0x90 | length);
        return at + 1;
    }
    *at = length < 1 << 16 ? 0xDC : 0xDD;
    return put_big_endian(at + 1, length, length < 1 << 16 ? 2 : 4);
}

static inline uint8_t *put_number(uint8_t *at, int64_t number) {
    if (number >= -32 && number < 0x80) {
        *at = (uint8_t)number;
        return at + 1;
    }
    /* Negative ones take a bit more. */
    uint64_t size = number < 0 ? ~(uint64_t)number << 1 : (uint64_t)number;
    int power = size >> 8 ? size >> 16 ? size >> 32 ? 3 : 2 : 1 : 0;
    *at = (uint8_t)((number < 0 ? 0xD0 : 0xCC) + power);
    return put_big_endian(at + 1, (uint64_t)number, 1 << power);
}

static inline uint8_t *put_bytes(uint8_t *at, const uint8_t *bytes, size_t n) {
    memcpy(at, bytes, n);
    return at + n;
}

#endif

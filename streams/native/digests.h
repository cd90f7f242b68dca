/* Words and digests of bytes.
 *
 * Not for bytes that somebody chooses in order to make two equal: whoever may write
 * `queries` decides what is counted anyway. */
#ifndef FOLD_DIGESTS_H
#define FOLD_DIGESTS_H

#include <stdbool.h>
#include <stdint.h>

struct name {
    uint64_t first, second;
};

/* Eight bytes as a little-endian number, written so that it becomes one load. */
static inline uint64_t word_at(const uint8_t *bytes) {
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 |
           (uint64_t)bytes[3] << 24 | (uint64_t)bytes[4] << 32 | (uint64_t)bytes[5] << 40 |
           (uint64_t)bytes[6] << 48 | (uint64_t)bytes[7] << 56;
}

static inline uint64_t half_word_at(const uint8_t *bytes) {
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 |
           (uint64_t)bytes[3] << 24;
}

/* The same for 0 to 8 bytes; what lies behind them is not read. Loads overlap, so that
 * there is no loop: processors cannot guess how often one runs. */
static inline uint64_t part_at(const uint8_t *bytes, int64_t n) {
    if (n >= 8)
        return word_at(bytes);
    if (n >= 4)
        return half_word_at(bytes) | half_word_at(bytes + n - 4) << 8 * (n - 4);
    if (n <= 0)
        return 0;
    return (uint64_t)bytes[0] | (uint64_t)bytes[n / 2] << 8 * (n / 2) |
           (uint64_t)bytes[n - 1] << 8 * (n - 1);
}

static inline struct name name_at(const uint8_t *bytes) {
    return (struct name){word_at(bytes), word_at(bytes + 8)};
}

static inline bool is_same_name(struct name one, struct name other) {
    return one.first == other.first && one.second == other.second;
}

/* The two halves of the 128-bit product, combined with its factors: none of them
 * makes the others count for nothing. */
static inline uint64_t folded(uint64_t left, uint64_t right) {
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)left * right;
    return (uint64_t)(product >> 64) ^ (uint64_t)product ^ left ^ right;
#else
    uint64_t low = left & 0xFFFFFFFF, high = left >> 32;
    uint64_t other = right & 0xFFFFFFFF, upper = right >> 32;
    uint64_t middle = high * other + (low * other >> 32);
    uint64_t across = low * upper + (middle & 0xFFFFFFFF);
    return (high * upper + (middle >> 32) + (across >> 32)) ^ left * right ^ left ^ right;
#endif
}

/* 128 bits that name a span after what `seed` names. */
static inline struct name hashed(const uint8_t *bytes, int64_t n, struct name seed) {
    static const uint64_t secrets[] = {UINT64_C(0x9E3779B97F4A7C15),
                                       UINT64_C(0xC2B2AE3D27D4EB4F),
                                       UINT64_C(0xD6E8FEB86659FD93)};
    uint64_t first = folded(seed.first ^ secrets[0], (uint64_t)n ^ secrets[1]);
    uint64_t second = seed.second;
    for (int64_t at = 0; at < n; at += 16) {
        uint64_t left = part_at(bytes + at, n - at);
        uint64_t right = n - at > 8 ? part_at(bytes + at + 8, n - at - 8) : 0;
        first = folded(left ^ secrets[1], right ^ first);
        second = folded(left ^ second, right ^ secrets[2]);
    }
    return (struct name){first, second ^ first};
}

#endif

#include "blake2b.h"

#include <string.h>

#include "digests.h"
#include "export.h"

static const uint64_t FIRST[8] = {
    UINT64_C(0x6A09E667F3BCC908), UINT64_C(0xBB67AE8584CAA73B),
    UINT64_C(0x3C6EF372FE94F82B), UINT64_C(0xA54FF53A5F1D36F1),
    UINT64_C(0x510E527FADE682D1), UINT64_C(0x9B05688C2B3E6C1F),
    UINT64_C(0x1F83D9ABFB41BD6B), UINT64_C(0x5BE0CD19137E2179)};

static inline uint64_t rotated(uint64_t word, int n) {
    return word >> n | word << (64 - n);
}

#define MIX(a, b, c, d, x, y)                                                          \
    a += b + m[x];                                                                     \
    d = rotated(d ^ a, 32);                                                            \
    c += d;                                                                            \
    b = rotated(b ^ c, 24);                                                            \
    a += b + m[y];                                                                     \
    d = rotated(d ^ a, 16);                                                            \
    c += d;                                                                            \
    b = rotated(b ^ c, 63);

/* One round; the words of the message that it takes, in the order of the standard. */
#define ROUND(i0, i1, i2, i3, i4, i5, i6, i7, i8, i9, i10, i11, i12, i13, i14, i15)    \
    MIX(v0, v4, v8, v12, i0, i1)                                                       \
    MIX(v1, v5, v9, v13, i2, i3)                                                       \
    MIX(v2, v6, v10, v14, i4, i5)                                                      \
    MIX(v3, v7, v11, v15, i6, i7)                                                      \
    MIX(v0, v5, v10, v15, i8, i9)                                                      \
    MIX(v1, v6, v11, v12, i10, i11)                                                    \
    MIX(v2, v7, v8, v13, i12, i13)                                                     \
    MIX(v3, v4, v9, v14, i14, i15)

static void compress(struct blake2b *state, int is_last) {
    uint64_t m[16], *h = state->h;
    for (int i = 0; i < 16; i++)
        m[i] = word_at(state->block + 8 * i);
    uint64_t v0 = h[0], v1 = h[1], v2 = h[2], v3 = h[3];
    uint64_t v4 = h[4], v5 = h[5], v6 = h[6], v7 = h[7];
    uint64_t v8 = FIRST[0], v9 = FIRST[1], v10 = FIRST[2], v11 = FIRST[3];
    uint64_t v12 = FIRST[4] ^ state->n_taken, v13 = FIRST[5];
    uint64_t v14 = is_last ? ~FIRST[6] : FIRST[6], v15 = FIRST[7];
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)
    ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4)
    ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8)
    ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13)
    ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9)
    ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11)
    ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10)
    ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5)
    ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0)
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)
    h[0] ^= v0 ^ v8;
    h[1] ^= v1 ^ v9;
    h[2] ^= v2 ^ v10;
    h[3] ^= v3 ^ v11;
    h[4] ^= v4 ^ v12;
    h[5] ^= v5 ^ v13;
    h[6] ^= v6 ^ v14;
    h[7] ^= v7 ^ v15;
}

void blake2b_begin(struct blake2b *state, int64_t n_digest) {
    memcpy(state->h, FIRST, sizeof FIRST);
    state->h[0] ^= UINT64_C(0x01010000) ^ (uint64_t)n_digest;
    state->n_taken = 0;
    state->n_waiting = 0;
    state->n_digest = n_digest;
}

void blake2b_take(struct blake2b *state, const uint8_t *bytes, int64_t n) {
    while (n > 0) {
        /* The last block is another one: a full one waits for what follows. */
        if (state->n_waiting == BLAKE2B_BLOCK) {
            state->n_taken += BLAKE2B_BLOCK;
            compress(state, 0);
            state->n_waiting = 0;
        }
        int64_t room = BLAKE2B_BLOCK - state->n_waiting, some = n < room ? n : room;
        memcpy(state->block + state->n_waiting, bytes, (size_t)some);
        state->n_waiting += some;
        bytes += some;
        n -= some;
    }
}

void blake2b_end(struct blake2b *state, uint8_t *digest) {
    memset(state->block + state->n_waiting, 0,
           (size_t)(BLAKE2B_BLOCK - state->n_waiting));
    state->n_taken += (uint64_t)state->n_waiting;
    compress(state, 1);
    for (int64_t i = 0; i < state->n_digest; i++)
        digest[i] = (uint8_t)(state->h[i / 8] >> 8 * (i % 8));
}

/* Of bytes at once, for tests against hashlib; returns 0, or -1 for such a length. */
FOLD_EXPORT int64_t fold_blake2b(const uint8_t *bytes, int64_t n, uint8_t *digest,
                                 int64_t n_digest);

int64_t fold_blake2b(const uint8_t *bytes, int64_t n, uint8_t *digest,
                     int64_t n_digest) {
    struct blake2b state;
    if (n < 0 || n_digest < 1 || n_digest > 64)
        return -1;
    blake2b_begin(&state, n_digest);
    blake2b_take(&state, bytes, n);
    blake2b_end(&state, digest);
    return 0;
}

/* BLAKE2b (RFC 7693) without a key, for digests of up to 64 bytes.
 *
 * Identities, routes and units are such digests, as `rankstream.wire.routing` makes
 * them by hashlib. */
#ifndef FOLD_BLAKE2B_H
#define FOLD_BLAKE2B_H

#include <stdint.h>

#define BLAKE2B_BLOCK 128

struct blake2b {
    uint64_t h[8], n_taken;
    int64_t n_waiting, n_digest;
    uint8_t block[BLAKE2B_BLOCK];
};

void blake2b_begin(struct blake2b *state, int64_t n_digest);

void blake2b_take(struct blake2b *state, const uint8_t *bytes, int64_t n);

/* Writes the `n_digest` bytes of the digest. */
void blake2b_end(struct blake2b *state, uint8_t *digest);

#endif

#include "arena.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 18, LARGE_BYTES = 1 << 14 };

static void *block_of(struct arena *arena, size_t size) {
    struct arena_block *block = calloc(1, sizeof *block + size);
    if (!block)
        return NULL;
    *block = (struct arena_block){arena->blocks, size};
    arena->blocks = block;
    arena->n_bytes += (int64_t)(sizeof *block + size);
    return block + 1;
}

void *arena_take(struct arena *arena, size_t n_bytes) {
    if (n_bytes > PTRDIFF_MAX / 2)
        return NULL;
    n_bytes = (n_bytes + 7) & ~(size_t)7;
    if (n_bytes > LARGE_BYTES)
        return block_of(arena, n_bytes);
    if ((size_t)(arena->end - arena->at) < n_bytes) {
        uint8_t *bytes = block_of(arena, BLOCK_BYTES);
        if (!bytes)
            return NULL;
        arena->at = bytes;
        arena->end = bytes + BLOCK_BYTES;
    }
    void *taken = arena->at;
    arena->at += n_bytes;
    return taken;
}

void arena_free(struct arena *arena) {
    while (arena->blocks) {
        struct arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
    *arena = (struct arena){0};
}

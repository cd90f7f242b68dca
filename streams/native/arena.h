/* Memory that is given back all at once: what is kept of an era leaves with it. What is
 * taken never moves. */
#ifndef FOLD_ARENA_H
#define FOLD_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_block {
    struct arena_block *next;
    size_t size;
};

struct arena {
    struct arena_block *blocks;
    uint8_t *at, *end;
    int64_t n_bytes;
};

/* Zeros, or NULL if there is no memory. */
void *arena_take(struct arena *arena, size_t n_bytes);

void arena_free(struct arena *arena);

#endif

#include "open.h"

/* Tests take smaller ones: more of them come and go. */
#if !defined(FOLD_CHUNK_BYTES)
#define FOLD_CHUNK_BYTES (1 << 20)
#endif

enum { CHUNK_BYTES = FOLD_CHUNK_BYTES };

static size_t entry_size(const struct entry *entry) {
    return (head_size(entry) + entry->length + 7) & ~(size_t)7;
}

uint64_t behind(const struct entry *entry, uint64_t ref) {
    return ref + entry_size(entry);
}

/* The last chunk, or NULL. */
static struct chunk *last_of(const struct chunks *chunks) {
    size_t n = chunks->rows.n;
    return n ? *(struct chunk **)queue_at(&chunks->rows, n - 1) : NULL;
}

/* Lets the chunk of this row go. */
static void let_go(struct chunks *chunks, size_t row) {
    struct chunk **place = queue_at(&chunks->rows, row);
    if ((*place)->size == CHUNK_BYTES && !chunks->spare) {
        chunks->spare = *place;
    } else {
        chunks->n_bytes -= (int64_t)(*place)->size;
        free(*place);
    }
    *place = NULL;
    size_t n_gone = 0;
    while (n_gone < chunks->rows.n && !*(struct chunk **)queue_at(&chunks->rows, n_gone))
        n_gone++;
    queue_pop(&chunks->rows, n_gone);
    chunks->first += n_gone;
}

/* Another chunk behind the last one, or NULL. */
static struct chunk *add_chunk(struct chunks *chunks, size_t size) {
    struct chunk *last = last_of(chunks);
    if (last && last->n_live == 0)
        let_go(chunks, chunks->rows.n - 1);
    if (!queue_reserve(&chunks->rows, 1))
        return NULL;
    struct chunk *chunk = chunks->spare;
    if (size <= CHUNK_BYTES && chunk) {
        chunks->spare = NULL;
    } else {
        size = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        chunk = malloc(sizeof *chunk + size);
        if (!chunk)
            return NULL;
        chunk->size = size;
        chunks->n_bytes += (int64_t)size;
    }
    chunk->end = 0;
    chunk->n_live = 0;
    *(struct chunk **)queue_push(&chunks->rows) = chunk;
    return chunk;
}

uint64_t chunks_add(struct chunks *chunks, struct entry entry, const uint8_t *bytes) {
    size_t size = entry_size(&entry), head = head_size(&entry);
    struct chunk *chunk = last_of(chunks);
    if (!chunk || chunk->size - chunk->end < size) {
        chunk = add_chunk(chunks, size);
        if (!chunk)
            return 0;
    }
    uint64_t ref = (chunks->first + chunks->rows.n - 1) << 32 | chunk->end;
    uint8_t *place = chunk->bytes + chunk->end;
    memset(place, 0, head);
    memcpy(place, &entry, sizeof entry);
    memcpy(place + head, bytes, entry.length);
    chunk->end += size;
    chunk->n_live++;
    return ref;
}

void chunks_release(struct chunks *chunks, uint64_t ref) {
    struct chunk *chunk = chunk_of(chunks, ref);
    size_t row = (size_t)((ref >> 32) - chunks->first);
    if (--chunk->n_live == 0 && row + 1 < chunks->rows.n)
        let_go(chunks, row);
}

uint64_t chunks_end(const struct chunks *chunks) {
    const struct chunk *last = last_of(chunks);
    uint64_t n = chunks->first + chunks->rows.n;
    return last ? (n - 1) << 32 | last->end : n << 32;
}

struct entry *chunks_next(const struct chunks *chunks, uint64_t *ref) {
    uint64_t number = *ref >> 32, n = chunks->first + chunks->rows.n;
    size_t at = (uint32_t)*ref;
    if (number < chunks->first) {
        number = chunks->first;
        at = 0;
    }
    for (; number < n; number++, at = 0) {
        struct chunk *chunk = chunk_of(chunks, number << 32);
        if (chunk && at < chunk->end) {
            *ref = number << 32 | at;
            return (struct entry *)(void *)(chunk->bytes + at);
        }
    }
    return NULL;
}

void chunks_free(struct chunks *chunks) {
    for (size_t row = 0; row < chunks->rows.n; row++)
        free(*(struct chunk **)queue_at(&chunks->rows, row));
    free(chunks->spare);
    free(chunks->rows.rows);
}

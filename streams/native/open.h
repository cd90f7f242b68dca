/* What was accepted, in the order of the log: open impressions, their clicks, and clicks
 * that wait or waited for theirs. Each is a head with the bytes of its element behind it, as they
 * came, in chunks of 1 MiB. A chunk goes when nothing of it is live; nothing is ever
 * moved. What a checkpoint must hold is what lies behind the last one's mark: where in
 * the log it is, or its bytes where it is not there. */
#ifndef FOLD_OPEN_H
#define FOLD_OPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue.h"

enum { KIND_IMPRESSION, KIND_CLICK, KIND_WAITING };

/* What is said of an impression beside what is counted. */
enum { HAS_EXTRA = 1, IS_EXCLUDED = 2 };

/* Of what stands nowhere in the log as it is. */
enum { NOWHERE = -1 };

/* Begins every entry; `identity_at` is where its 16 bytes are behind the head. `origin`
 * names the element of the log that it is, by a number of the caller's, or NOWHERE. */
struct entry {
    int64_t due_ms, origin;
    uint32_t length;
    uint8_t kind, identity_at, flags;
};

/* Fields are places behind the head. */
struct impression {
    struct entry entry;
    uint64_t first_click, last_click;
    int64_t click_bytes;
    uint32_t n_clicks, shown_at, candidates_at, model_at;
};

struct click {
    struct entry entry;
    uint64_t next;
    int64_t at_ms;
    uint32_t position, action_at, action_end;
};

/* `next` is 0 where it waits no longer. The first of a ring has how many wait in it, and
 * their bytes; the others have what they had when they were first, or nothing. */
struct waiting {
    struct entry entry;
    uint64_t next, before;
    int64_t n_bytes;
    uint32_t n, impression_at;
};

struct chunk {
    size_t size, end;
    int64_t n_live;
    _Alignas(8) uint8_t bytes[];
};

/* A reference holds the number of its chunk, which rises by one, and the place there:
 * later entries have larger references. No chunk has the number 0. */
struct chunks {
    struct queue rows; /* of struct chunk *, NULL where it has gone */
    struct chunk *spare;
    uint64_t first, mark;
    int64_t n_bytes;
};

static inline struct chunk *chunk_of(const struct chunks *chunks, uint64_t ref) {
    return *(struct chunk **)queue_at(&chunks->rows, (size_t)((ref >> 32) - chunks->first));
}

static inline void *entry_at(const struct chunks *chunks, uint64_t ref) {
    return chunk_of(chunks, ref)->bytes + (uint32_t)ref;
}

static inline size_t head_size(const struct entry *entry) {
    if (entry->kind == KIND_IMPRESSION)
        return sizeof(struct impression);
    return entry->kind == KIND_CLICK ? sizeof(struct click) : sizeof(struct waiting);
}

static inline const uint8_t *bytes_of(const struct entry *entry) {
    return (const uint8_t *)entry + head_size(entry);
}

/* Adds an entry with the bytes of its element, and zeros in the rest of its head.
 * Its reference, or 0 if there is no memory. */
uint64_t chunks_add(struct chunks *chunks, struct entry entry, const uint8_t *bytes);

/* Says that an entry is not needed any more. */
void chunks_release(struct chunks *chunks, uint64_t ref);

/* Where the next entry will be at the earliest. */
uint64_t chunks_end(const struct chunks *chunks);

/* The first entry at or behind a reference, which becomes its own, or NULL. */
struct entry *chunks_next(const struct chunks *chunks, uint64_t *ref);

/* The reference behind that of an entry. */
uint64_t behind(const struct entry *entry, uint64_t ref);

void chunks_free(struct chunks *chunks);

#endif

/* The join of clicks with their impressions in one partition: what is plain of it.
 *
 * `streams/fold/join.py` holds the rules of what is rare, and calls what stands here.
 * Nothing here reads outside the elements that it is given, nor trusts their places
 * beyond what `fold_find_elements` has checked. */
#ifndef FOLD_JOIN_H
#define FOLD_JOIN_H

#include <stdint.h>

#include "due.h"
#include "export.h"
#include "identities.h"
#include "open.h"

/* What came of it, where it is less than zero. */
enum { NOT_WHOLE = -4, NO_MEMORY = -3, IS_BEYOND = -2, IS_LATE = -1 };

/* An identity and the time until when it was open: little-endian in the state. */
struct remembered {
    int64_t due_ms;
    struct name name;
};

/* How many identities became known at a time. */
struct known {
    int64_t due_ms, n;
};

struct join {
    int64_t window_ms, remember_ms, n_open, n_placed;
    struct now now;
    struct identities identities;
    struct chunks chunks;
    struct dues dues;
    struct queue forgetting; /* of struct known, by time */
    struct queue remembered; /* of struct remembered, since the last checkpoint */
    struct queue due;        /* of uint64_t: impressions that are being closed */
    struct queue clicks;     /* of struct ordered: those of one of them */
};

/* Clicks of one impression, and their bytes, at most. */
struct limits {
    int64_t n_clicks, n_bytes;
};

/* An empty join, or NULL if there is no memory. */
FOLD_EXPORT struct join *join_new(int64_t window_ms, int64_t remember_ms);
FOLD_EXPORT void join_free(struct join *join);

/* Takes elements from the one numbered `first` on, up to the first that is not plain;
 * its number, or `n`, or NO_MEMORY. Plain are new impressions that nothing waits for,
 * and clicks on a place of an open one that has room for them. `origin` is that of the
 * element numbered 0, and that of each other one is larger by its number; or all are
 * NOWHERE. */
FOLD_EXPORT int64_t join_take(struct join *join, const uint8_t *data, const int8_t *tags,
                              const int64_t *places, int64_t first, int64_t n,
                              int64_t most_clicks, int64_t most_bytes, int64_t origin);

/* Makes an impression, alone in `data`, one that is open; its reference, or NO_MEMORY,
 * or NOT_WHOLE where it cannot be: it is known, or its window is over. */
FOLD_EXPORT int64_t join_open(struct join *join, const uint8_t *data, int64_t n,
                              int64_t origin);

/* Attaches a click, alone in `data`, to an open impression; the position it is about,
 * 0 if that was not shown. IS_LATE, IS_BEYOND its limits: it was not attached. */
FOLD_EXPORT int64_t join_attach(struct join *join, uint64_t ref, const uint8_t *data,
                                int64_t n, int64_t most_clicks, int64_t most_bytes,
                                int64_t origin);

/* Keeps an element for the next checkpoint, if it is not due by then, as a copy. 0, or
 * NO_MEMORY: then it is not kept. */
FOLD_EXPORT int64_t join_note(struct join *join, int64_t due_ms, const uint8_t *data,
                              int64_t n);

/* What an identity of 16 bytes is: one of `enum state`, or the reference of the open
 * impression. */
FOLD_EXPORT int64_t join_find(const struct join *join, const uint8_t *identity);

/* Makes an identity one that waits (REF_NOTHING), or that is awaited (REF_AWAITED). 0, or
 * NO_MEMORY: then it is what it was. */
FOLD_EXPORT int64_t join_give(struct join *join, const uint8_t *identity, uint64_t ref);
FOLD_EXPORT void join_remove(struct join *join, const uint8_t *identity);

/* Hears that the watermark has moved, and takes out what is due. Writes how many there
 * are, how many bytes they take as interactions at most, and how many clicks. 0, or
 * NO_MEMORY: then `sizes` are not written; what was taken out comes with the next call. */
FOLD_EXPORT int64_t join_fall_due(struct join *join, int64_t now_ms, int64_t sizes[3]);

/* Writes what has fallen due as interactions, and forgets what is old: the end of each
 * one, a digest of the name of its model, and HAS_EXTRA with or without IS_EXCLUDED.
 * The number of clicks in them, or NO_MEMORY. */
FOLD_EXPORT int64_t join_close(struct join *join, uint8_t *encoded, int64_t *ends,
                               uint64_t *models, uint8_t *flags);

/* Elements that were accepted since the last checkpoint and are not due: when each is
 * due, its origin, and, where that is NOWHERE, its bytes up to its end. Writes how many
 * there are, and how many bytes; without `out` only that, and there is no new
 * checkpoint. */
FOLD_EXPORT void join_accepted(struct join *join, uint8_t *out, int64_t *ends,
                               int64_t *due_ms, int64_t *origins, int64_t sizes[2]);

/* Identities that became known since the last checkpoint and still are: when they were
 * due, and their names as two words each. */
FOLD_EXPORT void join_remembered(struct join *join, int64_t *due_ms, uint64_t *names);

/* Takes back a watermark; identities that are known; or says that all that was taken
 * came from the state, which holds it. `join_restore_known` returns 0, or NO_MEMORY:
 * then none of them is known. */
FOLD_EXPORT void join_restore_time(struct join *join, int64_t now_ms);
FOLD_EXPORT int64_t join_restore_known(struct join *join, const int64_t *due_ms,
                                       const uint64_t *names, int64_t n);
FOLD_EXPORT void join_restored(struct join *join);

/* Open impressions, clicks on a place of one, known identities, those among them that
 * are new since the last checkpoint, bytes of memory. */
FOLD_EXPORT void join_sizes(const struct join *join, int64_t sizes[5]);

#endif

/* The join of clicks with their impressions in one partition: what is plain of it.
 *
 * `streams/fold/join.py` holds the rules of what is rare, and calls what stands here.
 * Nothing here reads outside the elements that it is given, nor trusts their places
 * beyond what `fold_find_elements` has checked. */
#ifndef FOLD_JOIN_H
#define FOLD_JOIN_H

#include <stdint.h>

#include "due.h"
#include "elements.h"
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
    int64_t window_ms, disorder_ms, remember_ms, n_open, n_placed, n_waiting;
    struct now now;
    struct identities identities;
    struct chunks chunks;
    struct dues closing, expiring; /* impressions; clicks that wait or waited */
    struct queue forgetting; /* of struct known, by time */
    struct queue remembered; /* of struct remembered, since the last checkpoint */
    struct queue due;        /* of uint64_t: impressions that are being closed */
    struct queue orphans;    /* of uint64_t: clicks that waited in vain */
    struct queue clicks;     /* of struct ordered: those of one of them */
};

/* Clicks of one impression, and their bytes, at most. */
struct limits {
    int64_t n_clicks, n_bytes;
};

/* No time of an element lies farther from 1970 than this. */
#define FARTHEST_MS (INT64_C(1) << 61)

/* Whether a field is a time that sums with windows stay sums of; both ways. */
static inline bool is_time(struct element element, int field) {
    const uint8_t *bytes = element.data + element.places[field];
    int64_t at_ms = number_in(element, field);
    bool is_beyond = bytes[0] == 0xCF && bytes[1] >= 0x80;
    return !is_beyond && at_ms >= -FARTHEST_MS && at_ms <= FARTHEST_MS;
}

/* A window without end stays one. */
static inline int64_t later(int64_t at_ms, int64_t by_ms) {
    return at_ms < NEVER_DUE - by_ms ? at_ms + by_ms : NEVER_DUE - 1;
}

static inline struct name name_in(struct element element, int field) {
    return name_at(span_in(element, field).bytes);
}

static inline struct identity *slot_of(const struct join *join, struct name name) {
    return identities_slot(&join->identities, name, join->now);
}

/* Finds the fields of an element that is alone, and has room for the identities that it
 * names; less than 0 if it is not whole, or there is none. */
int64_t prepare(struct join *join, struct element element, int64_t n, int64_t *places);

/* An empty join, or NULL if there is no memory. */
FOLD_EXPORT struct join *join_new(int64_t window_ms, int64_t disorder_ms,
                                  int64_t remember_ms);
FOLD_EXPORT void join_free(struct join *join);

/* Takes elements from the one numbered `first` on, up to the first that is not plain;
 * its number, or `n`, or NO_MEMORY. Plain are new impressions, where all that waits for
 * one is on a place of it; clicks on a place of an open one; and those that wait, where
 * there is room for them. `origin` is that of the element numbered 0, and that of each
 * other one is larger by its number; or all are NOWHERE. */
FOLD_EXPORT int64_t join_take(struct join *join, const uint8_t *data, const int8_t *tags,
                              const int64_t *places, int64_t first, int64_t n,
                              int64_t most_clicks, int64_t most_bytes, int64_t origin);

/* Makes an impression, alone in `data`, one that is open; its reference, or NO_MEMORY,
 * or NOT_WHOLE where it cannot be: it is known or awaited, or its window is over. */
FOLD_EXPORT int64_t join_open(struct join *join, const uint8_t *data, int64_t n,
                              int64_t origin);

/* Attaches a click, alone in `data`, to an open impression; the position it is about,
 * 0 if that was not shown. IS_LATE, IS_BEYOND its limits: it was not attached; nor where
 * it is NOT_WHOLE, or not new, or there is NO_MEMORY. */
FOLD_EXPORT int64_t join_attach(struct join *join, uint64_t ref, const uint8_t *data,
                                int64_t n, int64_t most_clicks, int64_t most_bytes,
                                int64_t origin);

/* Lets a click, alone in `data`, wait for its impression. 0, or NO_MEMORY, or NOT_WHOLE
 * where it cannot: it is known, or its impression is. IS_BEYOND its limits: it does
 * not. */
FOLD_EXPORT int64_t join_wait(struct join *join, const uint8_t *data, int64_t n,
                              int64_t most_clicks, int64_t most_bytes, int64_t origin);

/* Writes the clicks that wait for an impression, whose identity is given, in the order
 * of their arrival: the end of each one's bytes. They wait no longer, and are absent.
 * Writes how many there are, and how many bytes; without `out` only that. */
FOLD_EXPORT void join_no_longer_waiting(struct join *join, const uint8_t *impression,
                                        uint8_t *out, int64_t *ends, int64_t sizes[2]);

/* The same of one click, by both identities; 0 if it does not wait, or 1. */
FOLD_EXPORT int64_t join_stop_waiting(struct join *join, const uint8_t *impression,
                                      const uint8_t *click);

/* Keeps a click that does not wait for the next checkpoint, if it is not due by then. 0,
 * or NO_MEMORY: then it is not kept. */
FOLD_EXPORT int64_t join_note(struct join *join, int64_t due_ms, const uint8_t *data,
                              int64_t n);

/* What an identity of 16 bytes is: one of `enum state`, or the reference of the open
 * impression. */
FOLD_EXPORT int64_t join_find(const struct join *join, const uint8_t *identity);

/* Hears that the watermark has moved, and takes out what is due. Writes how many
 * impressions there are, how many bytes they take as interactions at most, and how many
 * clicks; how many clicks are orphans, and their bytes. 0, or NO_MEMORY: then `sizes` are
 * not written; what was taken out comes with the next call. */
FOLD_EXPORT int64_t join_fall_due(struct join *join, int64_t now_ms, int64_t sizes[5]);

/* Writes what has fallen due as interactions, and forgets what is old: the end of each
 * one, a digest of the name of its model, and HAS_EXTRA with or without IS_EXCLUDED.
 * The number of clicks in them, or NO_MEMORY. */
FOLD_EXPORT int64_t join_close(struct join *join, uint8_t *encoded, int64_t *ends,
                               uint64_t *models, uint8_t *flags);

/* Writes the orphans that have fallen due, by time, then arrival: the end of each one's
 * bytes. */
FOLD_EXPORT void join_orphans(struct join *join, uint8_t *out, int64_t *ends);

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
 * are new since the last checkpoint, bytes of memory, clicks that wait. */
FOLD_EXPORT void join_sizes(const struct join *join, int64_t sizes[6]);

#endif

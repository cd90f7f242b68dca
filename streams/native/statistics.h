/* Statistics of one partition: closed interactions in, records of scopes out.
 *
 * Interactions are as `join_close` writes them; nothing outside them is read, whatever
 * they say. What is counted depends on them and their order only, not on how they are
 * cut into calls, nor on when records are written. */
#ifndef FOLD_STATISTICS_H
#define FOLD_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "export.h"
#include "placement.h"
#include "scopes.h"

/* What could not be done. Where it is not said otherwise, functions return 0 if all was
 * done. After NO_MEMORY, TOO_MANY or NOT_WHOLE what was done of the call stays: half of
 * an impression may be counted. Such statistics are only to be freed; the fold ends, and
 * its state is read back from the last checkpoint. */
enum { STATISTICS_TOO_MANY = -5, STATISTICS_NOT_WHOLE = -4, STATISTICS_NO_MEMORY = -3 };

/* Numbers that a partition keeps, and sizes. */
enum {
    N_TAKEN,
    N_LEFT, /* those of eras that left */
    N_CAPPED,
    N_CLIPPED,
    N_WITHOUT_EXPOSURE,
    N_KEPT, /* of those before, which come back from a state */
    N_SCOPES = N_KEPT,
    N_LISTS,
    N_ROWS,
    HAS_ERA,
    OLDEST_ERA,
    N_NUMBERS
};

struct action {
    uint8_t *bytes;
    int64_t n, class;
};

struct buffer {
    uint8_t *bytes;
    size_t n, capacity;
    bool has_failed;
};

/* Ends of the key and of the value of a record; without a value it is a tombstone. */
struct record {
    int64_t key_end, value_end;
};

/* Room for one impression at a time, by rank, candidate or matrix entry. */
struct room {
    void *bytes;
    size_t capacity;
};

/* Placements of an exposure row that were computed before. */
struct placements {
    bool is_known;
    struct name row;
    struct room matrix;
};

enum { KNOWN_PLACEMENTS = 256, MOST_PLACEMENTS = 4096 };

/* Lists that take more than `head_bytes` lie apart, `piece_lists` in a record. */
struct statistics {
    int64_t keep_ms, reward, n_groups, head_bytes, piece_lists;
    struct limits_of_scopes limits;
    int64_t numbers[N_KEPT];
    struct queue eras;    /* of struct era *, oldest first */
    struct queue actions; /* of struct action */
    struct queue records; /* of struct record: what `buffer` holds */
    struct buffer buffer;
    struct room marks, pairs, texts, scores, matrix, sorted;
    struct placements placements[KNOWN_PLACEMENTS];
    struct placement_scratch scratch;
};

/* `settings`: groups, keep_ms, limits on sets, interventions, exposure rows and lists,
 * the class that clicks are of, head_bytes, piece_lists; as `Apart` in `counting.py`.
 * NULL if there is no memory. */
FOLD_EXPORT struct statistics *statistics_new(const int64_t settings[9]);
FOLD_EXPORT void statistics_free(struct statistics *statistics);

/* Says of which class an action is, 0 <= class < MOST_CLASSES, which the caller must
 * see to; all others are of class 0. `action` is copied. 0, or NO_MEMORY: then nothing
 * has changed. */
FOLD_EXPORT int64_t statistics_map(struct statistics *statistics, const uint8_t *action,
                                   int64_t n, int64_t class);

/* Counts interactions that lie one behind the other, each up to its end; nothing of
 * `data` is referred to afterwards. 0; NOT_WHOLE, TOO_MANY where a counter would
 * overflow, or NO_MEMORY: then nothing says how many before it are counted. */
FOLD_EXPORT int64_t statistics_count(struct statistics *statistics, const uint8_t *data,
                                     const int64_t *ends, int64_t n);

/* Lets eras go whose time is over, and remembers tombstones of what was written. 0, or
 * NO_MEMORY: then some have left, and of the next one some tombstones are there. */
FOLD_EXPORT int64_t statistics_leave(struct statistics *statistics, int64_t now_ms);

/* Writes what changed since the last call as records, and says how many there are and
 * how many bytes: 0, or NO_MEMORY. They are taken before anything else is called, into
 * `bytes` of so many and `ends` of two each; both belong to the caller. */
FOLD_EXPORT int64_t statistics_changes(struct statistics *statistics, int64_t sizes[2]);
FOLD_EXPORT void statistics_take(struct statistics *statistics, uint8_t *bytes,
                                 int64_t *ends);

/* Takes back records of one kind: sets, then rows, scopes, pieces, and lists in the
 * order of their numbers. `ends` holds two numbers of each, as `statistics_take` gives
 * them. 0; NOT_WHOLE where a record is none of these, or refers to what is not there;
 * or NO_MEMORY. Bytes are copied. */
FOLD_EXPORT int64_t statistics_restore(struct statistics *statistics,
                                       const uint8_t *bytes, const int64_t *ends,
                                       int64_t n);

/* Whether all was taken back: every piece that a scope names, and as many impressions as
 * the numbers say. 0 if so, else NOT_WHOLE. */
FOLD_EXPORT int64_t statistics_restored(const struct statistics *statistics);

/* Writes, or takes back, numbers; all of `enum`, of which the first N_KEPT are kept. */
FOLD_EXPORT void statistics_numbers(const struct statistics *statistics,
                                    int64_t numbers[N_NUMBERS]);
FOLD_EXPORT void statistics_set_numbers(struct statistics *statistics,
                                        const int64_t numbers[N_KEPT]);

/* Bytes of memory that eras take. */
FOLD_EXPORT int64_t statistics_bytes(const struct statistics *statistics);

/* Writes the name of a closed set, of its sorted items as MessagePack. */
FOLD_EXPORT void statistics_name_set(const uint8_t *candidates, int64_t n,
                                     uint8_t key[NAME_BYTES]);

/* 1 if a living era keeps the set of this name apart for a query, else 0. */
FOLD_EXPORT int64_t statistics_has_set(const struct statistics *statistics,
                                       const uint8_t *query, int64_t n,
                                       const uint8_t key[NAME_BYTES]);

/* The era of a number, made if it is not there. */
struct era *era_at(struct statistics *statistics, int64_t number);

/* Room for `n` rows of a width, of which nothing is kept; NULL if there is no memory. */
void *room_for(struct room *room, int64_t n, size_t width);

/* In how many pieces the lists of a scope lie, where they lie apart. */
static inline int64_t pieces_of(const struct statistics *statistics,
                                const struct scope *scope) {
    return (scope->n_lists + statistics->piece_lists - 1) / statistics->piece_lists;
}

/* Keys and values of what has changed, or of what leaves. */
bool write_changes(struct statistics *statistics);
bool write_tombstones(struct statistics *statistics, struct era *era);

#endif

/* What statistics keep: scopes of eras, with their lists, exposure rows and cells.
 *
 * A scope is a query, a candidate set and an intervention in an era; an era is a piece
 * of the calendar, and leaves as a whole. Of a list that is shown again only masks of
 * clicked ranks are counted (list form); what cannot be counted so is counted by item
 * and rank in the cell of its group (general form). `docs/topics.md` says what is
 * written of them, `models/counts/definition.py` what it means. */
#ifndef FOLD_SCOPES_H
#define FOLD_SCOPES_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "digests.h"
#include "elements.h"
#include "keyed.h"
#include "names.h"
#include "queue.h"

enum { SCHEMA = 2, MOST_CLASSES = 4, NAME_BYTES = 16 };

/* Flags of a scope, as they are written. */
enum { IS_CAPPED = 1, IS_OVERFLOWED = 2, IS_TRUNCATED = 4, IS_CONVERTED = 8 };

/* Totals of a cell, as they are written. */
enum {
    IMPRESSIONS,
    WITHOUT_CLICK,
    CLICKS,
    CLICKS_SQUARED,
    WITHOUT_EXPOSURE,
    CLIPPED,
    N_TOTALS
};

enum { MOST_LISTED = 32, MOST_MASKS = 63 };

/* Parts of keys: an item and a rank below them; in front of both a group and a class. */
enum { RANK_BITS = 17, ITEM_BITS = 32, CLASS_BITS = 2, GROUP_BITS = 8 };

/* Smaller probabilities of clicked places are raised to this, and counted. */
#define LEAST_PROBABILITY (1.0 / 1048576.0)

/* What a `struct span` within the following structures points at is a copy in the arena
 * of their era, and lives until `era_free`. Spans that functions are given may point
 * into input, which nothing refers to after the call. */

struct query {
    struct name name;
    struct span id;
    int64_t n_sets, n_interventions;
};

/* An item of a set that grows. */
struct item {
    struct name name;
    uint32_t number;
};

/* `candidates` is the packed array of a closed set; one that grows has `items`. */
struct set {
    struct name name;
    struct set *next;
    struct query *query;
    struct span candidates;
    struct queue items; /* of struct span, by number */
    uint8_t key[NAME_BYTES];
    bool is_growing, is_changed, is_written;
};

/* An exposure row. `index` is its place in the scope, `items` the packed candidates
 * where the set grows. */
struct row {
    struct name name;
    struct row *next;
    struct span material, items;
    int64_t policy, n_ranks, index;
    bool is_written;
};

/* Impressions of a list in a group, and where the masks of those with clicks are. */
struct group {
    uint32_t n, masks;
};

/* `items[length]`, then a `struct group` for each group, lie behind it. `row` is the
 * index of its exposure row, or -1 - policy. */
struct list {
    struct name name;
    struct list *next;
    struct scope *scope;
    int32_t row;
    uint16_t length;
    bool is_changed; /* since its piece was written */
    uint32_t items[];
};

/* Rows of tables: a key, then counts of 64 bits, then those of 32, then what is not
 * written. */
struct pair {
    uint64_t key; /* item, then rank */
    int64_t exposure;
    uint32_t shown, clicked, first_click, to_first, to_last, sums;
};

struct sums {
    uint64_t key; /* item */
    int64_t plus, minus, inverse, squared_low, squared_high;
};

/* Of impressions: by exposure row, by two pairs of which the smaller comes first, or by
 * group, class, item and rank. */
struct counted {
    uint64_t key;
    int64_t count;
};

/* How rows of a table are written: the parts of the key by their bits, counts of 32
 * bits, then those of 64. */
struct shape {
    uint8_t width, n_parts, bits[4], n_narrow, n_wide;
};
static const struct shape ROWS = {sizeof(struct counted), 1, {32}, 0, 1};
static const struct shape PAIRS = {sizeof(struct pair), 2, {ITEM_BITS, RANK_BITS}, 5, 1};
static const struct shape SUMS = {sizeof(struct sums), 1, {ITEM_BITS}, 0, 5};
static const struct shape CLICK_PAIRS = {sizeof(struct counted), 2, {32, 32}, 0, 1};
static const struct shape REWARDS = {
    sizeof(struct counted), 4, {GROUP_BITS, CLASS_BITS, ITEM_BITS, RANK_BITS}, 0, 1};

/* The general form of a group. */
struct cell {
    int64_t totals[N_TOTALS];
    struct keyed rows, pairs, sums, click_pairs;
    bool is_changed, is_written; /* as a piece */
};

/* Cells that are `is_apart` have records of their own; so have lists, where there are
 * `n_pieces` of them, as they were written last. */
struct scope {
    struct name name;
    struct scope *next;
    struct set *set;
    struct span intervention;
    struct list *lists, *last_list;
    struct row *rows, *last_row;
    struct cell **cells; /* by group, NULL where there are none */
    struct keyed rewards;
    int64_t n_lists, n_rows, n_pieces, last_ms;
    uint8_t flags;
    bool is_changed, is_written, is_apart;
};

struct mask {
    uint32_t mask, count;
};

/* Blocks of 2, 4, 8 ... masks, the first of which says how many others are in use. A
 * block is named by the place of that one; there is none at place 0. */
struct masks {
    struct queue chunks; /* of struct mask * */
    uint32_t end;
    uint32_t left[8]; /* blocks not in use, by the logarithm of their size */
};

struct era {
    int64_t number, n_groups, n_impressions, n_scopes, n_lists, n_rows;
    int64_t n_bytes; /* of tables of cells and scopes */
    struct arena arena;
    struct names names;
    struct masks masks;
    struct scope *scopes;
    struct set *sets;
    struct queue changed; /* of struct scope * */
};

/* How much is kept: sets and interventions of a query, rows and lists of a scope. */
struct limits_of_scopes {
    int64_t sets, interventions, rows, lists;
};

static inline struct group *groups_of(const struct list *list) {
    return (struct group *)(list->items + list->length);
}

/* Counts one more of a key; false if there is no memory. */
static inline bool count_key(struct keyed *table, uint64_t key) {
    int64_t found = keyed_find(table, key, sizeof(struct counted), UINT32_MAX);
    if (found < 0)
        return false;
    ((struct counted *)keyed_at(table, (size_t)found, sizeof(struct counted)))->count++;
    return true;
}

static inline bool is_same(struct span one, struct span other) {
    return one.n == other.n && (one.n == 0 || memcmp(one.bytes, other.bytes,
                                                     (size_t)one.n) == 0);
}

/* How names follow from each other: that of a scope from the key of its set, that of an
 * exposure row from its scope, that of a list from either. */
struct name name_of_scope(struct span query, const uint8_t key[NAME_BYTES],
                          struct span intervention);
struct name name_of_row(struct name scope, int64_t policy, int64_t n_ranks,
                        struct span material, struct span items);
struct name name_of_list(struct name row, struct span rows);

/* The same where the set grows, item after item from the first rank on. */
struct name name_with_item(struct name list, struct span item);

/* A name as it is written. */
void put_name(struct name name, uint8_t key[NAME_BYTES]);

/* Keys of sets: of one that is closed, of what came without candidates, of what is
 * beyond the limits. */
void key_of_set(struct span candidates, uint8_t key[NAME_BYTES]);
extern const uint8_t OPEN_SET[NAME_BYTES], OVERFLOW_SET[NAME_BYTES];

/* All of the following return NULL, or -1, where there is no memory. */

struct set *set_of(struct era *era, struct span query, const uint8_t key[NAME_BYTES],
                   struct span candidates);

/* The set of a query that has this name, NULL if there is none. */
const struct set *find_set(const struct era *era, struct span query,
                           const uint8_t key[NAME_BYTES]);
struct scope *scope_of(struct era *era, struct set *set, struct span intervention);

/* Whether a scope that is not there would be beyond the limits. */
bool is_full(const struct era *era, struct span query, const uint8_t key[NAME_BYTES],
             struct span intervention, const struct limits_of_scopes *limits);

/* The number of an item in a set that grows. */
int64_t number_of_item(struct era *era, struct set *set, struct span item);

struct row *add_row(struct era *era, struct name name, int64_t policy, int64_t n_ranks,
                    struct span material, struct span items);
void give_row(struct era *era, struct scope *scope, struct row *row);
struct list *add_list(struct era *era, struct scope *scope, struct name name,
                      const uint32_t *items, uint32_t length);
struct cell *cell_of(struct era *era, struct scope *scope, int64_t group);

/* The masks of a group: `masks[0]` says in `count` how many follow. */
struct mask *masks_at(const struct masks *masks, uint32_t place);

/* The mask of a group, made if it is not there; NULL also if its masks are full. */
struct mask *mask_of(struct masks *masks, struct group *group, uint32_t mask);
bool masks_are_full(const struct masks *masks, const struct group *group);

/* Remembers that a scope must be written. */
bool scope_changed(struct era *era, struct scope *scope);

struct era *era_new(int64_t number, int64_t n_groups);
void era_free(struct era *era);

/* Bytes that it takes. */
int64_t era_bytes(const struct era *era);

#endif

/* Identities of 128 bits, and whether each is open, known, awaited or absent.
 *
 * What a slot says follows from its due time: an impression is open until then, and
 * known for some time after; so closing and forgetting touch no slot. A click has the
 * due time of its impression and refers to none. Slots whose time has passed are
 * used again, and dropped by a rebuild, which goes through memory in order. */
#ifndef FOLD_IDENTITIES_H
#define FOLD_IDENTITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "digests.h"

/* What a slot refers to, beside open impressions and the first click that waits for one
 * that is missed; all of those are larger. */
enum { REF_EMPTY = 0, REF_NOTHING = 1 };

/* Due times of what waits or is awaited, and of what was removed. */
#define NEVER_DUE INT64_MAX
#define REMOVED INT64_MIN

struct identity {
    struct name name;
    uint64_t ref;
    int64_t due_ms;
};

enum state { IS_ABSENT, IS_KNOWN, IS_AWAITED, IS_OPEN };

/* `n_used` slots are not empty, `n_known` identities are in them. No slot lies in two
 * lines of the cache: `slots` begins at one within `memory`. */
struct identities {
    void *memory;
    struct identity *slots;
    uint64_t n_slots, n_used;
    int64_t n_known;
};

/* What time it is: open is what is due later, known what was due after `forgotten`. */
struct now {
    int64_t ms, forgotten_ms;
};

static inline enum state state_of(const struct identity *slot, struct now now) {
    if (slot->ref == REF_EMPTY || slot->due_ms <= now.forgotten_ms)
        return IS_ABSENT;
    if (slot->ref == REF_NOTHING || slot->due_ms <= now.ms)
        return IS_KNOWN;
    return slot->due_ms == NEVER_DUE ? IS_AWAITED : IS_OPEN;
}

/* Where a search begins: places follow the order of names, so a rebuild does too. */
static inline uint64_t home_of(const struct identities *table, struct name name) {
    return (name.first >> 32) * table->n_slots >> 32;
}

/* Makes room for `n_more` names; false if there is no memory. Moves all slots. */
bool identities_reserve(struct identities *table, uint64_t n_more, struct now now);

/* The slot of a name, or the one that it would take. */
struct identity *identities_slot(const struct identities *table, struct name name,
                                 struct now now);

/* Says of a name at its slot what it is from now on, and counts it. */
void identities_put(struct identities *table, struct identity *slot, struct name name,
                    uint64_t ref, int64_t due_ms, struct now now);

/* Makes the name at a slot absent. */
void identities_remove(struct identities *table, struct identity *slot, struct now now);

#endif

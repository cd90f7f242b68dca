/* What has a name of 128 bits, found by it: whatever begins with a `struct name`. */
#ifndef FOLD_NAMES_H
#define FOLD_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "digests.h"

struct names_slot {
    uint64_t first;
    struct name *named; /* NULL where the slot is empty */
};

struct names {
    struct names_slot *slots;
    uint64_t n_slots, n_used;
};

/* Where a search begins; there must be slots. */
static inline const struct names_slot *names_home(const struct names *names,
                                                  struct name name) {
    return &names->slots[(name.first >> 32) * names->n_slots >> 32];
}

static inline void *names_find(const struct names *names, struct name name) {
    const struct names_slot *slot = names_home(names, name);
    for (; slot->named; slot = slot + 1 == names->slots + names->n_slots ? names->slots
                                                                        : slot + 1)
        if (slot->first == name.first && slot->named->second == name.second)
            return slot->named;
    return NULL;
}

/* Makes room for `n_more` names; false if there is no memory. */
bool names_reserve(struct names *names, uint64_t n_more);

/* Adds what is not there yet, and for which room was made. */
void names_add(struct names *names, struct name *named);

#endif

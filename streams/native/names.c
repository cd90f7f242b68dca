#include "names.h"

#include <stdlib.h>

/* Parts of a thousand. */
enum { MOST_FULL = 600, FEWEST_SLOTS = 256 };

void names_add(struct names *names, struct name *named) {
    struct names_slot *slot = (struct names_slot *)names_home(names, *named);
    while (slot->named)
        if (++slot == names->slots + names->n_slots)
            slot = names->slots;
    *slot = (struct names_slot){named->first, named};
    names->n_used++;
}

bool names_reserve(struct names *names, uint64_t n_more) {
    uint64_t n = names->n_used + n_more;
    if (n * 1000 <= names->n_slots * MOST_FULL)
        return true;
    struct names larger = {.n_slots = 2 * n * 1000 / MOST_FULL + FEWEST_SLOTS};
    if (larger.n_slots > UINT32_MAX)
        return false; /* a home is made of 32 bits */
    larger.slots = calloc(larger.n_slots, sizeof *larger.slots);
    if (!larger.slots)
        return false;
    for (uint64_t i = 0; i < names->n_slots; i++)
        if (names->slots[i].named)
            names_add(&larger, names->slots[i].named);
    free(names->slots);
    *names = larger;
    return true;
}

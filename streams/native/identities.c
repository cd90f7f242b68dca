#include "identities.h"

#include <stdlib.h>

/* Parts of a thousand: how full slots may be, and how full a rebuild leaves them. */
enum { MOST_FULL = 650, REBUILT_FULL = 430, FEWEST_SLOTS = 256, LINE_BYTES = 64 };

struct identity *identities_slot(const struct identities *table, struct name name,
                                 struct now now) {
    uint64_t i = home_of(table, name);
    struct identity *passed = NULL;
    for (;;) {
        struct identity *slot = &table->slots[i];
        if (slot->ref == REF_EMPTY)
            return passed ? passed : slot;
        if (is_same_name(slot->name, name))
            return slot;
        if (!passed && slot->due_ms <= now.forgotten_ms)
            passed = slot;
        if (++i == table->n_slots)
            i = 0;
    }
}

/* One of those that are counted, by so much. */
static void count(struct identities *table, const struct identity *slot, struct now now,
                  int by) {
    enum state state = state_of(slot, now);
    if (state == IS_KNOWN || state == IS_OPEN)
        table->n_known += by;
}

void identities_put(struct identities *table, struct identity *slot, struct name name,
                    uint64_t ref, int64_t due_ms, struct now now) {
    table->n_used += slot->ref == REF_EMPTY;
    count(table, slot, now, -1);
    *slot = (struct identity){name, ref, due_ms};
    count(table, slot, now, 1);
}

void identities_remove(struct identities *table, struct identity *slot, struct now now) {
    count(table, slot, now, -1);
    if (slot->ref != REF_EMPTY)
        slot->due_ms = REMOVED;
}

bool identities_reserve(struct identities *table, uint64_t n_more, struct now now) {
    if ((table->n_used + n_more) * 1000 <= table->n_slots * MOST_FULL)
        return true;
    uint64_t n_kept = n_more;
    for (uint64_t i = 0; i < table->n_slots; i++)
        n_kept += state_of(&table->slots[i], now) != IS_ABSENT;
    struct identities larger = *table;
    larger.n_slots = n_kept * 1000 / REBUILT_FULL + FEWEST_SLOTS;
    larger.n_used = 0;
    /* The home of a name is made of 32 bits. */
    if (larger.n_slots > UINT32_MAX)
        return false;
    larger.memory = calloc(larger.n_slots + LINE_BYTES / sizeof *larger.slots,
                           sizeof *larger.slots);
    if (!larger.memory)
        return false;
    uintptr_t place = (uintptr_t)larger.memory + LINE_BYTES - 1;
    larger.slots = (struct identity *)(place - place % LINE_BYTES);
    for (uint64_t i = 0; i < table->n_slots; i++) {
        const struct identity *slot = &table->slots[i];
        if (state_of(slot, now) != IS_ABSENT) {
            *identities_slot(&larger, slot->name, now) = *slot;
            larger.n_used++;
        }
    }
    free(table->memory);
    *table = larger;
    return true;
}

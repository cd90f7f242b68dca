#include "keyed.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* So many rows are searched one by one. */
enum { MOST_SEARCHED = 12 };

static uint64_t key_at(const struct keyed *table, size_t i, size_t width) {
    uint64_t key;
    memcpy(&key, keyed_at(table, i, width), sizeof key);
    return key;
}

/* The slot of a key, or the empty one that it would take. */
static uint32_t *slot_of(const struct keyed *table, uint64_t key, size_t width) {
    uint32_t last = table->n_slots - 1; /* slots are a power of two */
    uint32_t i = (uint32_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & last;
    while (table->slots[i] && key_at(table, table->slots[i] - 1, width) != key)
        i = (i + 1) & last;
    return &table->slots[i];
}

static bool reserve(struct keyed *table, size_t width) {
    if (table->n == table->capacity) {
        uint32_t capacity = table->n ? table->n + table->n / 2 + 1 : 4;
        void *rows = realloc(table->rows, capacity * width);
        if (!rows)
            return false;
        *table->n_bytes += (int64_t)((capacity - table->capacity) * width);
        table->rows = rows;
        table->capacity = capacity;
    }
    if (table->n < MOST_SEARCHED || 2 * (table->n + 1) <= table->n_slots)
        return true;
    uint32_t n_slots = table->n_slots ? 2 * table->n_slots : 4 * MOST_SEARCHED;
    while (n_slots & (n_slots - 1))
        n_slots += n_slots & ~(n_slots - 1);
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return false;
    *table->n_bytes += (int64_t)((n_slots - table->n_slots) * sizeof *slots);
    free(table->slots);
    table->slots = slots;
    table->n_slots = n_slots;
    for (uint32_t i = 0; i < table->n; i++)
        *slot_of(table, key_at(table, i, width), width) = i + 1;
    return true;
}

int64_t keyed_find(struct keyed *table, uint64_t key, size_t width, uint32_t hint) {
    if (hint < table->n && key_at(table, hint, width) == key)
        return hint;
    if (table->n_slots) {
        uint32_t found = *slot_of(table, key, width);
        if (found)
            return found - 1;
    } else {
        for (uint32_t i = 0; i < table->n; i++)
            if (key_at(table, i, width) == key)
                return i;
    }
    if (!reserve(table, width))
        return -1;
    uint8_t *row = keyed_at(table, table->n, width);
    memset(row, 0, width);
    memcpy(row, &key, sizeof key);
    table->n++;
    if (table->n_slots)
        *slot_of(table, key, width) = table->n;
    return table->n - 1;
}

void keyed_free(struct keyed *table) {
    free(table->rows);
    free(table->slots);
    *table = (struct keyed){0};
}

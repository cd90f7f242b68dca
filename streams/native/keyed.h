/* Rows of one width that begin with a key, in the order in which they came. */
#ifndef FOLD_KEYED_H
#define FOLD_KEYED_H

#include <stddef.h>
#include <stdint.h>

struct keyed {
    int64_t *n_bytes; /* what memory is counted in */
    uint8_t *rows;
    uint32_t *slots; /* numbers of rows, from 1; only where there are many */
    uint32_t n, capacity, n_slots;
};

static inline void *keyed_at(const struct keyed *table, size_t i, size_t width) {
    return table->rows + i * width;
}

/* The number of the row of a key, which is made if it is not there, with zeros behind
 * its key; or -1 if there is no memory. Looks at row `hint` first. */
int64_t keyed_find(struct keyed *table, uint64_t key, size_t width, uint32_t hint);

void keyed_free(struct keyed *table);

#endif

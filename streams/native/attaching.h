/* Clicks of open impressions: which place each is about, and keeping it. */
#ifndef FOLD_ATTACHING_H
#define FOLD_ATTACHING_H

#include "elements.h"
#include "join.h"

/* What a list offered: its candidates, packed, and rows of them of two bytes each, in
 * the order in which they were shown. */
struct offered {
    struct span shown, candidates;
};

struct offered offered_in(struct element impression);
struct offered offered_by(const struct impression *impression);

/* The position, from 1, that a click is about; 0 if the list has no such place. */
int64_t position_of(struct offered offered, struct element click);

/* The head of an element; its kind may need more. */
struct entry entry_of(struct element element, uint8_t kind, int64_t due_ms,
                      int64_t origin);

/* Adds a click to an open impression, behind those that came before; its position, or
 * NO_MEMORY. `slot` is that of its identity. */
int64_t attach(struct join *join, uint64_t ref, struct element click,
               struct identity *slot, int64_t position, int64_t origin);

#endif

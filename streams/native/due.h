/* What is due, in the order of time, then of arrival. What comes in order lies in a
 * queue; what is due before its last is late and goes into a heap. Of two that are due
 * at once the one in the queue came first: it was there when the other came. */
#ifndef FOLD_DUE_H
#define FOLD_DUE_H

#include "queue.h"

/* References rise in the order of arrival. */
struct due {
    int64_t at_ms;
    uint64_t ref;
};

struct dues {
    struct queue in_order, heap; /* of struct due */
};

/* Makes room for one more; false if there is no memory. */
bool dues_reserve(struct dues *dues);

void dues_add(struct dues *dues, struct due due);

/* Removes what is due first, if it is due at `now_ms`; false if nothing is. */
bool dues_pop(struct dues *dues, int64_t now_ms, struct due *due);

#endif

/* What is due, in the order of time, then of arrival. Sources come in order, each in its
 * own: what is due lies in runs, in the first of them whose last is due no later. What
 * is due before the last of all goes into a heap. */
#ifndef FOLD_DUE_H
#define FOLD_DUE_H

#include "queue.h"

/* References rise in the order of arrival. */
struct due {
    int64_t at_ms;
    uint64_t ref;
};

enum { N_RUNS = 8 };

struct dues {
    struct queue runs[N_RUNS], heap; /* of struct due */
};

/* Of zeros, makes one in which nothing is due. */
void dues_begin(struct dues *dues);
void dues_free(struct dues *dues);
int64_t dues_bytes(const struct dues *dues);

/* Makes room for one more; false if there is no memory. */
bool dues_reserve(struct dues *dues);

void dues_add(struct dues *dues, struct due due);

/* Removes what is due first, if it is due at `now_ms`; false if nothing is. */
bool dues_pop(struct dues *dues, int64_t now_ms, struct due *due);

#endif

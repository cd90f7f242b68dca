/* Clicks that wait for their impression, in a ring for each one that is missed.
 *
 * The slot of the missed identity refers to the first to come, which counts the others;
 * a slot of their own says that each of them is known. */
#ifndef FOLD_WAITING_H
#define FOLD_WAITING_H

#include "elements.h"
#include "join.h"

/* Whether a click may wait with those that wait for its impression already: as many as
 * may be attached, so that all of them fit when it comes. */
bool may_wait(const struct join *join, struct element click, struct limits limits);

/* Lets a click wait, whose identity is new and has this slot. 0, or NO_MEMORY. */
int64_t let_wait(struct join *join, struct element click, struct identity *slot,
                 int64_t origin);

/* Whether all clicks of the ring that begins at `first` are on a place of an impression
 * that closes at `due_ms`, in time and within limits. */
bool are_plain(const struct join *join, uint64_t first, struct element impression,
               int64_t due_ms, struct limits limits);

/* Attaches such clicks to their impression, which is open by now. 0, or NO_MEMORY: those
 * from there on are lost. */
int64_t attach_waiting(struct join *join, uint64_t first, uint64_t impression);

/* Takes out the clicks that waited until `now_ms` in vain, into `join->orphans`. 0, or
 * NO_MEMORY: the rest comes with the next call. */
int64_t expire(struct join *join, int64_t now_ms);

#endif

/* Comparisons of rankers: what is plain of them, as streams/comparisons has the rest. */
#ifndef FOLD_COMPARING_H
#define FOLD_COMPARING_H

#include <stdint.h>

#include "export.h"

/* Credit for places by pairs of documents, or for the places of each team. */
enum comparing_method { BY_PAIRS = 0, BY_TEAMS = 1 };

/* An epoch of an experiment; comparing.py has the same fields. Encoded as MessagePack
 * are `experiment`, the value that its lists hold, and `names`, those of the rankers in
 * order, one behind the other; `seeded` is what seeds are made of, but the impression.
 * Sums are those of `models/evaluation/sums.py` and `list_counts.py`, arrays in one
 * piece. All pointers belong to the caller, who keeps them alive during a call and sees
 * to their sizes: with n rankers, p pairs of them, G groups, C classes of bounds and B
 * bets, `totals` [names in TOTALS], `by_ranker` [n, names in BY_RANKER], `sums` [G, p],
 * `counts` [p, 2], `possible` and `squares` [p, C], `wealth` [p, 2, B], `impressions`
 * [G]. `streams/comparisons/plain_lists.py` checks them. */
struct comparison {
    const uint8_t *experiment, *names, *seeded;
    int64_t n_experiment, n_names, n_seeded;
    int64_t method, n_rankers, length, start_ms, end_ms;
    double largest_weight;
    int64_t *totals, *by_ranker, *sums, *counts, *possible, *squares, *wealth;
    int64_t *impressions;
    int64_t n_taken, first_ms, last_ms, n_foreign_seeds, n_without_session;
};

/* Credits closed impressions, encoded one behind the other, from the one numbered
 * `first` on, up to the first that is not plain; its number, or `n`. Plain are those
 * of no experiment, and lists that cannot be faulty nor hold what is foreign. With
 * `n_unknown`, those of any experiment are only added to it; it may be NULL, and
 * `comparisons` too if there are none. There is no error: what cannot be read is not
 * plain, and what is not plain has changed nothing. */
FOLD_EXPORT int64_t comparing_take(struct comparison *comparisons, int64_t n_comparisons,
                                   const uint8_t *encoded, const int64_t *ends,
                                   const uint8_t *extras, int64_t first, int64_t n,
                                   int64_t *n_unknown);

#endif

/* Plackett-Luce: the probability of each document at each rank.
 *
 * Defined in models/plackett_luce/placement.py; the same bits, on every machine. */
#ifndef FOLD_PLACEMENT_H
#define FOLD_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "export.h"

/* Memory that is kept between calls: zeros before the first; grown as needed. */
struct placement_scratch {
    void *bytes;
    int64_t n_bytes;
};

/* Fills placements [n_documents][cutoff] of one list. Its scores are finite, its cutoff
 * lies in 1..n_documents. False if there is no memory. */
bool placement_fill(const double *scores, int64_t n_documents, int64_t cutoff,
                    struct placement_scratch *scratch, double *placements);

void placement_free(struct placement_scratch *scratch);

/* The same for scores [n_lists][n_documents]; 0, or -1 if there is no memory. */
FOLD_EXPORT int64_t fold_placements(const double *scores, int64_t n_lists,
                                    int64_t n_documents, int64_t cutoff,
                                    double *placements);

#endif

/* Scores of documents by a forest of regression trees. */
#ifndef FOLD_TREES_H
#define FOLD_TREES_H

#include <stdint.h>

#include "export.h"

/* A node. A child below 0 is the leaf with the number -1 - child. */
struct tree_node {
    double threshold; /* documents up to it go left */
    int32_t feature;
    int32_t children[2]; /* left, right */
    int32_t missing;     /* as rankstream/wire/models/forests.py has it */
};

/* Fills scores [n_documents] from features [n_documents][n_features].
 *
 * `is_plain` where no feature is NaN and no node takes 0 for missing. The forest has
 * passed the check of snapshots: no index leaves its array, and each tree ends. The
 * name changes with the layout, as rankers load the library by it. Returns 0. */
FOLD_EXPORT int64_t forest_scores_1(const int32_t *roots, int64_t n_trees,
                                    const struct tree_node *nodes,
                                    const double *leaves, const float *features,
                                    int64_t n_documents, int64_t n_features,
                                    int64_t is_plain, double *scores);

#endif

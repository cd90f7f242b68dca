#include "trees.h"

#include <math.h>

enum { LEFT = 1, ZERO_IS_MISSING = 2, NAN_IS_MISSING = 4 };

/* What LightGBM takes for 0. */
#define NEAR_ZERO 1e-35f

static inline int32_t plain_child(const struct tree_node *node, const float *document) {
    return node->children[!((double)document[node->feature] <= node->threshold)];
}

static inline int32_t child(const struct tree_node *node, const float *document) {
    float value = document[node->feature];
    int is_nan = isnan(value);
    int takes_zero = node->missing & ZERO_IS_MISSING;
    if (is_nan && !(node->missing & (ZERO_IS_MISSING | NAN_IS_MISSING)))
        value = 0.0f;
    else if (is_nan || (takes_zero && value >= -NEAR_ZERO && value <= NEAR_ZERO))
        return node->children[!(node->missing & LEFT)];
    return node->children[!((double)value <= node->threshold)];
}

/* Where a document ends that lacks no feature. */
static inline int32_t end_of(int32_t at, const struct tree_node *nodes,
                             const float *document) {
    while (at >= 0)
        at = plain_child(nodes + at, document);
    return at;
}

/* Four documents side by side: each waits for memory while the others are compared. */
static void add_four(int32_t root, const struct tree_node *nodes, const double *leaves,
                     const float *documents, int64_t n_features, double *scores) {
    const float *one = documents, *two = one + n_features;
    const float *three = two + n_features, *four = three + n_features;
    int32_t a = root, b = root, c = root, d = root;
    while ((a | b | c | d) >= 0) {
        a = plain_child(nodes + a, one);
        b = plain_child(nodes + b, two);
        c = plain_child(nodes + c, three);
        d = plain_child(nodes + d, four);
    }
    scores[0] += leaves[-1 - end_of(a, nodes, one)];
    scores[1] += leaves[-1 - end_of(b, nodes, two)];
    scores[2] += leaves[-1 - end_of(c, nodes, three)];
    scores[3] += leaves[-1 - end_of(d, nodes, four)];
}

int64_t forest_scores_1(const int32_t *roots, int64_t n_trees,
                        const struct tree_node *nodes, const double *leaves,
                        const float *features, int64_t n_documents,
                        int64_t n_features, int64_t is_plain, double *scores) {
    for (int64_t d = 0; d < n_documents; d++)
        scores[d] = 0.0;
    /* Tree by tree, whose nodes then stay near; each score adds up in their order. */
    for (int64_t t = 0; t < n_trees; t++) {
        int64_t d = 0;
        for (; is_plain && d + 4 <= n_documents; d += 4)
            add_four(roots[t], nodes, leaves, features + d * n_features, n_features,
                     scores + d);
        for (; d < n_documents; d++) {
            const float *document = features + d * n_features;
            int32_t at = roots[t];
            if (is_plain)
                at = end_of(at, nodes, document);
            while (at >= 0)
                at = child(nodes + at, document);
            scores[d] += leaves[-1 - at];
        }
    }
    return 0;
}

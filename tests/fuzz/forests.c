/* Forests that decoding let pass, scored where memory ends with each array.
 *
 *     forests CASES
 *
 * CASES holds forests one behind the other, as `tests/fuzz/forests.py` writes them; for
 * each the bits of its scores are printed, a line a forest. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trees.h"

#define CHECK(is_so)                                                                   \
    do {                                                                               \
        if (!(is_so)) {                                                                \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #is_so);        \
            abort();                                                                   \
        }                                                                              \
    } while (0)

enum { TREES, NODES, LEAVES, DOCUMENTS, FEATURES, IS_PLAIN, N_SIZES };

/* So many bytes of the file, in memory of their own that ends behind them. */
static void *next(FILE *file, int64_t n, size_t size) {
    void *found = malloc((size_t)n * size);
    CHECK(n == 0 || found);
    CHECK(fread(found, size, (size_t)n, file) == (size_t)n);
    return found;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    FILE *file = fopen(argv[1], "rb");
    CHECK(file);
    int64_t sizes[N_SIZES];
    while (fread(sizes, sizeof sizes, 1, file) == 1) {
        int32_t *roots = next(file, sizes[TREES], sizeof *roots);
        struct tree_node *nodes = next(file, sizes[NODES], sizeof *nodes);
        double *leaves = next(file, sizes[LEAVES], sizeof *leaves);
        int64_t n_numbers = sizes[DOCUMENTS] * sizes[FEATURES];
        float *features = next(file, n_numbers, sizeof *features);
        double *scores = malloc((size_t)sizes[DOCUMENTS] * sizeof *scores);
        CHECK(scores);
        CHECK(forest_scores_1(roots, sizes[TREES], nodes, leaves, features,
                              sizes[DOCUMENTS], sizes[FEATURES], sizes[IS_PLAIN],
                              scores) == 0);
        for (int64_t d = 0; d < sizes[DOCUMENTS]; d++) {
            uint64_t bits;
            memcpy(&bits, scores + d, sizeof bits);
            printf("%" PRIx64 " ", bits);
        }
        printf("\n");
        free(roots);
        free(nodes);
        free(leaves);
        free(features);
        free(scores);
    }
    fclose(file);
    return 0;
}

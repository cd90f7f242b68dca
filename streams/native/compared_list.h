/* A list of several rankers, as it was logged. */
#ifndef FOLD_COMPARED_LIST_H
#define FOLD_COMPARED_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "comparing.h"
#include "elements.h"

/* Lists that are larger are not plain. */
enum { MOST_ITEMS = 1024, MOST_SLOTS = 2048, MOST_RANKERS = 64, MOST_PLACES = 32 };
enum { MOST_DEPTH = 128, ABSENT = UINT16_MAX };

struct extent {
    int64_t start, n;
};

/* One list as it was logged. Rows are those of the candidates; ranks and places count
 * from 1, and 0 is none. */
struct list {
    int64_t places[ELEMENT_WIDTH]; /* of the fields of its impression */
    bool is_compared;
    struct comparison *of; /* whose it is, or NULL */
    int64_t teams;
    bool has_session;
    int64_t n_items, k, n_rankers, n_documents;
    uint64_t mask;
    struct extent items[MOST_ITEMS];
    uint16_t slots[MOST_SLOTS]; /* rows by hash of the item, plus 1 */
    uint16_t first[MOST_ITEMS]; /* best rank of each row, or ABSENT */
    uint16_t place[MOST_ITEMS], seen[MOST_ITEMS];
    uint16_t rows[MOST_RANKERS][MOST_DEPTH], shown[MOST_PLACES];
    int64_t lengths[MOST_RANKERS], team[MOST_PLACES];
    bool is_clicked[MOST_PLACES];
    int64_t n_clicks, n_first[MOST_PLACES + 1], sizes[MOST_PLACES];
    int64_t length; /* of weights and sizes */
    double weights[MOST_PLACES + 1][MOST_PLACES + 1], bound;
};

/* Reads what concerns comparisons; the rankings of one of these, if they come after the
 * experiment. False where it is not whole, or not plain. */
bool compared_extra(struct list *list, const uint8_t *data, struct comparison *comparisons,
                    int64_t n_comparisons);

/* Whether the shown documents are of the rankings, each of them once, `most` in all. */
bool compared_shown(struct list *list, const uint8_t *data, int64_t most);

bool compared_clicks(struct list *list, const uint8_t *data, int64_t end);

/* Whether turns made the list, as `possible_lists.can_be_drafted` says of its teams. */
bool compared_is_draft(struct list *list, const uint8_t *data);

/* Sizes of choices and weights of documents by their first ranks, up to `length`; see
 * `pairwise_weights.py`. */
void compared_weigh(struct list *list, int64_t length, double largest);

/* As `pairwise_bounds.largest_preference`. */
double compared_bound(const struct list *list);

#endif

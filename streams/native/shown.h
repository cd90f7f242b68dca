/* An impression as it is read: where its parts lie, and which names follow from them. */
#ifndef FOLD_SHOWN_H
#define FOLD_SHOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "statistics.h"

/* An impression as it is read. `material` is what its exposures follow from, `rows`
 * what was shown: places among the candidates, two bytes each. `row` is something else:
 * the name of its exposure row. `key` is that of its candidate set; `is_open` says that
 * it came without candidates, and `is_listed` that the list form can count it. */
struct shown {
    const uint8_t *data;
    struct span query, intervention, candidates, rows, material;
    int64_t end, at_ms, policy, n_items, n_ranks, group, clicks_at, n_clicks;
    struct era *era;
    struct name scope, row, list;
    uint8_t key[NAME_BYTES];
    bool is_open, is_listed;
};

/* Which ranks were clicked: classes by rank, as bits, and the mask of the first 32. */
struct clicked {
    uint8_t *classes;
    uint32_t mask;
    int64_t n, first, last;
    bool has_others;
};

static inline uint32_t row_at(const struct shown *one, int64_t rank) {
    const uint8_t *place = one->rows.bytes + 2 * rank - 2;
    return (uint32_t)place[0] | (uint32_t)place[1] << 8;
}

static inline float float_at(const uint8_t *bytes) {
    uint32_t bits = (uint32_t)part_at(bytes, 4);
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* Reads the interaction between two places; less than 0 if it is not whole. */
int64_t read_shown(struct statistics *statistics, const uint8_t *data, int64_t at,
                   int64_t end, struct shown *one);

/* Reads which places were clicked; less than 0 if that is not whole. */
int64_t read_clicks(struct statistics *statistics, const struct shown *one,
                    struct clicked *clicked);

/* Candidates one by one, or NULL if they are not whole, or there is no memory. */
const struct span *candidates_of(struct statistics *statistics, const struct shown *one);

/* P(item at rank) of what was shown there; 0 if it is not known. `placements` are those
 * of a Plackett-Luce list. */
double probability_at(const struct shown *one, int64_t rank, const double *placements);

/* Probabilities of a Plackett-Luce list, [n_items, n_ranks]; NULL: no memory. */
const double *placements_of(struct statistics *statistics, const struct shown *one);

/* The general form: everything by item and rank. */
int64_t count_in_cell(struct statistics *statistics, struct shown *one,
                      struct scope *scope, const struct row *row,
                      const struct clicked *clicked);

/* The number in its set of the candidate at a row, or -1; `texts` are all candidates
 * where the set grows. */
static inline int64_t number_at(struct shown *one, struct scope *scope,
                                const struct span *texts, uint32_t row) {
    return texts ? number_of_item(one->era, scope->set, texts[row]) : (int64_t)row;
}

#endif

/* The general form of a group: everything by item and rank. */
#include <math.h>
#include <string.h>

#include "shown.h"

/* Fixed point of an exposure and of an inverse probability of 1. */
#define EXPOSURE_ONE 1073741824.0
#define INVERSE_ONE 65536.0

enum { SQUARED_BITS = 40 };
#define LARGEST_INVERSE (INT64_C(1) << 62)

static struct pair *pair_at(struct cell *cell, int64_t i) {
    return keyed_at(&cell->pairs, (size_t)i, sizeof(struct pair));
}

/* The number of the pair of an item and a rank, or -1. */
static int64_t find_pair(struct cell *cell, int64_t item, int64_t rank, int64_t hint) {
    uint64_t key = (uint64_t)item << RANK_BITS | (uint64_t)rank;
    return keyed_find(&cell->pairs, key, sizeof(struct pair), (uint32_t)hint);
}

/* Sums of the item of a pair; the pair remembers where they are. */
static struct sums *sums_of(struct cell *cell, int64_t i) {
    struct pair *pair = pair_at(cell, i);
    if (!pair->sums) {
        uint64_t item = pair->key >> RANK_BITS;
        int64_t found = keyed_find(&cell->sums, item, sizeof(struct sums), UINT32_MAX);
        if (found < 0)
            return NULL;
        pair->sums = (uint32_t)found + 1;
    }
    return keyed_at(&cell->sums, pair->sums - 1, sizeof(struct sums));
}

static int64_t add_inverse(struct statistics *statistics, struct cell *cell, int64_t pair,
                           double probability) {
    if (!(probability > 0.0))
        return 0;
    if (probability < LEAST_PROBABILITY) {
        probability = LEAST_PROBABILITY;
        cell->totals[CLIPPED]++;
        statistics->numbers[N_CLIPPED]++;
    }
    struct sums *sums = sums_of(cell, pair);
    if (!sums)
        return STATISTICS_NO_MEMORY;
    int64_t squared = llrint(INVERSE_ONE / (probability * probability));
    int64_t low = sums->squared_low + (squared & ((INT64_C(1) << SQUARED_BITS) - 1));
    sums->inverse += llrint(INVERSE_ONE / probability);
    sums->squared_high += (squared >> SQUARED_BITS) + (low >> SQUARED_BITS);
    sums->squared_low = low & ((INT64_C(1) << SQUARED_BITS) - 1);
    return sums->inverse < LARGEST_INVERSE ? 0 : STATISTICS_TOO_MANY;
}

/* Clicked above unclicked, and pairs of clicked places. */
static bool count_preferences(struct cell *cell, const struct clicked *clicked,
                              uint8_t reward, const uint32_t *pairs) {
    for (int64_t rank = 1; rank <= clicked->last; rank++) {
        struct sums *sums = sums_of(cell, pairs[rank]);
        if (!sums)
            return false;
        if (!(clicked->classes[rank] & reward)) {
            sums->minus += clicked->n;
            continue;
        }
        sums->plus += clicked->last - clicked->n;
        for (int64_t other = rank + 1; other <= clicked->last; other++) {
            if (!(clicked->classes[other] & reward))
                continue;
            uint64_t one = pairs[rank], two = pairs[other];
            uint64_t key = one < two ? one << 32 | two : two << 32 | one;
            if (!count_key(&cell->click_pairs, key))
                return false;
        }
    }
    return true;
}

/* What exposures of one impression are added to. */
struct exposed {
    struct shown *one;
    struct scope *scope;
    struct cell *cell;
    const struct span *texts;
    int64_t hint;
};

static bool add_exposure(struct exposed *to, int64_t row, int64_t rank,
                         double probability) {
    int64_t fixed = llrint(probability * EXPOSURE_ONE);
    if (fixed <= 0)
        return true;
    int64_t item = number_at(to->one, to->scope, to->texts, (uint32_t)row);
    int64_t pair = item < 0 ? -1 : find_pair(to->cell, item, rank, to->hint);
    if (pair < 0)
        return false;
    pair_at(to->cell, pair)->exposure += fixed;
    to->hint = pair + 1;
    return true;
}

/* Of a list whose first items are certain, and whose last is any of the rest. */
static bool add_tail(struct statistics *statistics, struct exposed *to) {
    struct shown *one = to->one;
    uint8_t *is_first = room_for(&statistics->scores, one->n_items, 1);
    if (!is_first)
        return false;
    memset(is_first, 0, (size_t)one->n_items);
    for (int64_t rank = 1; rank < one->n_ranks; rank++) {
        is_first[row_at(one, rank)] = 1;
        if (!add_exposure(to, row_at(one, rank), rank, 1.0))
            return false;
    }
    double each = 1.0 / (double)(one->n_items - one->n_ranks + 1);
    for (int64_t row = 0; row < one->n_items; row++)
        if (!is_first[row] && !add_exposure(to, row, one->n_ranks, each))
            return false;
    return true;
}

static bool add_logged(struct exposed *to) {
    const struct shown *one = to->one;
    int64_t n_cells = one->n_items * one->n_ranks, n = one->material.n;
    const uint8_t *bytes = one->material.bytes;
    bool is_dense = n == 4 * n_cells;
    for (int64_t i = 0; i < (is_dense ? n_cells : n / 8); i++) {
        int64_t cell = is_dense ? i : (int64_t)part_at(bytes + 4 * i, 4);
        double probability = float_at(bytes + (is_dense ? 0 : n / 2) + 4 * i);
        if (cell < n_cells && !add_exposure(to, cell / one->n_ranks,
                                            cell % one->n_ranks + 1, probability))
            return false;
    }
    return true;
}

static bool add_exposures(struct statistics *statistics, struct exposed *to,
                          const double *placements) {
    struct shown *one = to->one;
    if (one->policy == POLICY_LOGGED)
        return add_logged(to);
    if (one->policy == POLICY_TAIL_SHUFFLE)
        return one->n_ranks == 0 || add_tail(statistics, to);
    if (one->policy == POLICY_DETERMINISTIC) {
        for (int64_t rank = 1; rank <= one->n_ranks; rank++)
            if (!add_exposure(to, row_at(one, rank), rank, 1.0))
                return false;
        return true;
    }
    for (int64_t row = 0; row < one->n_items; row++)
        for (int64_t rank = 1; rank <= one->n_ranks; rank++)
            if (!add_exposure(to, row, rank, placements[row * one->n_ranks + rank - 1]))
                return false;
    return true;
}

/* Counts shown and clicked places of an impression, whose pairs are found. */
static bool count_places(struct statistics *statistics, struct exposed *to,
                         const struct clicked *clicked, uint32_t *pairs) {
    struct shown *one = to->one;
    int64_t to_first = clicked->first ? clicked->first : one->n_ranks;
    uint8_t reward = (uint8_t)(1 << statistics->reward);
    for (int64_t rank = 1; rank <= one->n_ranks; rank++) {
        int64_t item = number_at(one, to->scope, to->texts, row_at(one, rank));
        int64_t found = item < 0 ? -1 : find_pair(to->cell, item, rank, to->hint);
        if (found < 0)
            return false;
        to->hint = found + 1;
        struct pair *pair = pair_at(to->cell, found);
        pairs[rank] = (uint32_t)found;
        pair->shown++;
        pair->to_first += rank <= to_first;
        pair->to_last += rank <= clicked->last;
        pair->clicked += (clicked->classes[rank] & reward) != 0;
        pair->first_click += rank == clicked->first;
    }
    return true;
}

int64_t count_in_cell(struct statistics *statistics, struct shown *one,
                      struct scope *scope, const struct row *row,
                      const struct clicked *clicked) {
    struct cell *cell = cell_of(one->era, scope, one->group);
    uint32_t *pairs = room_for(&statistics->pairs, one->n_ranks, sizeof *pairs);
    struct exposed to = {one, scope, cell, NULL, 0};
    if (scope->set->is_growing)
        to.texts = candidates_of(statistics, one);
    if (!cell || !pairs || (scope->set->is_growing && !to.texts))
        return STATISTICS_NO_MEMORY;
    if (cell->totals[IMPRESSIONS] == INT32_MAX)
        return STATISTICS_TOO_MANY;
    cell->is_changed = true;
    cell->totals[IMPRESSIONS]++;
    cell->totals[WITHOUT_CLICK] += clicked->n == 0;
    cell->totals[CLICKS] += clicked->n;
    cell->totals[CLICKS_SQUARED] += clicked->n * clicked->n;
    if (!count_places(statistics, &to, clicked, pairs))
        return STATISTICS_NO_MEMORY;
    if (scope->flags & IS_CAPPED)
        return 0;
    uint8_t reward = (uint8_t)(1 << statistics->reward);
    if (clicked->n && !count_preferences(cell, clicked, reward, pairs))
        return STATISTICS_NO_MEMORY;
    if (one->policy == POLICY_UNKNOWN || one->policy == POLICY_MULTILEAVE) {
        cell->totals[WITHOUT_EXPOSURE]++;
        return 0;
    }
    const double *placements = NULL;
    if (one->policy == POLICY_PLACKETT_LUCE && (clicked->n || !row)) {
        placements = placements_of(statistics, one);
        if (!placements)
            return STATISTICS_NO_MEMORY;
    }
    for (int64_t rank = 1; rank <= clicked->last; rank++) {
        if (!(clicked->classes[rank] & reward))
            continue;
        double probability = probability_at(one, rank, placements);
        int64_t failure = add_inverse(statistics, cell, pairs[rank], probability);
        if (failure)
            return failure;
    }
    to.hint = 0;
    bool is_added = row ? count_key(&cell->rows, (uint64_t)row->index)
                        : add_exposures(statistics, &to, placements);
    return is_added ? 0 : STATISTICS_NO_MEMORY;
}

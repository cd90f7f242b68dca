/* One impression after another, from its bytes to its counts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "msgpack.h"
#include "statistics.h"

/* Impressions whose memory is fetched together. */
enum { BATCH = 32 };

#if defined(__GNUC__)
#define PREFETCH(place) __builtin_prefetch(place)
#else
#define PREFETCH(place) ((void)(place))
#endif

/* Fixed point of an exposure and of an inverse probability of 1. */
#define EXPOSURE_ONE 1073741824.0
#define INVERSE_ONE 65536.0

/* Smaller probabilities of clicked places are raised to this, and counted. */
#define LEAST_PROBABILITY (1.0 / 1048576.0)

enum { SQUARED_BITS = 40, RANK_BITS = 17 };
#define LARGEST_INVERSE (INT64_C(1) << 62)

/* An impression as it is read. `material` is what its exposures follow from, `rows`
 * what was shown: places among the candidates, two bytes each. */
struct shown {
    const uint8_t *data;
    struct text query, intervention, candidates, rows, material;
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

static uint32_t row_at(const struct shown *one, int64_t rank) {
    const uint8_t *place = one->rows.bytes + 2 * rank - 2;
    return (uint32_t)place[0] | (uint32_t)place[1] << 8;
}

static float float_at(const uint8_t *bytes) {
    uint32_t bits = (uint32_t)part_at(bytes, 4);
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static struct text text_in(const uint8_t *data, const int64_t *places, int field) {
    int64_t start = 0, n = 0;
    msgpack_span(data, places[field], places[ELEMENT_END], &start, &n);
    return (struct text){data + start, n};
}

static int64_t number_in(const uint8_t *data, const int64_t *places, int field) {
    int64_t number = 0;
    msgpack_number(data, places[field], places[ELEMENT_END], &number);
    return number;
}

void *room_for(struct room *room, int64_t n, size_t width) {
    size_t size = ((size_t)n + 1) * width;
    if (size > room->capacity) {
        free(room->bytes);
        room->bytes = malloc(size + size / 2);
        room->capacity = room->bytes ? size + size / 2 : 0;
    }
    return room->bytes;
}

/* Candidates one by one, or NULL if they are not whole, or there is no memory. */
static const struct text *candidates_of(struct statistics *statistics,
                                        const struct shown *one) {
    struct text packed = one->candidates;
    struct text *texts = room_for(&statistics->texts, one->n_items, sizeof *texts);
    int64_t n, at = msgpack_array(packed.bytes, 0, packed.n, &n);
    for (int64_t i = 0; texts && i < one->n_items; i++) {
        int64_t start;
        at = msgpack_span(packed.bytes, at, packed.n, &start, &texts[i].n);
        if (at < 0)
            return NULL;
        texts[i].bytes = packed.bytes + start;
    }
    return texts;
}

/* Names what an impression belongs to; false if it is not whole. */
static bool find_names(struct statistics *statistics, struct shown *one) {
    memcpy(one->key, OPEN_SET, NAME_BYTES);
    if (!one->is_open)
        key_of_set(one->candidates, one->key);
    struct text none = {one->data, 0};
    one->scope = name_of_scope(one->query, one->key, one->intervention);
    one->row = name_of_row(one->scope, one->policy, one->n_ranks, one->material,
                           one->is_open ? one->candidates : none);
    one->is_listed = one->policy != POLICY_PLACKETT_LUCE && one->n_ranks <= MOST_LISTED;
    if (!one->is_listed)
        return true;
    if (!one->is_open) {
        one->list = name_of_list(one->row, one->rows);
        return true;
    }
    const struct text *items = candidates_of(statistics, one);
    one->list = name_of_list(one->row, none);
    for (int64_t rank = 1; items && rank <= one->n_ranks; rank++)
        one->list = name_with_item(one->list, items[row_at(one, rank)]);
    return items != NULL;
}

/* Whether what exposures follow from is whole. */
static bool has_exposures(const struct shown *one) {
    int64_t n = one->material.n, n_cells = one->n_items * one->n_ranks;
    if (one->policy == POLICY_PLACKETT_LUCE)
        return n == 4 * one->n_items && one->n_ranks <= one->n_items;
    return one->policy != POLICY_LOGGED || n == 4 * n_cells || n % 8 == 0;
}

/* Reads the interaction between two places; less than 0 if it is not whole. */
static int64_t read_shown(struct statistics *statistics, const uint8_t *data, int64_t at,
                          int64_t end, struct shown *one) {
    int64_t places[ELEMENT_WIDTH], n;
    at = msgpack_array(data, at, end, &n);
    if (at < 0 || n != N_INTERACTION_FIELDS)
        return STATISTICS_NOT_WHOLE;
    at = fold_find_fields(data, at, end, places);
    if (at < 0 || number_in(data, places, IMPRESSION_TAG) != IMPRESSION)
        return STATISTICS_NOT_WHOLE;
    one->data = data;
    one->end = end;
    one->query = text_in(data, places, IMPRESSION_QUERY_ID);
    one->intervention = text_in(data, places, IMPRESSION_INTERVENTION);
    one->candidates = text_in(data, places, IMPRESSION_CANDIDATES);
    one->rows = text_in(data, places, IMPRESSION_SHOWN);
    one->at_ms = number_in(data, places, IMPRESSION_AT_MS);
    one->policy = number_in(data, places, IMPRESSION_POLICY);
    one->is_open = data[places[IMPRESSION_IS_OPEN_SET]] == 0xC3;
    uint64_t unit = (uint64_t)number_in(data, places, IMPRESSION_UNIT);
    one->group = (int64_t)(unit % (uint64_t)statistics->n_groups);
    one->n_ranks = one->rows.n / 2;
    one->material = (struct text){data, 0};
    if (one->policy == POLICY_LOGGED)
        one->material = text_in(data, places, IMPRESSION_EXPOSURES);
    if (one->policy == POLICY_PLACKETT_LUCE)
        one->material = text_in(data, places, IMPRESSION_SCORES);
    one->clicks_at = msgpack_array(data, at, end, &one->n_clicks);
    struct text packed = one->candidates;
    bool is_whole = one->clicks_at >= 0 && one->n_ranks <= 1 << 16 && one->policy >= 0 &&
                    one->policy <= POLICY_MULTILEAVE &&
                    msgpack_array(packed.bytes, 0, packed.n, &one->n_items) >= 0 &&
                    one->n_items <= packed.n && has_exposures(one);
    for (int64_t rank = 1; is_whole && rank <= one->n_ranks; rank++)
        is_whole = row_at(one, rank) < one->n_items;
    if (!is_whole || !find_names(statistics, one))
        return STATISTICS_NOT_WHOLE;
    int64_t number = one->at_ms / statistics->keep_ms;
    number -= one->at_ms % statistics->keep_ms < 0;
    one->era = era_at(statistics, number);
    return one->era ? 0 : STATISTICS_NO_MEMORY;
}

static int64_t class_of(const struct statistics *statistics, struct text action) {
    for (size_t i = 0; i < statistics->actions.n; i++) {
        const struct action *known = queue_at(&statistics->actions, i);
        if (is_same((struct text){known->bytes, known->n}, action))
            return known->class;
    }
    return 0;
}

/* Reads which places were clicked; less than 0 if that is not whole. */
static int64_t read_clicks(struct statistics *statistics, const struct shown *one,
                           struct clicked *clicked) {
    *clicked = (struct clicked){0};
    clicked->classes = room_for(&statistics->marks, one->n_ranks, 1);
    if (!clicked->classes)
        return STATISTICS_NO_MEMORY;
    memset(clicked->classes, 0, (size_t)one->n_ranks + 1);
    int64_t at = one->clicks_at;
    for (int64_t i = 0; i < one->n_clicks; i++) {
        int64_t n, rank, at_ms, start;
        struct text action;
        at = msgpack_array(one->data, at, one->end, &n);
        at = msgpack_number(one->data, at, one->end, &rank);
        at = msgpack_number(one->data, at, one->end, &at_ms);
        at = msgpack_span(one->data, at, one->end, &start, &action.n);
        if (at < 0 || n != N_CLICK_MARK_FIELDS)
            return STATISTICS_NOT_WHOLE;
        action.bytes = one->data + start;
        if (rank >= 1 && rank <= one->n_ranks)
            clicked->classes[rank] |= 1 << class_of(statistics, action);
    }
    uint8_t reward = (uint8_t)(1 << statistics->reward);
    for (int64_t rank = 1; rank <= one->n_ranks; rank++) {
        if (clicked->classes[rank] & reward) {
            clicked->n++;
            clicked->first = clicked->first ? clicked->first : rank;
            clicked->last = rank;
            clicked->mask |= rank <= MOST_LISTED ? UINT32_C(1) << (rank - 1) : 0;
        }
        clicked->has_others |= (clicked->classes[rank] & ~reward) != 0;
    }
    return 0;
}

/* A logged exposure: all are there, or places and values of those that are not 0. */
static double logged_at(const struct shown *one, int64_t cell) {
    const uint8_t *bytes = one->material.bytes;
    int64_t n = one->material.n;
    if (n == 4 * one->n_items * one->n_ranks)
        return float_at(bytes + 4 * cell);
    for (int64_t at = 0; at < n / 2; at += 4)
        if ((int64_t)part_at(bytes + at, 4) == cell)
            return float_at(bytes + n / 2 + at);
    return 0.0;
}

/* Probabilities of a Plackett-Luce list, [n_items, n_ranks]; NULL: no memory. */
static const double *placements_of(struct statistics *statistics,
                                   const struct shown *one) {
    int64_t n = one->n_items * one->n_ranks;
    struct placements *known =
        &statistics->placements[one->row.first % KNOWN_PLACEMENTS];
    bool is_kept = n <= MOST_PLACEMENTS;
    if (is_kept && known->row.first == one->row.first &&
        known->row.second == one->row.second)
        return known->matrix.bytes;
    double *scores = room_for(&statistics->scores, one->n_items, sizeof *scores);
    struct room *room = is_kept ? &known->matrix : &statistics->matrix;
    double *matrix = room_for(room, n, sizeof *matrix);
    if (is_kept)
        known->row = (struct name){0, 0};
    if (!scores || !matrix)
        return NULL;
    for (int64_t i = 0; i < one->n_items; i++)
        scores[i] = float_at(one->material.bytes + 4 * i);
    if (!placement_fill(scores, one->n_items, one->n_ranks, &statistics->scratch, matrix))
        return NULL;
    if (is_kept)
        known->row = one->row;
    return matrix;
}

/* P(item at rank) of what was shown there; 0 if it is not known. */
static double probability_at(const struct shown *one, int64_t rank,
                             const double *placements) {
    int64_t cell = row_at(one, rank) * one->n_ranks + rank - 1;
    switch (one->policy) {
    case POLICY_DETERMINISTIC:
        return 1.0;
    case POLICY_TAIL_SHUFFLE:
        return rank < one->n_ranks ? 1.0 : 1.0 / (double)(one->n_items - one->n_ranks + 1);
    case POLICY_LOGGED:
        return logged_at(one, cell);
    case POLICY_PLACKETT_LUCE:
        /* Whatever was shown had a chance, however small its computed value. */
        return fmax(placements[cell], LEAST_PROBABILITY / 2);
    default:
        return 0.0;
    }
}

/* The number in its set of the candidate at a row. */
static int64_t number_at(struct shown *one, struct scope *scope, const struct text *texts,
                         uint32_t row) {
    return texts ? number_of_item(one->era, scope->set, texts[row]) : (int64_t)row;
}

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
            size_t width = sizeof(struct click_pair);
            int64_t found = keyed_find(&cell->click_pairs, key, width, UINT32_MAX);
            if (found < 0)
                return false;
            struct click_pair *both = keyed_at(&cell->click_pairs, (size_t)found, width);
            both->count++;
        }
    }
    return true;
}

/* What exposures of one impression are added to. */
struct exposed {
    struct shown *one;
    struct scope *scope;
    struct cell *cell;
    const struct text *texts;
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

static bool count_row(struct cell *cell, const struct row *row) {
    while (cell->rows.n <= (size_t)row->index) {
        if (!queue_reserve(&cell->rows, 1))
            return false;
        *(int64_t *)queue_push(&cell->rows) = 0;
    }
    ++*(int64_t *)queue_at(&cell->rows, (size_t)row->index);
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

/* The general form: everything by item and rank. */
static int64_t count_in_cell(struct statistics *statistics, struct shown *one,
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
    bool is_added =
        row ? count_row(cell, row) : add_exposures(statistics, &to, placements);
    return is_added ? 0 : STATISTICS_NO_MEMORY;
}

/* The list form; `*is_counted` says whether its masks had room. */
static int64_t count_in_list(struct statistics *statistics, struct shown *one,
                             struct list *list, const struct clicked *clicked,
                             bool *is_counted) {
    struct group *group = &groups_of(list)[one->group];
    if (group->n == INT32_MAX)
        return STATISTICS_TOO_MANY;
    *is_counted = true;
    if (clicked->n) {
        struct mask *mask = mask_of(&one->era->masks, group, clicked->mask);
        if (!mask) {
            *is_counted = false;
            return masks_are_full(&one->era->masks, group) ? 0 : STATISTICS_NO_MEMORY;
        }
        mask->count++;
    }
    group->n++;
    if (one->at_ms > list->last_ms)
        list->last_ms = one->at_ms;
    for (int64_t rank = 1; one->policy == POLICY_LOGGED && rank <= clicked->last; rank++) {
        if (!(clicked->mask >> (rank - 1) & 1))
            continue;
        double probability = probability_at(one, rank, NULL);
        statistics->numbers[N_CLIPPED] +=
            probability > 0.0 && probability < LEAST_PROBABILITY;
    }
    return 0;
}

static int64_t count_rewards(struct statistics *statistics, struct shown *one,
                             struct scope *scope, const struct clicked *clicked) {
    const struct text *texts = NULL;
    if (scope->set->is_growing && !(texts = candidates_of(statistics, one)))
        return STATISTICS_NO_MEMORY;
    for (int64_t rank = 1; rank <= one->n_ranks; rank++) {
        for (int64_t class = 0; class < MOST_CLASSES; class++) {
            if (class == statistics->reward || !(clicked->classes[rank] >> class & 1))
                continue;
            int64_t item = number_at(one, scope, texts, row_at(one, rank));
            uint64_t key = (uint64_t)one->group << 51 | (uint64_t)class << 49 |
                           (uint64_t)item << RANK_BITS | (uint64_t)rank;
            size_t width = sizeof(struct reward);
            int64_t found = item < 0 ? -1
                                     : keyed_find(&scope->rewards, key, width, UINT32_MAX);
            if (found < 0)
                return STATISTICS_NO_MEMORY;
            struct reward *reward = keyed_at(&scope->rewards, (size_t)found, width);
            reward->count++;
        }
    }
    return 0;
}

/* The scope of an impression, or the one for what is beyond the limits. */
static struct scope *scope_for(struct statistics *statistics, const struct shown *one) {
    struct era *era = one->era;
    struct scope *scope = names_find(&era->names, one->scope);
    if (scope)
        return scope;
    const uint8_t *key = one->key;
    struct text intervention = one->intervention;
    if (is_full(era, one->query, key, intervention, &statistics->limits)) {
        key = OVERFLOW_SET;
        intervention.n = 0;
    }
    struct set *set = set_of(era, one->query, key, one->candidates);
    return set ? scope_of(era, set, intervention) : NULL;
}

/* The exposure row of an impression, where it has one and there is room for it; false
 * if there is no memory. */
static bool row_for(struct statistics *statistics, const struct shown *one,
                    struct scope *scope, struct row **row) {
    *row = names_find(&one->era->names, one->row);
    if (*row || scope->n_rows >= statistics->limits.rows)
        return true;
    struct text none = {one->data, 0};
    *row = add_row(one->era, one->row, one->policy, one->n_ranks, one->material,
                   one->is_open ? one->candidates : none);
    if (*row)
        give_row(one->era, scope, *row);
    return *row != NULL;
}

/* The list of an impression, made; NULL if there is no memory. */
static struct list *list_for(struct statistics *statistics, struct shown *one,
                             struct scope *scope, const struct row *row) {
    const struct text *texts = NULL;
    uint32_t items[MOST_LISTED + 1];
    if (scope->set->is_growing && !(texts = candidates_of(statistics, one)))
        return NULL;
    for (int64_t rank = 1; rank <= one->n_ranks; rank++) {
        int64_t item = number_at(one, scope, texts, row_at(one, rank));
        if (item < 0)
            return NULL;
        items[rank - 1] = (uint32_t)item;
    }
    uint32_t length = (uint32_t)one->n_ranks;
    struct list *list = add_list(one->era, scope, one->list, items, length);
    if (list)
        list->row = (int32_t)(row ? row->index : -1 - one->policy);
    return list;
}

/* What is not in a list that is there. */
static int64_t count_rare(struct statistics *statistics, struct shown *one,
                          const struct clicked *clicked, struct scope **scope_is) {
    struct scope *scope = *scope_is = scope_for(statistics, one);
    if (!scope)
        return STATISTICS_NO_MEMORY;
    if (one->at_ms > scope->last_ms)
        scope->last_ms = one->at_ms;
    if (scope->flags & IS_CAPPED) {
        statistics->numbers[N_CAPPED]++;
        return count_in_cell(statistics, one, scope, NULL, clicked);
    }
    struct row *row = NULL;
    bool has_row = one->policy == POLICY_LOGGED || one->policy == POLICY_PLACKETT_LUCE;
    if (has_row && !row_for(statistics, one, scope, &row))
        return STATISTICS_NO_MEMORY;
    bool is_known = one->is_listed && names_find(&one->era->names, one->list);
    bool has_room = scope->n_lists < statistics->limits.lists && (row || !has_row);
    if (one->is_listed && has_room && !is_known) {
        bool is_counted;
        struct list *list = list_for(statistics, one, scope, row);
        if (!list)
            return STATISTICS_NO_MEMORY;
        return count_in_list(statistics, one, list, clicked, &is_counted);
    }
    if (one->n_ranks > MOST_LISTED)
        scope->flags |= IS_TRUNCATED;
    if (one->is_listed || (has_row && !row))
        scope->flags |= IS_OVERFLOWED;
    return count_in_cell(statistics, one, scope, row, clicked);
}

static int64_t count_one(struct statistics *statistics, struct shown *one) {
    struct clicked clicked = {0};
    int64_t failure = 0;
    if (one->n_clicks || !one->is_listed)
        failure = read_clicks(statistics, one, &clicked);
    if (failure)
        return failure;
    struct list *list =
        one->is_listed ? names_find(&one->era->names, one->list) : NULL;
    struct scope *scope = list ? list->scope : NULL;
    bool is_counted = false;
    if (list)
        failure = count_in_list(statistics, one, list, &clicked, &is_counted);
    if (!failure && !is_counted) {
        if (!clicked.classes)
            failure = read_clicks(statistics, one, &clicked);
        if (!failure)
            failure = count_rare(statistics, one, &clicked, &scope);
    }
    if (!failure && clicked.has_others && !(scope->flags & IS_CAPPED))
        failure = count_rewards(statistics, one, scope, &clicked);
    if (!failure && !scope_changed(one->era, scope))
        failure = STATISTICS_NO_MEMORY;
    if (failure)
        return failure;
    bool has_none = one->policy == POLICY_UNKNOWN || one->policy == POLICY_MULTILEAVE;
    statistics->numbers[N_WITHOUT_EXPOSURE] += has_none && !(scope->flags & IS_CAPPED);
    statistics->numbers[N_TAKEN]++;
    one->era->n_impressions++;
    return 0;
}

int64_t statistics_count(struct statistics *statistics, const uint8_t *data,
                         const int64_t *ends, int64_t n) {
    struct shown batch[BATCH];
    int64_t at = 0;
    for (int64_t first = 0; first < n; first += BATCH) {
        int64_t n_read = n - first < BATCH ? n - first : BATCH;
        for (int64_t i = 0; i < n_read; i++) {
            struct shown *one = &batch[i];
            int64_t failure = read_shown(statistics, data, at, ends[first + i], one);
            if (failure)
                return failure;
            at = ends[first + i];
            PREFETCH(names_home(&one->era->names, one->is_listed ? one->list : one->scope));
        }
        for (int64_t i = 0; i < n_read; i++) {
            const struct shown *one = &batch[i];
            const struct list *list =
                one->is_listed ? names_find(&one->era->names, one->list) : NULL;
            if (list)
                PREFETCH(&groups_of(list)[one->group]);
        }
        for (int64_t i = 0; i < n_read; i++) {
            int64_t failure = count_one(statistics, &batch[i]);
            if (failure)
                return failure;
        }
    }
    return 0;
}

#include "shown.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "elements.h"
#include "msgpack.h"

void *room_for(struct room *room, int64_t n, size_t width) {
    size_t size = ((size_t)n + 1) * width;
    if (size > room->capacity) {
        free(room->bytes);
        room->bytes = malloc(size + size / 2);
        room->capacity = room->bytes ? size + size / 2 : 0;
    }
    return room->bytes;
}

const struct span *candidates_of(struct statistics *statistics, const struct shown *one) {
    struct span packed = one->candidates;
    struct span *texts = room_for(&statistics->texts, one->n_items, sizeof *texts);
    int64_t n, at = msgpack_array(packed.bytes, 0, packed.n, &n);
    for (int64_t i = 0; texts && i < one->n_items; i++) {
        int64_t start;
        at = msgpack_span(packed.bytes, at, packed.n, &start, &texts[i].n);
        if (at < 0)
            return NULL;
        texts[i].bytes = packed.bytes + start;
    }
    return at == packed.n ? texts : NULL;
}

/* Names what an impression belongs to; false if it is not whole. */
static bool find_names(struct statistics *statistics, struct shown *one) {
    memcpy(one->key, OPEN_SET, NAME_BYTES);
    if (!one->is_open)
        key_of_set(one->candidates, one->key);
    struct span none = {one->data, 0};
    one->scope = name_of_scope(one->query, one->key, one->intervention);
    bool has_items = one->is_open && (one->policy == POLICY_LOGGED ||
                                      one->policy == POLICY_PLACKETT_LUCE);
    one->row = name_of_row(one->scope, one->policy, one->n_ranks, one->material,
                           has_items ? one->candidates : none);
    one->is_listed = one->policy != POLICY_PLACKETT_LUCE && one->n_ranks <= MOST_LISTED;
    if (!one->is_listed)
        return true;
    if (!one->is_open) {
        one->list = name_of_list(one->row, one->rows);
        return true;
    }
    const struct span *items = candidates_of(statistics, one);
    one->list = name_of_list(one->row, none);
    for (int64_t rank = 1; items && rank <= one->n_ranks; rank++)
        one->list = name_with_item(one->list, items[row_at(one, rank)]);
    return items != NULL;
}

/* Whether what exposures follow from is whole. */
static bool has_exposures(const struct shown *one) {
    int64_t n = one->material.n, n_cells = one->n_items * one->n_ranks;
    if (one->policy == POLICY_PLACKETT_LUCE) {
        bool is_whole = n == 4 * one->n_items && one->n_ranks >= 1 &&
                        one->n_ranks <= one->n_items;
        for (int64_t i = 0; is_whole && i < one->n_items; i++)
            is_whole = isfinite(float_at(one->material.bytes + 4 * i));
        return is_whole;
    }
    return one->policy != POLICY_LOGGED || n == 4 * n_cells || n % 8 == 0;
}

int64_t read_shown(struct statistics *statistics, const uint8_t *data, int64_t at,
                   int64_t end, struct shown *one) {
    int64_t places[ELEMENT_WIDTH], n;
    struct element element = {data, places};
    at = msgpack_array(data, at, end, &n);
    if (at < 0 || n != N_INTERACTION_FIELDS)
        return STATISTICS_NOT_WHOLE;
    at = fold_find_fields(data, at, end, places);
    if (at < 0 || number_in(element, IMPRESSION_TAG) != IMPRESSION)
        return STATISTICS_NOT_WHOLE;
    one->data = data;
    one->end = end;
    one->query = span_in(element, IMPRESSION_QUERY_ID);
    one->intervention = span_in(element, IMPRESSION_INTERVENTION);
    one->candidates = span_in(element, IMPRESSION_CANDIDATES);
    one->rows = span_in(element, IMPRESSION_SHOWN);
    one->at_ms = number_in(element, IMPRESSION_AT_MS);
    one->policy = number_in(element, IMPRESSION_POLICY);
    one->is_open = data[places[IMPRESSION_IS_OPEN_SET]] == 0xC3;
    uint64_t unit = (uint64_t)number_in(element, IMPRESSION_UNIT);
    one->group = (int64_t)(unit % (uint64_t)statistics->n_groups);
    one->n_ranks = one->rows.n / 2;
    one->material = (struct span){data, 0};
    if (one->policy == POLICY_LOGGED)
        one->material = span_in(element, IMPRESSION_EXPOSURES);
    if (one->policy == POLICY_PLACKETT_LUCE)
        one->material = span_in(element, IMPRESSION_SCORES);
    one->clicks_at = msgpack_array(data, at, end, &one->n_clicks);
    struct span packed = one->candidates;
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

static int64_t class_of(const struct statistics *statistics, struct span action) {
    for (size_t i = 0; i < statistics->actions.n; i++) {
        const struct action *known = queue_at(&statistics->actions, i);
        if (is_same((struct span){known->bytes, known->n}, action))
            return known->class;
    }
    return 0;
}

int64_t read_clicks(struct statistics *statistics, const struct shown *one,
                    struct clicked *clicked) {
    *clicked = (struct clicked){0};
    clicked->classes = room_for(&statistics->marks, one->n_ranks, 1);
    if (!clicked->classes)
        return STATISTICS_NO_MEMORY;
    memset(clicked->classes, 0, (size_t)one->n_ranks + 1);
    int64_t at = one->clicks_at;
    for (int64_t i = 0; i < one->n_clicks; i++) {
        int64_t n, rank, at_ms, start;
        struct span action;
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

const double *placements_of(struct statistics *statistics, const struct shown *one) {
    int64_t n = one->n_items * one->n_ranks;
    struct placements *known =
        &statistics->placements[one->row.first % KNOWN_PLACEMENTS];
    bool is_kept = n <= MOST_PLACEMENTS;
    if (is_kept && known->is_known && known->row.first == one->row.first &&
        known->row.second == one->row.second)
        return known->matrix.bytes;
    double *scores = room_for(&statistics->scores, one->n_items, sizeof *scores);
    struct room *room = is_kept ? &known->matrix : &statistics->matrix;
    double *matrix = room_for(room, n, sizeof *matrix);
    if (is_kept)
        known->is_known = false;
    if (!scores || !matrix)
        return NULL;
    for (int64_t i = 0; i < one->n_items; i++)
        scores[i] = float_at(one->material.bytes + 4 * i);
    if (!placement_fill(scores, one->n_items, one->n_ranks, &statistics->scratch, matrix))
        return NULL;
    if (is_kept) {
        known->row = one->row;
        known->is_known = true;
    }
    return matrix;
}

double probability_at(const struct shown *one, int64_t rank, const double *placements) {
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

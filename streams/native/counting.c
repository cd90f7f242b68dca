/* One impression after another, from what was read to its counts. */
#include <stdlib.h>
#include <string.h>

#include "shown.h"

/* Impressions whose memory is fetched together. */
enum { BATCH = 32 };

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
    list->is_changed = true;
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
    const struct span *texts = NULL;
    if (scope->set->is_growing && !(texts = candidates_of(statistics, one)))
        return STATISTICS_NO_MEMORY;
    for (int64_t rank = 1; rank <= one->n_ranks; rank++) {
        for (int64_t class = 0; class < MOST_CLASSES; class++) {
            if (class == statistics->reward || !(clicked->classes[rank] >> class & 1))
                continue;
            int64_t item = number_at(one, scope, texts, row_at(one, rank));
            uint64_t key = (uint64_t)one->group << (RANK_BITS + ITEM_BITS + CLASS_BITS) |
                           (uint64_t)class << (RANK_BITS + ITEM_BITS) |
                           (uint64_t)item << RANK_BITS | (uint64_t)rank;
            if (item < 0 || !count_key(&scope->rewards, key))
                return STATISTICS_NO_MEMORY;
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
    struct span intervention = one->intervention;
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
    struct span none = {one->data, 0};
    *row = add_row(one->era, one->row, one->policy, one->n_ranks, one->material,
                   one->is_open ? one->candidates : none);
    if (*row)
        give_row(one->era, scope, *row);
    return *row != NULL;
}

/* The list of an impression, made; NULL if there is no memory. */
static struct list *list_for(struct statistics *statistics, struct shown *one,
                             struct scope *scope, const struct row *row) {
    const struct span *texts = NULL;
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

/* What does not only add to a list that is there: lists, rows and scopes that are new,
 * and all that is counted in the general form, as Plackett-Luce lists always are. */
static int64_t count_rare(struct statistics *statistics, struct shown *one,
                          const struct clicked *clicked, struct scope **scope_is) {
    /* What is kept of a new scope must be whole. */
    if (!names_find(&one->era->names, one->scope) && !candidates_of(statistics, one))
        return STATISTICS_NOT_WHOLE;
    struct scope *scope = *scope_is = scope_for(statistics, one);
    if (!scope)
        return STATISTICS_NO_MEMORY;
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
    /* A list that is known and has no clicks needs no room for them. */
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
    if (one->at_ms > scope->last_ms)
        scope->last_ms = one->at_ms;
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

#include "statistics.h"

#include <stdlib.h>
#include <string.h>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

struct statistics *statistics_new(const int64_t settings[9]) {
    struct statistics *statistics = calloc(1, sizeof *statistics);
    if (!statistics)
        return NULL;
    statistics->n_groups = settings[0];
    statistics->keep_ms = settings[1];
    statistics->limits =
        (struct limits_of_scopes){settings[2], settings[3], settings[4], settings[5]};
    statistics->reward = settings[6];
    statistics->head_bytes = settings[7];
    statistics->piece_lists = settings[8];
    statistics->eras.width = sizeof(struct era *);
    statistics->actions.width = sizeof(struct action);
    statistics->records.width = sizeof(struct record);
    return statistics;
}

static struct era *era_in(const struct statistics *statistics, size_t i) {
    return *(struct era **)queue_at(&statistics->eras, i);
}

void statistics_free(struct statistics *statistics) {
    if (!statistics)
        return;
    for (size_t i = 0; i < statistics->eras.n; i++)
        era_free(era_in(statistics, i));
    for (size_t i = 0; i < statistics->actions.n; i++)
        free(((struct action *)queue_at(&statistics->actions, i))->bytes);
    for (size_t i = 0; i < KNOWN_PLACEMENTS; i++)
        free(statistics->placements[i].matrix.bytes);
    struct room *rooms[] = {&statistics->marks,  &statistics->pairs,
                            &statistics->texts,  &statistics->scores,
                            &statistics->matrix, &statistics->sorted};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        free(rooms[i]->bytes);
    placement_free(&statistics->scratch);
    free(statistics->eras.rows);
    free(statistics->actions.rows);
    free(statistics->records.rows);
    free(statistics->buffer.bytes);
    free(statistics);
}

int64_t statistics_map(struct statistics *statistics, const uint8_t *action, int64_t n,
                       int64_t class) {
    struct action known = {malloc((size_t)n + 1), n, class};
    if (!known.bytes || !queue_reserve(&statistics->actions, 1)) {
        free(known.bytes);
        return STATISTICS_NO_MEMORY;
    }
    memcpy(known.bytes, action, (size_t)n);
    *(struct action *)queue_push(&statistics->actions) = known;
    return 0;
}

struct era *era_at(struct statistics *statistics, int64_t number) {
    size_t i = statistics->eras.n;
    /* The newest is the likeliest. */
    for (; i > 0 && era_in(statistics, i - 1)->number >= number; i--)
        if (era_in(statistics, i - 1)->number == number)
            return era_in(statistics, i - 1);
    if (!queue_reserve(&statistics->eras, 1))
        return NULL;
    struct era *era = era_new(number, statistics->n_groups);
    if (!era)
        return NULL;
    queue_push(&statistics->eras);
    struct era **eras = queue_at(&statistics->eras, 0);
    memmove(eras + i + 1, eras + i, (statistics->eras.n - 1 - i) * sizeof *eras);
    eras[i] = era;
    return era;
}

/* What left lies in holes between what stays: without a word the C library keeps the
 * pages of such holes, and the next era finds them too small here and there. */
static void give_back_pages(void) {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

int64_t statistics_leave(struct statistics *statistics, int64_t now_ms) {
    bool has_left = false;
    int64_t passed = now_ms / statistics->keep_ms;
    passed -= now_ms % statistics->keep_ms < 0;
    while (statistics->eras.n && era_in(statistics, 0)->number <= passed - 2) {
        struct era *era = era_in(statistics, 0);
        if (!write_tombstones(statistics, era))
            return STATISTICS_NO_MEMORY;
        statistics->numbers[N_LEFT] += era->n_impressions;
        era_free(era);
        queue_pop(&statistics->eras, 1);
        has_left = true;
    }
    if (has_left)
        give_back_pages();
    return 0;
}

int64_t statistics_changes(struct statistics *statistics, int64_t sizes[2]) {
    if (!write_changes(statistics))
        return STATISTICS_NO_MEMORY;
    sizes[0] = (int64_t)statistics->records.n;
    sizes[1] = (int64_t)statistics->buffer.n;
    return 0;
}

void statistics_take(struct statistics *statistics, uint8_t *bytes, int64_t *ends) {
    struct buffer *buffer = &statistics->buffer;
    if (buffer->n)
        memcpy(bytes, buffer->bytes, buffer->n);
    for (size_t i = 0; i < statistics->records.n; i++) {
        const struct record *record = queue_at(&statistics->records, i);
        ends[2 * i] = record->key_end;
        ends[2 * i + 1] = record->value_end;
    }
    queue_pop(&statistics->records, statistics->records.n);
    buffer->n = 0;
}

void statistics_numbers(const struct statistics *statistics,
                        int64_t numbers[N_NUMBERS]) {
    memset(numbers, 0, N_NUMBERS * sizeof *numbers);
    memcpy(numbers, statistics->numbers, sizeof statistics->numbers);
    for (size_t i = 0; i < statistics->eras.n; i++) {
        const struct era *era = era_in(statistics, i);
        numbers[N_SCOPES] += era->n_scopes;
        numbers[N_LISTS] += era->n_lists;
        numbers[N_ROWS] += era->n_rows;
    }
    numbers[HAS_ERA] = statistics->eras.n > 0;
    numbers[OLDEST_ERA] = statistics->eras.n ? era_in(statistics, 0)->number : 0;
}

void statistics_set_numbers(struct statistics *statistics,
                            const int64_t numbers[N_KEPT]) {
    memcpy(statistics->numbers, numbers, sizeof statistics->numbers);
}

int64_t statistics_bytes(const struct statistics *statistics) {
    int64_t n_bytes = 0;
    for (size_t i = 0; i < statistics->eras.n; i++)
        n_bytes += era_bytes(era_in(statistics, i));
    return n_bytes;
}

void statistics_name_set(const uint8_t *candidates, int64_t n, uint8_t key[NAME_BYTES]) {
    key_of_set((struct span){candidates, n}, key);
}

int64_t statistics_has_set(const struct statistics *statistics, const uint8_t *query,
                           int64_t n, const uint8_t key[NAME_BYTES]) {
    for (size_t i = statistics->eras.n; i > 0; i--)
        if (find_set(era_in(statistics, i - 1), (struct span){query, n}, key))
            return 1;
    return 0;
}

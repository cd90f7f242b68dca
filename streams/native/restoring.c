/* Scopes from records of the topic `statistics`, as `records.c` writes them. */
#include <string.h>

#include "msgpack.h"
#include "reader.h"
#include "statistics.h"

/* Impressions: counting goes up to the largest. */
static uint32_t next_count(struct reader *reader) {
    return (uint32_t)next_below(reader, (int64_t)INT32_MAX + 1);
}

static const uint8_t *next_name(struct reader *reader) {
    struct span name = next_text(reader);
    if (name.n != NAME_BYTES)
        reader->at = -1;
    return reader->at < 0 ? OPEN_SET : name.bytes;
}

/* What a key names. */
struct place {
    struct span kind, query, intervention;
    const uint8_t *set, *row;
    int64_t piece;
    struct era *era;
};

static bool is_kind(struct span kind, const char *name) {
    return is_same(kind, (struct span){(const uint8_t *)name, (int64_t)strlen(name)});
}

static int64_t read_key(struct statistics *statistics, struct reader *key,
                        struct place *place) {
    int64_t length = next_array(key);
    place->kind = next_text(key);
    place->query = next_text(key);
    place->set = next_name(key);
    if (length > 4)
        place->intervention = next_text(key);
    int64_t number = next_number(key);
    if (key->at >= 0 && is_kind(place->kind, "row"))
        place->row = next_name(key);
    if (key->at >= 0 && is_kind(place->kind, "piece"))
        place->piece = next_below(key, statistics->n_groups);
    if (key->at >= 0 && is_kind(place->kind, "lists"))
        place->piece = next_below(key, INT32_MAX);
    if (key->at < 0)
        return STATISTICS_NOT_WHOLE;
    place->era = era_at(statistics, number);
    return place->era ? 0 : STATISTICS_NO_MEMORY;
}

static int64_t restore_set(struct place *place, struct reader *value) {
    struct span candidates = {value->data + value->at, value->end - value->at};
    struct set *set = set_of(place->era, place->query, place->set, candidates);
    if (!set)
        return STATISTICS_NO_MEMORY;
    int64_t n = next_array(value);
    for (int64_t i = 0; i < n && value->at >= 0; i++) {
        struct span item = next_text(value);
        if (set->is_growing && number_of_item(place->era, set, item) != i)
            return STATISTICS_NOT_WHOLE;
    }
    set->is_changed = false;
    set->is_written = true;
    return 0;
}

/* The scope of a key, whose set was restored before. */
static struct scope *scope_in(struct place *place) {
    struct span none = {place->query.bytes, 0};
    struct set *set = set_of(place->era, place->query, place->set, none);
    return set ? scope_of(place->era, set, place->intervention) : NULL;
}

static int64_t restore_row(struct place *place, struct reader *value) {
    int64_t policy = next_number(value), n_ranks = next_number(value);
    struct span material = next_text(value), items = next_text(value);
    if (value->at < 0)
        return STATISTICS_NOT_WHOLE;
    struct name name = name_at(place->row);
    if (names_find(&place->era->names, name))
        return STATISTICS_NOT_WHOLE;
    struct row *row = add_row(place->era, name, policy, n_ranks, material, items);
    if (!row)
        return STATISTICS_NO_MEMORY;
    row->is_written = true;
    return 0;
}

static int64_t restore_rows(struct era *era, struct scope *scope, struct reader *value) {
    int64_t n = next_array(value);
    for (int64_t i = 0; i < n && value->at >= 0; i++) {
        struct row *row = names_find(&era->names, name_at(next_name(value)));
        if (!row || row->index >= 0)
            return STATISTICS_NOT_WHOLE;
        give_row(era, scope, row);
    }
    return 0;
}

static const struct row *row_numbered(const struct scope *scope, int64_t index) {
    const struct row *row = scope->rows;
    while (row && row->index != index)
        row = row->next;
    return row;
}

/* The name under which counting will look for a list. */
static struct name list_name(const struct scope *scope, int64_t policy,
                             const struct row *row, const uint32_t *items, int64_t n) {
    struct span none = {scope->set->key, 0};
    struct name name = row ? row->name
                           : name_of_row(scope->name, policy, n, none, none);
    if (!scope->set->is_growing) {
        uint8_t rows[2 * MOST_LISTED + 1];
        for (int64_t i = 0; i < n; i++) {
            rows[2 * i] = (uint8_t)items[i];
            rows[2 * i + 1] = (uint8_t)(items[i] >> 8);
        }
        return name_of_list(name, (struct span){rows, 2 * n});
    }
    name = name_of_list(name, none);
    for (int64_t i = 0; i < n; i++)
        name = name_with_item(name, *(struct span *)queue_at(&scope->set->items, items[i]));
    return name;
}

/* Groups rise, and so do their masks; no list is clicked more often than shown. */
static int64_t restore_groups(struct era *era, struct list *list, struct reader *value) {
    int64_t n = next_rows(value, 3), least = 0;
    for (int64_t i = 0; i < n && value->at >= 0; i++) {
        int64_t number = next_below(value, era->n_groups), n_clicked = 0, last = 0;
        struct group *group = &groups_of(list)[number];
        group->n = next_count(value);
        if (number < least || !group->n)
            return STATISTICS_NOT_WHOLE;
        least = number + 1;
        era->n_impressions += group->n;
        int64_t n_masks = next_rows(value, 2);
        for (int64_t j = 0; j < n_masks && value->at >= 0; j++) {
            int64_t mask = next_below(value, INT64_C(1) << list->length);
            uint32_t count = next_count(value);
            if (mask <= last || !count)
                return STATISTICS_NOT_WHOLE;
            struct mask *known = mask_of(&era->masks, group, (uint32_t)mask);
            if (!known)
                return STATISTICS_NOT_WHOLE;
            known->count = count;
            last = mask;
            n_clicked += count;
        }
        if (n_clicked > group->n)
            return STATISTICS_NOT_WHOLE;
    }
    return 0;
}

/* Whether lists of a policy are counted as lists without an exposure row. */
static bool has_bare_lists(int64_t policy) {
    return policy == POLICY_UNKNOWN || policy == POLICY_DETERMINISTIC ||
           policy == POLICY_TAIL_SHUFFLE || policy == POLICY_MULTILEAVE;
}

static int64_t restore_list(struct era *era, struct scope *scope, struct reader *value) {
    uint32_t items[MOST_LISTED + 1];
    const struct set *set = scope->set;
    int64_t most = set->is_growing ? (int64_t)set->items.n : INT64_C(1) << 16;
    int64_t row_is = next_number(value), n = next_array(value);
    if (n < 1 || n > MOST_LISTED || (row_is < 0 && !has_bare_lists(-1 - row_is)))
        return STATISTICS_NOT_WHOLE;
    for (int64_t i = 0; i < n; i++)
        items[i] = (uint32_t)next_below(value, most);
    const struct row *row = row_is >= 0 ? row_numbered(scope, row_is) : NULL;
    if (value->at < 0 || (row_is >= 0 && !row))
        return STATISTICS_NOT_WHOLE;
    struct name name = list_name(scope, -1 - row_is, row, items, n);
    if (names_find(&era->names, name))
        return STATISTICS_NOT_WHOLE;
    struct list *list = add_list(era, scope, name, items, (uint32_t)n);
    if (!list)
        return STATISTICS_NO_MEMORY;
    list->row = (int32_t)row_is;
    return restore_groups(era, list, value);
}

static int64_t restore_lists(struct era *era, struct scope *scope,
                             struct reader *value) {
    int64_t n = next_rows(value, 3), failure = 0;
    for (int64_t i = 0; i < n && !failure; i++)
        failure = restore_list(era, scope, value);
    return failure;
}

/* Rows of a table; the parts of their keys lie below `most`. */
static bool restore_table(struct keyed *table, struct shape shape, const int64_t *most,
                          struct reader *value) {
    int64_t n = next_rows(value, shape.n_parts + shape.n_narrow + shape.n_wide);
    for (int64_t i = 0; i < n && value->at >= 0; i++) {
        uint64_t key = 0;
        for (int part = 0; part < shape.n_parts; part++)
            key = key << shape.bits[part] | (uint64_t)next_below(value, most[part]);
        int64_t found = keyed_find(table, key, shape.width, UINT32_MAX);
        if (found != i) /* it was there before, or there is no memory */
            return false;
        int64_t *wide = (void *)((uint8_t *)keyed_at(table, (size_t)i, shape.width) + 8);
        uint32_t *narrow = (void *)(wide + shape.n_wide);
        for (int j = 0; j < shape.n_narrow; j++)
            narrow[j] = next_count(value);
        for (int j = 0; j < shape.n_wide; j++)
            wide[j] = next_below(value, INT64_MAX);
    }
    return true;
}

static const int64_t MOST_ITEMS = INT64_C(1) << ITEM_BITS, MOST_RANKS = 1 << RANK_BITS;

static int64_t restore_cell(struct era *era, struct scope *scope, int64_t group,
                            struct reader *value) {
    struct cell *cell = cell_of(era, scope, group);
    if (!cell)
        return STATISTICS_NO_MEMORY;
    if (next_array(value) != 5 || next_array(value) != N_TOTALS)
        return STATISTICS_NOT_WHOLE;
    for (int i = 0; i < N_TOTALS; i++)
        cell->totals[i] = next_below(value, INT64_MAX);
    era->n_impressions += cell->totals[IMPRESSIONS];
    const int64_t place[] = {MOST_ITEMS, MOST_RANKS};
    bool is_whole = restore_table(&cell->rows, ROWS, &scope->n_rows, value) &&
                    restore_table(&cell->pairs, PAIRS, place, value) &&
                    restore_table(&cell->sums, SUMS, place, value);
    const int64_t pair[] = {cell->pairs.n, cell->pairs.n};
    is_whole = is_whole && restore_table(&cell->click_pairs, CLICK_PAIRS, pair, value);
    return is_whole ? 0 : STATISTICS_NOT_WHOLE;
}

static int64_t restore_scope(struct place *place, struct reader *value) {
    struct era *era = place->era;
    struct scope *scope = scope_in(place);
    if (!scope)
        return STATISTICS_NO_MEMORY;
    if (scope->is_written || !scope->set->is_written)
        return STATISTICS_NOT_WHOLE;
    scope->flags = (uint8_t)next_below(value, 16);
    scope->last_ms = next_number(value);
    int64_t failure = restore_rows(era, scope, value);
    /* A number says how many pieces of lists there are. */
    bool has_pieces = msgpack_after_number(value->data, value->at, value->end) >= 0;
    if (has_pieces)
        scope->n_pieces = next_below(value, INT32_MAX);
    else if (!failure)
        failure = restore_lists(era, scope, value);
    int64_t n = failure ? 0 : next_rows(value, 2);
    for (int64_t i = 0; i < n && !failure && value->at >= 0; i++) {
        int64_t group = next_below(value, era->n_groups);
        failure = restore_cell(era, scope, group, value);
    }
    n = failure ? 0 : next_array(value);
    scope->is_apart = n > 0;
    for (int64_t i = 0; i < n && value->at >= 0 && !failure; i++) {
        if (!cell_of(era, scope, next_below(value, era->n_groups)))
            failure = STATISTICS_NO_MEMORY;
    }
    scope->is_written = true;
    const int64_t reward[] = {era->n_groups, MOST_CLASSES, MOST_ITEMS, MOST_RANKS};
    if (!failure && !restore_table(&scope->rewards, REWARDS, reward, value))
        failure = STATISTICS_NOT_WHOLE;
    return failure;
}

static int64_t restore_piece(struct place *place, struct reader *value) {
    struct scope *scope = scope_in(place);
    if (!scope)
        return STATISTICS_NO_MEMORY;
    struct cell *cell = scope->is_apart ? scope->cells[place->piece] : NULL;
    if (!cell || cell->is_written)
        return STATISTICS_NOT_WHOLE;
    cell->is_written = true;
    return restore_cell(place->era, scope, place->piece, value);
}

/* Lists come behind those of the pieces before. */
static int64_t restore_list_piece(const struct statistics *statistics,
                                  struct place *place, struct reader *value) {
    struct scope *scope = scope_in(place);
    if (!scope)
        return STATISTICS_NO_MEMORY;
    if (place->piece >= scope->n_pieces ||
        scope->n_lists != place->piece * statistics->piece_lists)
        return STATISTICS_NOT_WHOLE;
    return restore_lists(place->era, scope, value);
}

static int64_t restore_one(struct statistics *statistics, struct reader *key,
                           struct reader *value) {
    struct place place = {0};
    int64_t failure = read_key(statistics, key, &place);
    if (failure)
        return failure;
    if (next_array(value) < 2 || next_number(value) != SCHEMA)
        return STATISTICS_NOT_WHOLE;
    if (is_kind(place.kind, "set"))
        failure = restore_set(&place, value);
    else if (is_kind(place.kind, "row"))
        failure = restore_row(&place, value);
    else if (is_kind(place.kind, "scope"))
        failure = restore_scope(&place, value);
    else if (is_kind(place.kind, "lists"))
        failure = restore_list_piece(statistics, &place, value);
    else
        failure = restore_piece(&place, value);
    return !failure && value->at != value->end ? STATISTICS_NOT_WHOLE : failure;
}

int64_t statistics_restore(struct statistics *statistics, const uint8_t *bytes,
                           const int64_t *ends, int64_t n) {
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        /* Places count from the start of each: nothing before it can be reached. */
        struct reader key = {bytes + at, 0, ends[2 * i] - at};
        struct reader value = {bytes + ends[2 * i], 0, ends[2 * i + 1] - ends[2 * i]};
        int64_t failure = restore_one(statistics, &key, &value);
        if (failure)
            return failure;
        at = ends[2 * i + 1];
    }
    return 0;
}

static bool awaits_none(const struct statistics *statistics, const struct era *era) {
    for (const struct scope *scope = era->scopes; scope; scope = scope->next) {
        if (scope->n_pieces && scope->n_pieces != pieces_of(statistics, scope))
            return false;
        for (int64_t i = 0; scope->is_apart && i < era->n_groups; i++)
            if (scope->cells[i] && !scope->cells[i]->is_written)
                return false;
    }
    return true;
}

int64_t statistics_restored(const struct statistics *statistics) {
    int64_t n_impressions = statistics->numbers[N_LEFT];
    for (size_t i = 0; i < statistics->eras.n; i++) {
        const struct era *era = *(struct era **)queue_at(&statistics->eras, i);
        n_impressions += era->n_impressions;
        if (!awaits_none(statistics, era))
            return STATISTICS_NOT_WHOLE;
    }
    bool is_whole = n_impressions == statistics->numbers[N_TAKEN];
    return is_whole ? 0 : STATISTICS_NOT_WHOLE;
}

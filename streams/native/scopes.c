#include "scopes.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_BITS = 15, CHUNK_MASKS = 1 << CHUNK_BITS };

const uint8_t OPEN_SET[NAME_BYTES] = {0};
const uint8_t OVERFLOW_SET[NAME_BYTES] = {255, 255, 255, 255, 255, 255, 255, 255,
                                          255, 255, 255, 255, 255, 255, 255, 255};

/* A copy of bytes that stays where it is; false if there is no memory. */
static bool keep(struct era *era, struct span from, struct span *to) {
    uint8_t *copy = arena_take(&era->arena, (size_t)from.n + 1);
    if (copy)
        memcpy(copy, from.bytes, (size_t)from.n);
    *to = (struct span){copy, from.n};
    return copy != NULL;
}

/* Kinds of names begin apart. */
static struct name seed_of(uint64_t kind) {
    return (struct name){kind * UINT64_C(0x9E3779B97F4A7C15),
                         kind * UINT64_C(0xC2B2AE3D27D4EB4F)};
}

static struct name named(struct span text, struct name seed) {
    return hashed(text.bytes, text.n, seed);
}

static struct name with_number(struct name name, int64_t number) {
    uint64_t word = (uint64_t)number * UINT64_C(0xD6E8FEB86659FD93);
    return (struct name){folded(name.first ^ word, UINT64_C(0x9E3779B97F4A7C15)),
                         folded(name.second, word ^ UINT64_C(0xC2B2AE3D27D4EB4F))};
}

void put_name(struct name name, uint8_t key[NAME_BYTES]) {
    for (int i = 0; i < 8; i++) {
        key[i] = (uint8_t)(name.first >> (8 * i));
        key[8 + i] = (uint8_t)(name.second >> (8 * i));
    }
}

void key_of_set(struct span candidates, uint8_t key[NAME_BYTES]) {
    put_name(named(candidates, seed_of(1)), key);
}

static struct name name_of_query(struct span query) { return named(query, seed_of(2)); }

static struct name name_of_set(struct span query, const uint8_t key[NAME_BYTES]) {
    return hashed(key, NAME_BYTES, named(query, seed_of(3)));
}

static struct name name_of_intervention(struct span query, struct span intervention) {
    return named(intervention, named(query, seed_of(4)));
}

struct name name_of_scope(struct span query, const uint8_t key[NAME_BYTES],
                          struct span intervention) {
    return named(intervention, hashed(key, NAME_BYTES, named(query, seed_of(5))));
}

struct name name_of_row(struct name scope, int64_t policy, int64_t n_ranks,
                        struct span material, struct span items) {
    struct name name = with_number(with_number(scope, policy), n_ranks);
    name = material.n ? named(material, name) : name;
    return items.n ? named(items, name) : name;
}

struct name name_of_list(struct name row, struct span rows) {
    return named(rows, with_number(row, 6));
}

struct name name_with_item(struct name list, struct span item) {
    return named(item, with_number(list, 7));
}

static struct query *query_of(struct era *era, struct span id) {
    struct name name = name_of_query(id);
    struct query *query = names_find(&era->names, name);
    if (query)
        return query;
    query = arena_take(&era->arena, sizeof *query);
    if (!query || !keep(era, id, &query->id))
        return NULL;
    query->name = name;
    names_add(&era->names, &query->name);
    return query;
}

/* Room for all names that one impression can bring beside its items. */
static bool has_room(struct era *era) { return names_reserve(&era->names, 8); }

struct set *set_of(struct era *era, struct span query, const uint8_t key[NAME_BYTES],
                   struct span candidates) {
    if (!has_room(era))
        return NULL;
    struct name name = name_of_set(query, key);
    struct set *set = names_find(&era->names, name);
    if (set)
        return set;
    bool is_open = memcmp(key, OPEN_SET, NAME_BYTES) == 0;
    bool is_beyond = memcmp(key, OVERFLOW_SET, NAME_BYTES) == 0;
    struct query *owner = query_of(era, query);
    set = owner ? arena_take(&era->arena, sizeof *set) : NULL;
    if (!set)
        return NULL;
    set->name = name;
    set->query = owner;
    set->items.width = sizeof(struct span);
    set->is_growing = is_open || is_beyond;
    set->is_changed = true;
    memcpy(set->key, key, NAME_BYTES);
    if (!set->is_growing && !keep(era, candidates, &set->candidates))
        return NULL;
    owner->n_sets += !is_beyond;
    set->next = era->sets;
    era->sets = set;
    names_add(&era->names, &set->name);
    return set;
}

const struct set *find_set(const struct era *era, struct span query,
                           const uint8_t key[NAME_BYTES]) {
    return names_find(&era->names, name_of_set(query, key));
}

struct scope *scope_of(struct era *era, struct set *set, struct span intervention) {
    struct span query = set->query->id;
    struct name name = name_of_scope(query, set->key, intervention);
    struct scope *scope = names_find(&era->names, name);
    if (scope)
        return scope;
    scope = has_room(era) ? arena_take(&era->arena, sizeof *scope) : NULL;
    if (!scope || !keep(era, intervention, &scope->intervention))
        return NULL;
    scope->name = name;
    scope->set = set;
    scope->last_ms = INT64_MIN;
    scope->rewards.n_bytes = &era->n_bytes;
    if (memcmp(set->key, OVERFLOW_SET, NAME_BYTES) == 0) {
        scope->flags = IS_CAPPED;
    } else {
        struct name one = name_of_intervention(query, intervention);
        if (!names_find(&era->names, one)) {
            struct name *known = arena_take(&era->arena, sizeof *known);
            if (!known)
                return NULL;
            *known = one;
            names_add(&era->names, known);
            set->query->n_interventions++;
        }
    }
    scope->next = era->scopes;
    era->scopes = scope;
    era->n_scopes++;
    names_add(&era->names, &scope->name);
    return scope;
}

bool is_full(const struct era *era, struct span query, const uint8_t key[NAME_BYTES],
             struct span intervention, const struct limits_of_scopes *limits) {
    if (!era->names.n_used)
        return false;
    const struct query *known = names_find(&era->names, name_of_query(query));
    if (!known)
        return false;
    if (known->n_sets >= limits->sets &&
        !names_find(&era->names, name_of_set(query, key)))
        return true;
    return known->n_interventions >= limits->interventions &&
           !names_find(&era->names, name_of_intervention(query, intervention));
}

int64_t number_of_item(struct era *era, struct set *set, struct span item) {
    struct name name = named(item, with_number(set->name, 8));
    const struct item *known = names_find(&era->names, name);
    if (known)
        return known->number;
    size_t capacity = set->items.capacity;
    struct item *new = arena_take(&era->arena, sizeof *new);
    struct span text;
    if (!new || !keep(era, item, &text) || !names_reserve(&era->names, 1) ||
        !queue_reserve(&set->items, 1))
        return -1;
    *new = (struct item){name, (uint32_t)set->items.n};
    era->n_bytes += (int64_t)((set->items.capacity - capacity) * set->items.width);
    *(struct span *)queue_push(&set->items) = text;
    names_add(&era->names, &new->name);
    set->is_changed = true;
    return new->number;
}

struct row *add_row(struct era *era, struct name name, int64_t policy, int64_t n_ranks,
                    struct span material, struct span items) {
    struct row *row = has_room(era) ? arena_take(&era->arena, sizeof *row) : NULL;
    if (!row || !keep(era, material, &row->material) || !keep(era, items, &row->items))
        return NULL;
    row->name = name;
    row->policy = policy;
    row->n_ranks = n_ranks;
    row->index = -1;
    names_add(&era->names, &row->name);
    return row;
}

void give_row(struct era *era, struct scope *scope, struct row *row) {
    era->n_rows++;
    row->index = scope->n_rows++;
    if (scope->last_row)
        scope->last_row->next = row;
    else
        scope->rows = row;
    scope->last_row = row;
}

struct list *add_list(struct era *era, struct scope *scope, struct name name,
                      const uint32_t *items, uint32_t length) {
    size_t n_bytes = sizeof(struct list) + length * sizeof *items;
    n_bytes += (size_t)era->n_groups * sizeof(struct group);
    struct list *list = has_room(era) ? arena_take(&era->arena, n_bytes) : NULL;
    if (!list)
        return NULL;
    list->name = name;
    list->scope = scope;
    list->length = (uint16_t)length;
    memcpy(list->items, items, length * sizeof *items);
    if (scope->last_list)
        scope->last_list->next = list;
    else
        scope->lists = list;
    scope->last_list = list;
    scope->n_lists++;
    era->n_lists++;
    names_add(&era->names, &list->name);
    return list;
}

struct cell *cell_of(struct era *era, struct scope *scope, int64_t group) {
    size_t n_bytes = (size_t)era->n_groups * sizeof(struct cell *);
    if (!scope->cells)
        scope->cells = arena_take(&era->arena, n_bytes);
    if (!scope->cells)
        return NULL;
    if (!scope->cells[group]) {
        struct cell *cell = arena_take(&era->arena, sizeof *cell);
        if (!cell)
            return NULL;
        cell->rows.n_bytes = cell->pairs.n_bytes = &era->n_bytes;
        cell->sums.n_bytes = cell->click_pairs.n_bytes = &era->n_bytes;
        scope->cells[group] = cell;
    }
    return scope->cells[group];
}

struct mask *masks_at(const struct masks *masks, uint32_t place) {
    struct mask *chunk =
        *(struct mask **)queue_at(&masks->chunks, place >> CHUNK_BITS);
    return chunk + (place & (CHUNK_MASKS - 1));
}

/* A block of 2^power masks, or 0. */
static uint32_t take_block(struct masks *masks, int power) {
    uint32_t place = masks->left[power], size = UINT32_C(1) << power;
    if (place) {
        masks->left[power] = masks_at(masks, place)->mask;
        return place;
    }
    /* No block lies in two chunks. */
    place = (masks->end + size - 1) & ~(size - 1);
    place = place ? place : size;
    if (place >> CHUNK_BITS >= masks->chunks.n) {
        if (masks->chunks.n == UINT32_MAX >> CHUNK_BITS)
            return 0;
        struct mask *chunk = calloc(CHUNK_MASKS, sizeof *chunk);
        if (!chunk || !queue_reserve(&masks->chunks, 1)) {
            free(chunk);
            return 0;
        }
        *(struct mask **)queue_push(&masks->chunks) = chunk;
    }
    masks->end = place + size;
    return place;
}

bool masks_are_full(const struct masks *masks, const struct group *group) {
    return group->masks && masks_at(masks, group->masks)->count == MOST_MASKS;
}

struct mask *mask_of(struct masks *masks, struct group *group, uint32_t mask) {
    struct mask *block = group->masks ? masks_at(masks, group->masks) : NULL;
    uint32_t n = block ? block->count : 0;
    for (uint32_t i = 1; i <= n; i++)
        if (block[i].mask == mask)
            return &block[i];
    if (n == MOST_MASKS)
        return NULL;
    /* The head and `n` masks fill a power of two: it is time for a larger block. */
    if (((n + 1) & n) == 0) {
        int power = 1;
        while (UINT32_C(1) << power < n + 2)
            power++;
        uint32_t place = take_block(masks, power);
        if (!place)
            return NULL;
        struct mask *larger = masks_at(masks, place);
        memset(larger, 0, sizeof *larger << power);
        if (block) {
            memcpy(larger, block, (n + 1) * sizeof *block);
            block->mask = masks->left[power - 1];
            masks->left[power - 1] = group->masks;
        }
        group->masks = place;
        block = larger;
    }
    block->count = n + 1;
    block[n + 1] = (struct mask){mask, 0};
    return &block[n + 1];
}

bool scope_changed(struct era *era, struct scope *scope) {
    if (scope->is_changed)
        return true;
    if (!queue_reserve(&era->changed, 1))
        return false;
    *(struct scope **)queue_push(&era->changed) = scope;
    scope->is_changed = true;
    return true;
}

struct era *era_new(int64_t number, int64_t n_groups) {
    struct era *era = calloc(1, sizeof *era);
    if (!era)
        return NULL;
    era->number = number;
    era->n_groups = n_groups;
    era->masks.chunks.width = sizeof(struct mask *);
    era->changed.width = sizeof(struct scope *);
    if (has_room(era))
        return era;
    free(era);
    return NULL;
}

int64_t era_bytes(const struct era *era) {
    size_t n_masks = era->masks.chunks.n * CHUNK_MASKS;
    return era->arena.n_bytes + era->n_bytes +
           (int64_t)(era->names.n_slots * sizeof *era->names.slots) +
           (int64_t)(n_masks * sizeof(struct mask));
}

static void free_cell(struct cell *cell) {
    keyed_free(&cell->pairs);
    keyed_free(&cell->sums);
    keyed_free(&cell->click_pairs);
    keyed_free(&cell->rows);
}

void era_free(struct era *era) {
    for (struct set *set = era->sets; set; set = set->next)
        free(set->items.rows);
    for (struct scope *scope = era->scopes; scope; scope = scope->next) {
        keyed_free(&scope->rewards);
        for (int64_t i = 0; scope->cells && i < era->n_groups; i++)
            if (scope->cells[i])
                free_cell(scope->cells[i]);
    }
    for (size_t i = 0; i < era->masks.chunks.n; i++)
        free(*(struct mask **)queue_at(&era->masks.chunks, i));
    free(era->masks.chunks.rows);
    free(era->changed.rows);
    free(era->names.slots);
    arena_free(&era->arena);
    free(era);
}

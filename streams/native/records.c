/* Scopes as records of the topic `statistics`; `docs/topics.md` has their layout. */
#include <stdlib.h>
#include <string.h>

#include "encode.h"
#include "statistics.h"

/* A scope whose cells have more pairs has a record for each of them. */
enum { MOST_TOGETHER = 256 };

/* No number and no head takes more. */
enum { MOST_NUMBER = 16 };

static uint8_t *room_in(struct buffer *buffer, size_t n_more) {
    if (buffer->n + n_more > buffer->capacity) {
        size_t capacity = 2 * (buffer->n + n_more) + 4096;
        uint8_t *bytes = buffer->has_failed ? NULL : realloc(buffer->bytes, capacity);
        if (!bytes) {
            buffer->has_failed = true;
            return NULL;
        }
        buffer->bytes = bytes;
        buffer->capacity = capacity;
    }
    return buffer->bytes + buffer->n;
}

static void number(struct buffer *buffer, int64_t value) {
    uint8_t *at = room_in(buffer, MOST_NUMBER);
    if (at)
        buffer->n += (size_t)(put_number(at, value) - at);
}

static void array(struct buffer *buffer, size_t length) {
    uint8_t *at = room_in(buffer, MOST_NUMBER);
    if (at)
        buffer->n += (size_t)(put_array(at, length) - at);
}

static void raw(struct buffer *buffer, const uint8_t *bytes, size_t n) {
    uint8_t *at = room_in(buffer, n + MOST_NUMBER);
    if (at && n)
        memcpy(at, bytes, n);
    if (at)
        buffer->n += n;
}

/* The head of a string (0xA0, 0xD9) or of binary data (no short form, 0xC4). */
static void span(struct buffer *buffer, const uint8_t *bytes, size_t n, int is_binary) {
    uint8_t *at = room_in(buffer, MOST_NUMBER);
    if (!at)
        return;
    uint8_t first = is_binary ? 0xC4 : 0xD9;
    if (!is_binary && n < 32)
        *at++ = (uint8_t)(0xA0 | n);
    else if (n < 1 << 8)
        *at++ = first, at = put_big_endian(at, n, 1);
    else if (n < 1 << 16)
        *at++ = first + 1, at = put_big_endian(at, n, 2);
    else
        *at++ = first + 2, at = put_big_endian(at, n, 4);
    buffer->n = (size_t)(at - buffer->bytes);
    raw(buffer, bytes, n);
}

static void string(struct buffer *buffer, struct span text) {
    span(buffer, text.bytes, (size_t)text.n, 0);
}

static void binary(struct buffer *buffer, struct span bytes) {
    span(buffer, bytes.bytes, (size_t)bytes.n, 1);
}

static void name_of(struct buffer *buffer, const struct row *row) {
    uint8_t key[NAME_BYTES];
    put_name(row->name, key);
    binary(buffer, (struct span){key, NAME_BYTES});
}

static void begin_key(struct buffer *buffer, size_t length, const char *kind,
                      const struct set *set) {
    array(buffer, length);
    string(buffer, (struct span){(const uint8_t *)kind, (int64_t)strlen(kind)});
    string(buffer, set->query->id);
    binary(buffer, (struct span){set->key, NAME_BYTES});
}

static void set_key(struct buffer *buffer, const struct era *era, const struct set *set) {
    begin_key(buffer, 4, "set", set);
    number(buffer, era->number);
}

static void scope_key(struct buffer *buffer, const struct era *era,
                      const struct scope *scope, const char *kind, size_t length) {
    begin_key(buffer, length, kind, scope->set);
    string(buffer, scope->intervention);
    number(buffer, era->number);
}

static void row_key(struct buffer *buffer, const struct era *era,
                    const struct scope *scope, const struct row *row) {
    scope_key(buffer, era, scope, "row", 6);
    name_of(buffer, row);
}

/* The piece of a group, or a numbered one of lists. */
static void piece_key(struct buffer *buffer, const struct era *era,
                      const struct scope *scope, const char *kind, int64_t piece) {
    scope_key(buffer, era, scope, kind, 6);
    number(buffer, piece);
}

/* Begins a value, and says where its key ended. */
static size_t begin_value(struct buffer *buffer, size_t length) {
    size_t key_end = buffer->n;
    array(buffer, length);
    number(buffer, SCHEMA);
    return key_end;
}

/* Ends a record, of which the key ended before. */
static void end_record(struct statistics *statistics, size_t key_end) {
    struct buffer *buffer = &statistics->buffer;
    if (!queue_reserve(&statistics->records, 1)) {
        buffer->has_failed = true;
        return;
    }
    *(struct record *)queue_push(&statistics->records) =
        (struct record){(int64_t)key_end, (int64_t)buffer->n};
}

static void write_set(struct statistics *statistics, const struct era *era,
                      struct set *set) {
    struct buffer *buffer = &statistics->buffer;
    set_key(buffer, era, set);
    size_t key_end = begin_value(buffer, 2);
    if (set->is_growing)
        array(buffer, set->items.n);
    else
        raw(buffer, set->candidates.bytes, (size_t)set->candidates.n);
    for (size_t i = 0; i < set->items.n; i++)
        string(buffer, *(struct span *)queue_at(&set->items, i));
    end_record(statistics, key_end);
    set->is_changed = false;
    set->is_written = true;
}

static void write_row(struct statistics *statistics, const struct era *era,
                      const struct scope *scope, struct row *row) {
    struct buffer *buffer = &statistics->buffer;
    row_key(buffer, era, scope, row);
    size_t key_end = begin_value(buffer, 5);
    number(buffer, row->policy);
    number(buffer, row->n_ranks);
    binary(buffer, row->material);
    binary(buffer, row->items);
    end_record(statistics, key_end);
    row->is_written = true;
}

struct ordered {
    uint64_t key, value;
};

static int by_key(const void *left, const void *right) {
    const struct ordered *one = left, *other = right;
    return (one->key > other->key) - (one->key < other->key);
}

/* Rows of a table by key, and where each lies. Keys of two rows become those of their
 * places, where these are given. */
static const struct ordered *sorted(struct statistics *statistics,
                                    const struct keyed *table, size_t width,
                                    const uint32_t *places) {
    struct ordered *rows = room_for(&statistics->sorted, table->n, sizeof *rows);
    statistics->buffer.has_failed |= !rows;
    for (size_t i = 0; rows && i < table->n; i++) {
        memcpy(&rows[i].key, keyed_at(table, i, width), sizeof rows[i].key);
        rows[i].value = i;
        if (places) {
            uint64_t one = places[rows[i].key >> 32];
            uint64_t two = places[rows[i].key & UINT32_MAX];
            rows[i].key = one < two ? one << 32 | two : two << 32 | one;
        }
    }
    if (rows)
        qsort(rows, table->n, sizeof *rows, by_key);
    return rows;
}

static void write_table(struct statistics *statistics, const struct keyed *table,
                        struct shape shape, const uint32_t *places) {
    struct buffer *buffer = &statistics->buffer;
    const struct ordered *rows = sorted(statistics, table, shape.width, places);
    int n_columns = shape.n_parts + shape.n_narrow + shape.n_wide;
    array(buffer, (size_t)n_columns * table->n);
    for (size_t i = 0; rows && i < table->n; i++) {
        const uint8_t *wide = keyed_at(table, rows[i].value, shape.width);
        wide += sizeof rows[i].key;
        const uint8_t *narrow = wide + 8 * shape.n_wide;
        uint64_t key = rows[i].key;
        int n_bits = 0;
        for (int part = 0; part < shape.n_parts; part++)
            n_bits += shape.bits[part];
        for (int part = 0; part < shape.n_parts; part++) {
            n_bits -= shape.bits[part];
            uint64_t mask = (UINT64_C(1) << shape.bits[part]) - 1;
            number(buffer, (int64_t)(key >> n_bits & mask));
        }
        for (int j = 0; j < shape.n_narrow; j++)
            number(buffer, *((const uint32_t *)(const void *)narrow + j));
        for (int j = 0; j < shape.n_wide; j++)
            number(buffer, *((const int64_t *)(const void *)wide + j));
    }
}

static void write_masks(struct buffer *buffer, const struct masks *masks,
                        const struct group *group) {
    struct ordered rows[MOST_MASKS];
    const struct mask *block = group->masks ? masks_at(masks, group->masks) : NULL;
    size_t n = block ? block->count : 0;
    for (size_t i = 0; i < n; i++)
        rows[i] = (struct ordered){block[i + 1].mask, block[i + 1].count};
    qsort(rows, n, sizeof *rows, by_key);
    array(buffer, 2 * n);
    for (size_t i = 0; i < n; i++) {
        number(buffer, (int64_t)rows[i].key);
        number(buffer, (int64_t)rows[i].value);
    }
}

static void write_list(struct buffer *buffer, const struct era *era,
                       const struct list *list) {
    number(buffer, list->row);
    array(buffer, list->length);
    for (uint32_t i = 0; i < list->length; i++)
        number(buffer, list->items[i]);
    const struct group *groups = groups_of(list);
    size_t n = 0;
    for (int64_t i = 0; i < era->n_groups; i++)
        n += groups[i].n > 0;
    array(buffer, 3 * n);
    for (int64_t i = 0; i < era->n_groups; i++) {
        if (!groups[i].n)
            continue;
        number(buffer, i);
        number(buffer, groups[i].n);
        write_masks(buffer, &era->masks, &groups[i]);
    }
}

static void write_cell(struct statistics *statistics, struct cell *cell) {
    struct buffer *buffer = &statistics->buffer;
    array(buffer, 5);
    array(buffer, N_TOTALS);
    for (int i = 0; i < N_TOTALS; i++)
        number(buffer, cell->totals[i]);
    write_table(statistics, &cell->rows, ROWS, NULL);
    write_table(statistics, &cell->pairs, PAIRS, NULL);
    const struct ordered *rows = statistics->sorted.bytes;
    uint32_t *places = room_for(&statistics->pairs, cell->pairs.n, sizeof *places);
    buffer->has_failed |= !places;
    if (buffer->has_failed)
        return;
    for (uint32_t i = 0; i < cell->pairs.n; i++)
        places[rows[i].value] = i;
    write_table(statistics, &cell->sums, SUMS, NULL);
    write_table(statistics, &cell->click_pairs, CLICK_PAIRS, places);
    cell->is_changed = false;
}

/* Cells of a scope, and their pairs. */
static size_t cells_of(const struct era *era, const struct scope *scope,
                       size_t *n_pairs) {
    size_t n = 0;
    *n_pairs = 0;
    for (int64_t i = 0; scope->cells && i < era->n_groups; i++) {
        if (scope->cells[i]) {
            n++;
            *n_pairs += scope->cells[i]->pairs.n;
        }
    }
    return n;
}

/* The cells, in the record of the scope or each in its own. */
static void write_cells(struct statistics *statistics, const struct era *era,
                        const struct scope *scope, bool is_apart) {
    struct buffer *buffer = &statistics->buffer;
    for (int64_t i = 0; scope->cells && i < era->n_groups; i++) {
        struct cell *cell = scope->cells[i];
        if (!cell || (is_apart && !cell->is_changed && cell->is_written))
            continue;
        if (!is_apart) {
            number(buffer, i);
            write_cell(statistics, cell);
            continue;
        }
        piece_key(buffer, era, scope, "piece", i);
        size_t key_end = begin_value(buffer, 2);
        write_cell(statistics, cell);
        end_record(statistics, key_end);
        cell->is_written = true;
    }
}

/* The lists, if they are few and never were many; else how many pieces they are. */
static bool write_lists(struct statistics *statistics, const struct era *era,
                        const struct scope *scope) {
    struct buffer *buffer = &statistics->buffer;
    size_t start = buffer->n, most = (size_t)statistics->head_bytes;
    if (!scope->n_pieces) {
        array(buffer, 3 * (size_t)scope->n_lists);
        for (const struct list *list = scope->lists; list; list = list->next)
            write_list(buffer, era, list);
        if (buffer->n - start <= most)
            return false;
        buffer->n = start;
    }
    number(buffer, pieces_of(statistics, scope));
    return true;
}

/* The pieces in which a list changed; all where lists begin to lie apart. */
static void write_pieces(struct statistics *statistics, const struct era *era,
                         struct scope *scope) {
    struct buffer *buffer = &statistics->buffer;
    struct list *first = scope->lists, *end;
    int64_t piece = 0;
    for (; first; first = end, piece++) {
        bool is_changed = piece >= scope->n_pieces;
        size_t n = 0;
        for (end = first; end && n < (size_t)statistics->piece_lists; end = end->next) {
            is_changed |= end->is_changed;
            n++;
        }
        if (!is_changed)
            continue;
        piece_key(buffer, era, scope, "lists", piece);
        size_t key_end = begin_value(buffer, 2);
        array(buffer, 3 * n);
        for (struct list *list = first; list != end; list = list->next) {
            write_list(buffer, era, list);
            list->is_changed = false;
        }
        end_record(statistics, key_end);
    }
    scope->n_pieces = piece;
}

static void write_scope(struct statistics *statistics, const struct era *era,
                        struct scope *scope) {
    struct buffer *buffer = &statistics->buffer;
    size_t n_pairs, n_cells = cells_of(era, scope, &n_pairs);
    scope->is_apart |= n_pairs > MOST_TOGETHER;
    scope_key(buffer, era, scope, "scope", 5);
    size_t key_end = begin_value(buffer, 8);
    number(buffer, scope->flags);
    number(buffer, scope->last_ms);
    array(buffer, (size_t)scope->n_rows);
    for (const struct row *row = scope->rows; row; row = row->next)
        name_of(buffer, row);
    bool has_pieces = write_lists(statistics, era, scope);
    array(buffer, scope->is_apart ? 0 : 2 * n_cells);
    if (!scope->is_apart)
        write_cells(statistics, era, scope, false);
    array(buffer, scope->is_apart ? n_cells : 0);
    for (int64_t i = 0; scope->is_apart && i < era->n_groups; i++)
        if (scope->cells[i])
            number(buffer, i);
    write_table(statistics, &scope->rewards, REWARDS, NULL);
    end_record(statistics, key_end);
    if (has_pieces)
        write_pieces(statistics, era, scope);
    if (scope->is_apart)
        write_cells(statistics, era, scope, true);
    for (struct row *row = scope->rows; row; row = row->next)
        if (!row->is_written)
            write_row(statistics, era, scope, row);
    if (scope->set->is_changed)
        write_set(statistics, era, scope->set);
    scope->is_changed = false;
    scope->is_written = true;
}

bool write_changes(struct statistics *statistics) {
    for (size_t i = 0; i < statistics->eras.n; i++) {
        struct era *era = *(struct era **)queue_at(&statistics->eras, i);
        for (size_t j = 0; j < era->changed.n; j++)
            write_scope(statistics, era,
                        *(struct scope **)queue_at(&era->changed, j));
        queue_pop(&era->changed, era->changed.n);
    }
    return !statistics->buffer.has_failed;
}

bool write_tombstones(struct statistics *statistics, struct era *era) {
    struct buffer *buffer = &statistics->buffer;
    for (const struct set *set = era->sets; set; set = set->next) {
        if (set->is_written) {
            set_key(buffer, era, set);
            end_record(statistics, buffer->n);
        }
    }
    for (const struct scope *scope = era->scopes; scope; scope = scope->next) {
        if (!scope->is_written)
            continue;
        scope_key(buffer, era, scope, "scope", 5);
        end_record(statistics, buffer->n);
        for (const struct row *row = scope->rows; row; row = row->next) {
            if (row->is_written) {
                row_key(buffer, era, scope, row);
                end_record(statistics, buffer->n);
            }
        }
        for (int64_t i = 0; i < scope->n_pieces; i++) {
            piece_key(buffer, era, scope, "lists", i);
            end_record(statistics, buffer->n);
        }
        for (int64_t i = 0; scope->cells && i < era->n_groups; i++) {
            if (scope->cells[i] && scope->cells[i]->is_written) {
                piece_key(buffer, era, scope, "piece", i);
                end_record(statistics, buffer->n);
            }
        }
    }
    return !buffer->has_failed;
}

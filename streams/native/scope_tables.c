/* Records of scopes, as `records.c` writes them, into flat tables.
 *
 * The rules are those of `models.counts.scope_record`, which says in words what is
 * wrong where one is broken. */
#include "scope_tables.h"

#include <string.h>

#include "msgpack.h"
#include "reader.h"

enum { SCHEMA_OF_SCOPES = 2, LONGEST_LIST = 32, LEAST_POLICY_ROW = -6, MOST_WIDTH = 10 };

static const int WIDTHS[N_SCOPE_TABLES] = {4, 2, 2, 3, 1, 3, 3, 8, 4, 10, 8, 7, 6};

/* What is read, and where rows go. */
struct pass {
    struct reader from;
    int64_t *const *tables;
    int64_t *sizes;
    int64_t scope, n_rows; /* n_rows: exposure rows that the head names */
};

static int64_t positive(struct pass *pass) {
    int64_t read = next_below(&pass->from, INT64_MAX);
    if (!read)
        pass->from.at = -1;
    return read;
}

static void put(struct pass *pass, enum scope_table table, const int64_t *row) {
    int64_t n = pass->sizes[table]++;
    if (pass->tables)
        memcpy(pass->tables[table] + n * WIDTHS[table], row,
               (size_t)WIDTHS[table] * sizeof *row);
}

/* Whether the first numbers of a row are beyond those of the last one. */
static bool is_beyond(const int64_t *row, const int64_t *last, int n_keys) {
    for (int i = 0; i < n_keys; i++)
        if (row[i] != last[i])
            return row[i] > last[i];
    return false;
}

/* Rows of `n_columns` numbers from 0 up, sorted by the first `n_keys`; each goes
 * behind scope and group if `group` is one. Returns how many there are. */
static int64_t table(struct pass *pass, enum scope_table which, int64_t group,
                     int n_columns, int n_keys) {
    int n_before = group < 0 ? 1 : 2;
    int64_t row[MOST_WIDTH] = {pass->scope, group}, last[MOST_WIDTH] = {-1};
    int64_t n = next_rows(&pass->from, n_columns);
    for (int64_t i = 0; i < n && pass->from.at >= 0; i++) {
        for (int j = 0; j < n_columns; j++)
            row[n_before + j] = next_below(&pass->from, INT64_MAX);
        if (!is_beyond(row + n_before, last, n_keys))
            pass->from.at = -1;
        memcpy(last, row + n_before, (size_t)n_keys * sizeof *row);
        if (pass->from.at >= 0)
            put(pass, which, row);
    }
    return n;
}

/* Pairs of places of the last `n_pairs` pairs, as items and ranks. */
static void click_pairs(struct pass *pass, int64_t group, int64_t n_pairs) {
    int64_t n = next_rows(&pass->from, 3), last[] = {-1, -1};
    const int64_t *pairs = NULL;
    if (pass->tables)
        pairs = pass->tables[CELL_PAIRS] +
                (pass->sizes[CELL_PAIRS] - n_pairs) * WIDTHS[CELL_PAIRS];
    for (int64_t i = 0; i < n && pass->from.at >= 0; i++) {
        int64_t places[2];
        places[0] = next_below(&pass->from, n_pairs);
        places[1] = next_below(&pass->from, n_pairs);
        int64_t count = next_below(&pass->from, INT64_MAX);
        if (pass->from.at < 0 || places[0] >= places[1] || !is_beyond(places, last, 2)) {
            pass->from.at = -1;
            return;
        }
        memcpy(last, places, sizeof last);
        int64_t row[] = {pass->scope, group, 0, 0, 0, 0, count};
        for (int j = 0; pairs && j < 2; j++)
            memcpy(row + 2 + 2 * j, pairs + places[j] * WIDTHS[CELL_PAIRS] + 2,
                   2 * sizeof *row);
        put(pass, CELL_CLICKS, row);
    }
}

static void cell(struct pass *pass, int64_t group) {
    if (next_rows(&pass->from, 1) != 5)
        pass->from.at = -1;
    if (table(pass, CELL_TOTALS, group, 6, 6) != 1)
        pass->from.at = -1;
    int64_t n = next_rows(&pass->from, 2), last = -1;
    for (int64_t i = 0; i < n && pass->from.at >= 0; i++) {
        int64_t row[] = {pass->scope, group, 0, 0};
        row[2] = next_below(&pass->from, pass->n_rows);
        row[3] = next_below(&pass->from, INT64_MAX);
        if (row[2] <= last)
            pass->from.at = -1;
        last = row[2];
        if (pass->from.at >= 0)
            put(pass, CELL_ROWS, row);
    }
    int64_t n_pairs = table(pass, CELL_PAIRS, group, 8, 2);
    table(pass, CELL_SUMS, group, 6, 1);
    click_pairs(pass, group, n_pairs);
}

/* Masks of an entry, which is the last one; how many impressions they have. */
static int64_t masks(struct pass *pass, int64_t length) {
    int64_t n = next_rows(&pass->from, 2), n_clicked = 0, last = 0;
    for (int64_t i = 0; i < n && pass->from.at >= 0; i++) {
        int64_t row[] = {pass->sizes[ENTRIES], 0, 0};
        row[1] = next_below(&pass->from, INT64_C(1) << length);
        row[2] = next_below(&pass->from, INT32_MAX);
        if (row[1] <= last || !row[2])
            pass->from.at = -1;
        last = row[1];
        n_clicked += row[2];
        if (pass->from.at >= 0)
            put(pass, MASKS, row);
    }
    return n_clicked;
}

static void list(struct pass *pass) {
    int64_t row = next_number(&pass->from), group = -1;
    int64_t length = next_rows(&pass->from, 1);
    bool is_policy = row < 0 && row >= LEAST_POLICY_ROW && row != -2 && row != -5;
    if (pass->from.at < 0 || (!is_policy && (row < 0 || row >= pass->n_rows)) ||
        length < 1 || length > LONGEST_LIST) {
        pass->from.at = -1;
        return;
    }
    for (int64_t i = 0; i < length && pass->from.at >= 0; i++) {
        int64_t item = next_below(&pass->from, INT64_MAX);
        if (pass->from.at >= 0)
            put(pass, LIST_ITEMS, &item);
    }
    int64_t n = next_rows(&pass->from, 3);
    for (int64_t i = 0; i < n && pass->from.at >= 0; i++) {
        int64_t entry[] = {pass->sizes[LISTS], 0, 0};
        entry[1] = next_below(&pass->from, INT32_MAX);
        entry[2] = positive(pass);
        if (entry[1] <= group || masks(pass, length) > entry[2])
            pass->from.at = -1;
        group = entry[1];
        if (pass->from.at >= 0)
            put(pass, ENTRIES, entry);
    }
    int64_t found[] = {pass->scope, row, length};
    if (pass->from.at >= 0)
        put(pass, LISTS, found);
}

static void lists(struct pass *pass) {
    int64_t n = next_rows(&pass->from, 3);
    for (int64_t i = 0; i < n && pass->from.at >= 0; i++)
        list(pass);
}

static void row_names(struct pass *pass) {
    int64_t n = next_rows(&pass->from, 1);
    for (int64_t i = 0; i < n && pass->from.at >= 0; i++) {
        int64_t name[2];
        struct span text = next_text(&pass->from);
        if (text.n != (int64_t)sizeof name) {
            pass->from.at = -1;
            return;
        }
        memcpy(name, text.bytes, sizeof name);
        put(pass, ROW_NAMES, name);
    }
    pass->n_rows = n;
}

static void head(struct pass *pass) {
    int64_t found[4] = {0}, last = -1;
    found[0] = next_number(&pass->from);
    found[1] = next_number(&pass->from);
    row_names(pass);
    found[2] = pass->n_rows;
    bool is_apart = pass->from.at >= 0 &&
                    msgpack_after_number(pass->from.data, pass->from.at, pass->from.end) >= 0;
    if (is_apart)
        found[3] = next_below(&pass->from, INT32_MAX);
    else
        lists(pass);
    int64_t n = next_rows(&pass->from, 2);
    for (int64_t i = 0; i < n && pass->from.at >= 0; i++) {
        int64_t group = next_below(&pass->from, INT32_MAX);
        if (group <= last)
            pass->from.at = -1;
        last = group;
        cell(pass, group);
    }
    n = next_rows(&pass->from, 1);
    last = -1;
    for (int64_t i = 0; i < n && pass->from.at >= 0; i++) {
        int64_t apart[] = {pass->scope, 0};
        apart[1] = next_below(&pass->from, INT32_MAX);
        if (apart[1] <= last)
            pass->from.at = -1;
        last = apart[1];
        if (pass->from.at >= 0)
            put(pass, APART, apart);
    }
    table(pass, CELL_REWARDS, -1, 5, 4);
    if (pass->from.at >= 0)
        put(pass, HEADS, found);
}

int64_t fold_scope_tables(const uint8_t *bytes, const int64_t *ends,
                          const int64_t *places, int64_t n, int64_t *const *tables,
                          int64_t sizes[N_SCOPE_TABLES]) {
    struct pass pass = {.tables = tables, .sizes = sizes};
    int64_t start = 0;
    memset(sizes, 0, N_SCOPE_TABLES * sizeof *sizes);
    for (int64_t i = 0; i < n; i++) {
        const int64_t *place = places + 3 * i;
        pass.from.data = bytes + start;
        pass.from.at = 0;
        pass.from.end = ends[i] - start;
        pass.scope = place[1];
        int64_t length = next_rows(&pass.from, 1);
        if (length != (place[0] == KIND_HEAD ? 8 : 2) ||
            next_number(&pass.from) != SCHEMA_OF_SCOPES)
            return -1 - i;
        if (place[0] == KIND_HEAD)
            head(&pass);
        else if (place[0] == KIND_PIECE)
            cell(&pass, place[2]);
        else
            lists(&pass);
        if (pass.from.at != pass.from.end)
            return -1 - i;
        start = ends[i];
    }
    return 0;
}

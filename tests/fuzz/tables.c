/* Records of scopes that may be broken, into tables that end where they were measured.
 *
 * Pieces and lists come behind a head, the last that was taken: what they may name
 * stands there. */
#include "fuzzed.h"
#include "scope_tables.h"

static const int64_t WIDTHS[N_SCOPE_TABLES] = {4, 2, 2, 3, 1, 3, 3, 8, 4, 10, 8, 7, 6};

_Static_assert(SCOPE_TABLES + N_SCOPE_TABLES == N_USES, "a use for each table");

static uint8_t *head;
static size_t head_bytes;

static void keep_head(const uint8_t *data, int64_t end) {
    free(head);
    head_bytes = (size_t)end;
    head = malloc(head_bytes + 1);
    CHECK(head);
    memcpy(head, data, head_bytes);
}

/* What owns rows is there, and lists have as many items as they say. */
static void check_tables(int64_t *const *tables, const int64_t *sizes, int64_t n) {
    int64_t n_items = 0, n_shown = 0;
    CHECK(sizes[HEADS] == 1 && n >= 1);
    for (int64_t i = 0; i < sizes[LISTS]; i++)
        n_items += tables[LISTS][3 * i + 2];
    CHECK(n_items == sizes[LIST_ITEMS]);
    for (int64_t i = 0; i < sizes[ENTRIES]; i++) {
        CHECK(tables[ENTRIES][3 * i] >= 0 && tables[ENTRIES][3 * i] < sizes[LISTS]);
        n_shown |= tables[ENTRIES][3 * i + 2];
    }
    CHECK(n_shown >= 0);
    for (int64_t i = 0; i < sizes[MASKS]; i++)
        CHECK(tables[MASKS][3 * i] >= 0 && tables[MASKS][3 * i] < sizes[ENTRIES]);
    for (int64_t i = 0; i < sizes[CELL_ROWS]; i++)
        CHECK(tables[CELL_ROWS][4 * i + 2] < sizes[ROW_NAMES]);
}

static int fill(const uint8_t *data, int64_t end, int64_t kind) {
    int64_t n = kind == KIND_HEAD ? 1 : 2, n_before = n == 1 ? 0 : (int64_t)head_bytes;
    uint8_t *packed = bounded(SCOPES, (size_t)(n_before + end));
    int64_t *ends = bounded(SCOPE_ENDS, (size_t)n * sizeof *ends);
    int64_t *places = bounded(SCOPE_PLACES, (size_t)(3 * n) * sizeof *places);
    int64_t sizes[N_SCOPE_TABLES], again[N_SCOPE_TABLES], *tables[N_SCOPE_TABLES];
    memset(places, 0, (size_t)(3 * n) * sizeof *places);
    if (n_before)
        memcpy(packed, head, (size_t)n_before);
    memcpy(packed + n_before, data, (size_t)end);
    ends[0] = n_before;
    ends[n - 1] = n_before + end;
    places[0] = KIND_HEAD;
    places[3 * (n - 1)] = kind;
    int64_t failed = fold_scope_tables(packed, ends, places, n, NULL, sizes);
    CHECK(failed <= 0 && failed >= -n);
    if (failed) {
        CHECK(failed == -n); /* the head was taken before */
        return 0;
    }
    for (int i = 0; i < N_SCOPE_TABLES; i++) {
        CHECK(sizes[i] >= 0);
        size_t n_bytes = (size_t)(sizes[i] * WIDTHS[i]) * sizeof **tables;
        tables[i] = bounded((enum use)(SCOPE_TABLES + i), n_bytes);
    }
    CHECK(fold_scope_tables(packed, ends, places, n, tables, again) == 0);
    CHECK(memcmp(sizes, again, sizeof sizes) == 0);
    check_tables(tables, sizes, n);
    return 1;
}

int take_into_tables(const uint8_t *data, int64_t end) {
    int is_head = fill(data, end, KIND_HEAD);
    if (is_head)
        keep_head(data, end);
    if (is_head || !head)
        return is_head;
    int is_piece = fill(data, end, KIND_PIECE);
    return fill(data, end, KIND_LISTS) || is_piece;
}

void end_of_tables(void) {
    free(head);
    head = NULL;
}

/* Many records of scopes as flat tables of numbers, for those who read statistics. */
#ifndef FOLD_SCOPE_TABLES_H
#define FOLD_SCOPE_TABLES_H

#include <stdint.h>

#include "export.h"

enum scope_table {
    HEADS,       /* flags, last_ms, exposure rows, pieces of lists: one of each scope */
    ROW_NAMES,   /* the 16 bytes of a name */
    APART,       /* scope, group whose cell lies apart */
    LISTS,       /* scope, exposure row, items */
    LIST_ITEMS,  /* item */
    ENTRIES,     /* list, group, shown */
    MASKS,       /* entry, mask, impressions */
    CELL_TOTALS, /* scope, group, six totals */
    CELL_ROWS,   /* scope, group, exposure row, impressions */
    CELL_PAIRS,  /* scope, group, item, rank, six counts */
    CELL_SUMS,   /* scope, group, item, five sums */
    CELL_CLICKS, /* scope, group, item, rank, other item, other rank, impressions */
    CELL_REWARDS, /* scope, group, class, item, rank, impressions */
    N_SCOPE_TABLES
};

enum { KIND_HEAD, KIND_PIECE, KIND_LISTS };

/* Reads `n` records: head, pieces and lists of one scope after another.
 *
 * `ends` are where each ends in `bytes`. `places` [n, 3] are kind, number of the
 * scope (from 0, rising) and group of a piece. Rows are written where `tables` points,
 * and counted in `sizes`; where it is NULL they are counted only. Returns 0, or -1 - i
 * if record i is not what a scope's record must be. */
FOLD_EXPORT int64_t fold_scope_tables(const uint8_t *bytes, const int64_t *ends,
                                      const int64_t *places, int64_t n,
                                      int64_t *const *tables,
                                      int64_t sizes[N_SCOPE_TABLES]);

#endif

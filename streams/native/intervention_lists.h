/* Clicks per list by intervention and group of sessions, of closed impressions. */
#ifndef FOLD_INTERVENTION_LISTS_H
#define FOLD_INTERVENTION_LISTS_H

#include <stdint.h>

#include "export.h"

/* Some text, which belongs to the caller. */
struct words {
    const uint8_t *bytes;
    int64_t n;
};

/* An action and whether it is of the class that clicks are counted of. */
struct counted_action {
    struct words name;
    int64_t is_counted;
};

/* Whose lists are looked for: of the models, under MODEL@EPOCH.VERSION, and under MODEL,
 * which is what those of the first policy have. Of each model `most` interventions are
 * kept. An action that is not listed is counted if `counts_others`. */
struct intervention_rules {
    const struct words *models;
    int64_t n_models, most;
    const struct counted_action *actions;
    int64_t n_actions, counts_others;
};

/* What is kept of an intervention beside its sums: a digest of its name, the number of its
 * model, its lists, when it began among those of the model, or FIRST_POLICY, and the
 * bytes of its name. */
struct intervention_head {
    uint64_t digest;
    int64_t model, n_lists, begun, n_name;
};
#define FIRST_POLICY (-1)

/* Sums of interventions, in rows [capacity] of which `n` are in use. `names` [capacity,
 * name_width] has room for the longest one; `groups` [capacity, N_GROUPS, 2] holds lists
 * and clicks of each group of sessions, `n_without_session` [capacity] lists that name
 * neither session nor user. `n_uncounted` lists are in no row any more. */
struct intervention_table {
    struct intervention_head *heads;
    uint8_t *names;
    int64_t *groups, *n_without_session;
    int64_t n, capacity, name_width, n_uncounted;
};

/* Returned instead of a row. */
#define NO_INTERVENTION (-1) /* it is of no model */
#define LEFT_OUT (-2)        /* there is no room for it, now or later */
#define NO_ROW (-3)          /* it begins a row, and all are in use; nothing changed */

/* The row of an intervention. A new one gets a row while its model has fewer than `most`;
 * then that of the one with the fewest lists, of equal ones that which began first, whose
 * lists are counted no more. The first policy never leaves, and the last `most` / 16 that
 * began do not yet. */
FOLD_EXPORT int64_t intervention_lists_row(const struct intervention_rules *rules,
                                           struct intervention_table *table,
                                           const uint8_t *name, int64_t n_name);

/* Counts closed impressions, encoded one behind the other, from the one numbered `first`
 * on, up to the first for which there is no row, that is too long, or not whole; its
 * number, or `n`. That one has changed nothing. */
FOLD_EXPORT int64_t intervention_lists_take(const struct intervention_rules *rules,
                                            struct intervention_table *table,
                                            const uint8_t *encoded, const int64_t *ends,
                                            int64_t first, int64_t n);

#endif

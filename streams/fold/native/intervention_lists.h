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

/* The sums of an intervention: `groups` [N_GROUPS, 2] holds lists and clicks of each
 * group of sessions, `n_without_session` [1] counts lists that name neither session
 * nor user. */
struct intervention_sums {
    struct words name;
    int64_t *groups, *n_without_session;
};

/* What is looked for: interventions that begin with one of the prefixes, MODEL@, and
 * MODEL itself, under which lists of the first policy are logged. An action that is not
 * listed is counted if `counts_others`. */
struct intervention_rules {
    const struct words *prefixes;
    int64_t n_prefixes;
    const struct counted_action *actions;
    int64_t n_actions, counts_others;
};

/* Counts closed impressions, encoded one behind the other, from the one numbered `first`
 * on, up to the first whose intervention is looked for and none of the known ones, that is
 * too long, or not whole; its number, or `n`. That one has changed nothing. */
FOLD_EXPORT int64_t intervention_lists_take(const struct intervention_rules *rules,
                                            const struct intervention_sums *known,
                                            int64_t n_known, const uint8_t *encoded,
                                            const int64_t *ends, int64_t first, int64_t n);

#endif

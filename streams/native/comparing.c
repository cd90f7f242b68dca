#include "comparing.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "blake2b.h"
#include "compared_list.h"
#include "elements.h"
#include "msgpack.h"

static const double LARGEST_BOUND = 32768.0, LOG_SCALE = 4294967296.0;
enum { N_CLASSES = 24, LOWEST_CLASS = -8, N_BETS = 8, N_GROUPS = 100, N_BY_RANKER = 7 };
enum { LISTS, CLICKED_LISTS, CLICKS, PLACES = 4 };
enum { DOCUMENTS = 1, OWN_PLACES, FIRST_PLACES, OWN_LISTS, OWN_CLICKS, SQUARES };

/* As `pairwise_preference.agreement`. */
static void credit_pairs(const struct list *list, double *credit) {
    uint16_t ranks[1 + MOST_PLACES][MOST_RANKERS]; /* the first of what was not shown */
    int64_t n_read = list->k;
    while (!list->is_clicked[n_read - 1])
        n_read--;
    n_read += n_read < list->k;
    memset(ranks, 0xFF, sizeof(*ranks) * (size_t)(1 + list->k));
    for (int64_t ranker = 0; ranker < list->n_rankers; ranker++)
        for (int64_t i = 0; i < list->lengths[ranker]; i++)
            ranks[list->place[list->rows[ranker][i]]][ranker] = (uint16_t)i;
    for (int64_t a = 0; a < n_read; a++)
        for (int64_t b = a + 1; b < n_read; b++) {
            int64_t one = list->first[list->shown[a]], other = list->first[list->shown[b]];
            if (list->is_clicked[a] == list->is_clicked[b] || a + 1 < one || a + 1 < other)
                continue;
            double weight = list->weights[one][other];
            weight = list->is_clicked[b] ? -weight : weight;
            for (int64_t ranker = 0; ranker < list->n_rankers; ranker++)
                credit[ranker] += weight * ((ranks[a + 1][ranker] < ranks[b + 1][ranker]) -
                                            (ranks[a + 1][ranker] > ranks[b + 1][ranker]));
        }
}

/* What bets win by a share of the largest preference; see `sums.py`. */
struct bets {
    double share, largest;
    int64_t gains[2][N_BETS];
};

/* floor(2^32 log(1 + x)) for |x| <= 1/2, to the bit what the library's function gives:
 * the series is exact enough unless a whole number is near. */
static void fill_logs(const double *x, int64_t *logs) {
    double scaled[2 * N_BETS];
    for (int i = 0; i < 2 * N_BETS; i++) {
        double z = x[i] / (2.0 + x[i]), square = z * z, sum = 1.0 / 27.0;
        _Pragma("GCC unroll 16") for (int n = 25; n >= 3; n -= 2)
            sum = sum * square + 1.0 / n;
        scaled[i] = 2.0 * (z + z * square * sum) * LOG_SCALE;
    }
    for (int i = 0; i < 2 * N_BETS; i++) {
        int64_t whole = (int64_t)scaled[i];
        if (fabs(fabs(scaled[i] - (double)whole) - 0.5) > 0.499)
            logs[i] = (int64_t)floor(log1p(x[i]) * LOG_SCALE);
        else
            logs[i] = whole - (scaled[i] < 0.0);
    }
}

static void set_bets(struct bets *bets, double share, double largest) {
    double stakes[2 * N_BETS], bet = 0.5;
    if (bets->share == share && bets->largest == largest)
        return;
    bets->share = share;
    bets->largest = largest;
    for (int b = 0; b < N_BETS; b++, bet *= 0.25) {
        stakes[b] = fmin(bet * largest, 0.5) * share;
        stakes[N_BETS + b] = -stakes[b];
    }
    fill_logs(stakes, bets->gains[0]);
}

/* As `sums.add_impression`: preferences are differences of credit, or their signs. */
static void add_preferences(struct comparison *to, const struct list *list,
                            const double *credit, int64_t group) {
    bool has_teams = to->method == BY_TEAMS;
    double bound = has_teams ? 1.0 : list->bound;
    struct bets bets = {-1.0, 0.0, {{0}}};
    int64_t n_rankers = list->n_rankers, pair = 0, class = 0;
    double largest = ldexp(1.0, LOWEST_CLASS);
    for (; largest * (1.0 + 1e-9) < bound; largest *= 2.0)
        class++;
    int64_t *sums = to->sums + group * (n_rankers * (n_rankers - 1) / 2);
    to->impressions[group]++;
    for (int64_t n = 0; n < n_rankers; n++)
        for (int64_t m = n + 1; m < n_rankers; m++, pair++) {
            if (!has_teams && list->rows[n][0] == list->rows[m][0] &&
                list->lengths[n] == list->lengths[m] &&
                !memcmp(list->rows[n], list->rows[m], 2 * (size_t)list->lengths[n]))
                continue;
            to->possible[pair * N_CLASSES + class]++;
            double value = credit[n] - credit[m];
            value = has_teams ? (value > 0.0) - (value < 0.0) : value;
            if (value == 0.0)
                continue;
            double share = fmin(1.0, fabs(value) / largest);
            bool is_negative = value < 0.0;
            to->counts[2 * pair + is_negative]++;
            sums[pair] += (int64_t)rint(value * 1048576.0);
            to->squares[pair * N_CLASSES + class] +=
                (int64_t)ceil(share * share * LOG_SCALE);
            set_bets(&bets, share, largest);
            int64_t *wealth = to->wealth + 2 * N_BETS * pair;
            for (int b = 0; b < N_BETS; b++) {
                wealth[b] += bets.gains[is_negative][b];
                wealth[N_BETS + b] += bets.gains[!is_negative][b];
            }
        }
}

/* As `list_counts.count_list`. */
static void count_list(struct comparison *to, const struct list *list) {
    int64_t own[MOST_RANKERS] = {0}, clicks[MOST_RANKERS] = {0}, is_first = 1;
    to->totals[LISTS]++;
    to->totals[CLICKED_LISTS] += list->n_clicks > 0;
    to->totals[CLICKS] += list->n_clicks;
    to->totals[PLACES] += list->k;
    for (int64_t place = 0; to->method == BY_TEAMS && place < list->k; place++) {
        int64_t team = list->team[place];
        if (team < 0)
            continue;
        own[team]++;
        clicks[team] += list->is_clicked[place];
        to->by_ranker[team * N_BY_RANKER + FIRST_PLACES] += is_first;
        is_first = 0;
    }
    for (int64_t ranker = 0; ranker < list->n_rankers; ranker++) {
        int64_t *counts = to->by_ranker + ranker * N_BY_RANKER;
        counts[DOCUMENTS] += list->lengths[ranker];
        counts[OWN_PLACES] += own[ranker];
        counts[OWN_LISTS] += own[ranker] > 0;
        counts[OWN_CLICKS] += clicks[ranker];
        counts[SQUARES] += clicks[ranker] * clicks[ranker];
    }
}

static bool comes_early_enough(const struct list *list) {
    for (int64_t place = 1; place <= list->k; place++)
        if (list->first[list->shown[place - 1]] > place)
            return false;
    return true;
}

static bool is_plain(struct list *list, const uint8_t *data, int64_t end) {
    const struct comparison *of = list->of;
    int64_t at_ms = 0, start, n = 0;
    msgpack_number(data, list->places[IMPRESSION_AT_MS], end, &at_ms);
    msgpack_span(data, list->places[IMPRESSION_IMPRESSION_ID], end, &start, &n);
    list->n_rankers = of->n_rankers;
    if (at_ms < of->start_ms || at_ms >= of->end_ms || 
        data[list->places[IMPRESSION_IS_OPEN_SET]] != 0xC2 || !list->n_documents ||
        !compared_shown(list, data, of->length) || !compared_clicks(list, data, end))
        return false;
    if (of->method == BY_TEAMS)
        return compared_is_draft(list, data);
    if (list->teams || !comes_early_enough(list))
        return false;
    compared_weigh(list, list->n_documents < of->length ? list->n_documents : of->length,
          of->largest_weight);
    list->bound = compared_bound(list);
    return list->bound <= LARGEST_BOUND;
}

/* The seed that an impression of this id is drawn by: 63 bits of BLAKE2b. */
static int64_t seed_of(const struct comparison *of, const uint8_t *id, int64_t n) {
    struct blake2b state;
    uint8_t digest[8];
    uint64_t seed = 0;
    blake2b_begin(&state, sizeof digest);
    blake2b_take(&state, of->seeded, of->n_seeded);
    blake2b_take(&state, id, n);
    blake2b_end(&state, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        seed = seed << 8 | digest[i];
    return (int64_t)(seed >> 1);
}

static void credit(struct comparison *to, struct list *list, const uint8_t *data) {
    double credits[MOST_RANKERS] = {0.0};
    int64_t at_ms = 0, seed = 0, unit = 0, start = 0, n = 0;
    int64_t end = list->places[ELEMENT_END];
    msgpack_number(data, list->places[IMPRESSION_AT_MS], end, &at_ms);
    msgpack_number(data, list->places[IMPRESSION_SEED], end, &seed);
    msgpack_number(data, list->places[IMPRESSION_UNIT], end, &unit);
    msgpack_span(data, list->places[IMPRESSION_IMPRESSION_ID], end, &start, &n);
    to->n_foreign_seeds += seed != seed_of(to, data + start, n);
    to->n_without_session += !list->has_session;
    to->first_ms = to->first_ms < 0 || at_ms < to->first_ms ? at_ms : to->first_ms;
    to->last_ms = at_ms > to->last_ms ? at_ms : to->last_ms;
    to->n_taken++;
    count_list(to, list);
    if (list->n_clicks && to->method == BY_PAIRS)
        credit_pairs(list, credits);
    for (int64_t place = 0; to->method == BY_TEAMS && place < list->k; place++)
        if (list->team[place] >= 0)
            credits[list->team[place]] += list->is_clicked[place];
    add_preferences(to, list, credits, (int64_t)((uint64_t)unit % N_GROUPS));
}

int64_t comparing_take(struct comparison *comparisons, int64_t n_comparisons,
                       const uint8_t *encoded, const int64_t *ends, const uint8_t *extras,
                       int64_t first, int64_t n, int64_t *n_unknown) {
    struct list list;
    for (int64_t i = first; i < n; i++) {
        int64_t n_parts;
        if (!extras[i])
            continue;
        int64_t at = msgpack_array(encoded, i ? ends[i - 1] : 0, ends[i], &n_parts);
        if (at < 0 || fold_find_fields(encoded, at, ends[i], list.places) < 0 ||
            !compared_extra(&list, encoded, comparisons, n_comparisons))
            return i;
        if (list.is_compared && n_unknown)
            ++*n_unknown;
        else if (list.of && is_plain(&list, encoded, ends[i]))
            credit(list.of, &list, encoded);
        else if (list.is_compared)
            return i;
    }
    return n;
}

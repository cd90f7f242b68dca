/* What takes closed interactions, with whatever mutated records the join closed. */
#include "fuzzed.h"

#include "comparing.h"
#include "digests.h"
#include "elements.h"
#include "intervention_lists.h"
#include "msgpack.h"
#include "statistics.h"

/* ---- read as Python reads them ---- */

static int64_t n_closed, n_closed_clicks;

/* One click mark: its end. They come by time, then by position. */
static int64_t check_mark(const uint8_t *data, int64_t at, int64_t end, int64_t n_shown,
                          int64_t before[2]) {
    int64_t length, position, at_ms, start, n;
    at = msgpack_array(data, at, end, &length);
    CHECK(at > 0 && length == N_CLICK_MARK_FIELDS);
    at = msgpack_number(data, at, end, &position);
    CHECK(at > 0 && position >= 1 && position <= n_shown);
    at = msgpack_number(data, at, end, &at_ms);
    CHECK(at > 0 && (at_ms > before[0] || (at_ms == before[0] && position >= before[1])));
    before[0] = at_ms;
    before[1] = position;
    at = msgpack_span(data, at, end, &start, &n);
    CHECK(at > 0);
    return at;
}

/* Each can be read, says what it must, and ends where it says. */
static void decode_closed(const struct closed *closed) {
    int64_t at = 0, before_ms = INT64_MIN, n_clicks = 0;
    for (int64_t i = 0; i < closed->n; i++) {
        const uint8_t *data = closed->encoded;
        int64_t length, start, n, places[ELEMENT_WIDTH], end = closed->ends[i];
        at = msgpack_array(data, at, end, &length);
        CHECK(at > 0 && length == N_INTERACTION_FIELDS);
        at = fold_find_fields(data, at, end, places);
        CHECK(at > 0 && number_at(data, places[IMPRESSION_TAG], end) == IMPRESSION);
        int64_t at_ms = number_at(data, places[IMPRESSION_AT_MS], end);
        CHECK(at_ms >= before_ms && at_ms + WINDOW_MS <= closed->now_ms);
        before_ms = at_ms;
        CHECK(msgpack_span(data, places[IMPRESSION_MODEL], end, &start, &n) > 0);
        struct name model = hashed(data + start, n, (struct name){1, 2});
        CHECK(closed->models[2 * i] == model.first);
        CHECK(closed->models[2 * i + 1] == model.second);
        CHECK(msgpack_span(data, places[IMPRESSION_EXTRA], end, &start, &n) > 0);
        CHECK(closed->extras[i] == (n > 0));
        CHECK(msgpack_span(data, places[IMPRESSION_SHOWN], end, &start, &n) > 0);
        at = msgpack_array(data, at, end, &length);
        CHECK(at > 0 && length <= MOST_CLICKS);
        int64_t before[2] = {INT64_MIN, 0};
        for (int64_t mark = 0; mark < length; mark++)
            at = check_mark(data, at, end, n / 2, before);
        CHECK(at == end);
        n_clicks += length;
    }
    CHECK(n_clicks == closed->n_clicks);
    n_closed += closed->n;
    n_closed_clicks += n_clicks;
/* ---- statistics ---- */

}

/* Statistics with little room, so that all forms come. Their state is taken back, as it
 * is and broken. */
static struct statistics *statistics;
static int64_t n_counted, n_refused, n_restored, n_broken;

static const int64_t SETTINGS[9] = {3, 500, 2, 2, 2, 3, 0, 16, 1};

static struct statistics *new_statistics(void) {
    struct statistics *new = statistics_new(SETTINGS);
    CHECK(new && statistics_map(new, (const uint8_t *)"buy", 3, 1) == 0);
    return new;
}

static void begin_statistics(void) { statistics = new_statistics(); }

static void count_closed(const struct closed *closed) {
    int64_t done =
        statistics_count(statistics, closed->encoded, closed->ends, closed->n);
    CHECK(done == 0 || done == STATISTICS_NOT_WHOLE);
    n_counted += done == 0;
    n_refused += done != 0;
    CHECK(statistics_leave(statistics, closed->now_ms) == 0);
}

/* Keys begin an array of two or more, then a string: its length tells kinds apart. */
static int kind_of_key(const uint8_t *key) {
    switch (key[2]) {
    case 's':
        return key[1] == 0xA3 ? 0 : 2; /* set, scope */
    case 'l':
        return 4; /* lists */
    default:
        return key[2] == 'r' ? 1 : 3; /* row, piece */
    }
}

/* Takes back the records of each kind, one by one. */
static int64_t take_back(struct statistics *into, uint8_t *bytes, const int64_t *ends,
                         int64_t n) {
    int64_t done = 0;
    for (int kind = 0; kind < 5 && !done; kind++) {
        for (int64_t i = 0; i < n && !done; i++) {
            int64_t start = i ? ends[2 * i - 1] : 0;
            if (ends[2 * i] == ends[2 * i + 1] || kind_of_key(bytes + start) != kind)
                continue;
            size_t n_bytes = (size_t)(ends[2 * i + 1] - start);
            uint8_t *own = malloc(n_bytes);
            CHECK(own);
            memcpy(own, bytes + start, n_bytes);
            int64_t own_ends[2] = {ends[2 * i] - start, ends[2 * i + 1] - start};
            done = statistics_restore(into, own, own_ends, 1);
            free(own);
        }
    }
    return done;
}

static void end_statistics(void) {
    int64_t sizes[2];
    CHECK(statistics_changes(statistics, sizes) == 0);
    uint8_t *bytes = malloc((size_t)sizes[1] + 1);
    int64_t *ends = malloc(sizeof(int64_t) * (size_t)(2 * sizes[0] + 1));
    CHECK(bytes && ends);
    statistics_take(statistics, bytes, ends);
    statistics_free(statistics);
    struct statistics *again = new_statistics();
    CHECK(take_back(again, bytes, ends, sizes[0]) == 0);
    statistics_free(again);
    n_restored += sizes[0];
    for (int i = 0; i < 8 && sizes[0]; i++) {
        size_t record = below((size_t)sizes[0]);
        size_t from = (size_t)ends[2 * record], to = (size_t)ends[2 * record + 1];
        if (from < to)
            bytes[from + below(to - from)] = (uint8_t)below(256);
    }
    again = new_statistics();
    n_broken += take_back(again, bytes, ends, sizes[0]) != 0;
    CHECK(statistics_changes(again, sizes) == 0);
    statistics_free(again);
    free(bytes);
    free(ends);
}
/* ---- comparisons ---- */

/* The largest numbers of rankers and of places that `comparing.h` allows; two epochs,
 * one of each method, as `fuzzing.py` writes lists of them. */
enum { N_COMPARISONS = 2, MOST_RANKERS = 5, N_PAIRS = 10, LENGTH = 6 };
enum { N_TOTALS_COMPARED = 7, N_OF_RANKER = 7, N_GROUPS_COMPARED = 100, N_CLASSES = 24 };
enum { N_BETS = 8 };

static const char *const EXPERIMENTS[N_COMPARISONS] = {
    "\x83\xA2id\xA5" "boost\xA5" "epoch\x01\xA6method\xB3pairwise-preference",
    "\x83\xA2id\xA5" "boost\xA5" "epoch\x02\xA6method\xAAteam-draft"};
static const char NAMES_OF_RANKERS[] = "\xA2r0\xA2r1\xA2r2\xA2r3\xA2r4";
static const int64_t N_RANKERS[N_COMPARISONS] = {5, 3};

static struct sums_compared {
    int64_t totals[N_TOTALS_COMPARED], by_ranker[MOST_RANKERS][N_OF_RANKER];
    int64_t sums[N_GROUPS_COMPARED * N_PAIRS], counts[N_PAIRS][2];
    int64_t possible[N_PAIRS][N_CLASSES], squares[N_PAIRS][N_CLASSES];
    int64_t wealth[N_PAIRS][2][N_BETS], impressions[N_GROUPS_COMPARED];
} sums[N_COMPARISONS];
static struct comparison comparisons[N_COMPARISONS];
static int64_t n_credited, n_not_plain, n_of_any;

static void begin_comparisons(void) {
    memset(sums, 0, sizeof sums);
    for (int i = 0; i < N_COMPARISONS; i++) {
        struct sums_compared *own = &sums[i];
        const char *experiment = EXPERIMENTS[i];
        comparisons[i] = (struct comparison){
            .experiment = (const uint8_t *)experiment,
            .names = (const uint8_t *)NAMES_OF_RANKERS,
            .seeded = (const uint8_t *)"boost",
            .n_experiment = (int64_t)strlen(experiment),
            .n_names = 3 * N_RANKERS[i],
            .n_seeded = 5,
            .method = i == 0 ? BY_PAIRS : BY_TEAMS,
            .n_rankers = N_RANKERS[i],
            .length = LENGTH,
            .start_ms = 0,
            .end_ms = INT64_MAX,
            .largest_weight = 8.0,
            .totals = own->totals,
            .by_ranker = own->by_ranker[0],
            .sums = own->sums,
            .counts = own->counts[0],
            .possible = own->possible[0],
            .squares = own->squares[0],
            .wealth = own->wealth[0][0],
            .impressions = own->impressions,
            .first_ms = -1,
            .last_ms = -1,
        };
    }
}

/* Credits, or only counts, all that is plain; the rest is passed over. */
static void compare_closed(const struct closed *closed) {
    for (int counts_only = 0; counts_only < 2; counts_only++) {
        int64_t n_found = 0, *n_unknown = counts_only ? &n_found : NULL;
        for (int64_t i = 0; i < closed->n; i++) {
            int64_t next = comparing_take(comparisons, counts_only ? 0 : N_COMPARISONS,
                                          closed->encoded, closed->ends,
                                          closed->extras, i, closed->n, n_unknown);
            CHECK(next >= i && next <= closed->n);
            CHECK(next == closed->n || closed->extras[next]);
            i = next;
            n_not_plain += !counts_only && next < closed->n;
        }
        CHECK(n_found <= closed->n);
        n_of_any += n_found;
    }
}

static void end_comparisons(void) {
    for (int i = 0; i < N_COMPARISONS; i++) {
        const struct comparison *of = &comparisons[i];
        const struct sums_compared *own = &sums[i];
        int64_t n = 0;
        for (int group = 0; group < N_GROUPS_COMPARED; group++)
            n += own->impressions[group];
        CHECK(n == of->n_taken && n == own->totals[0]);
        CHECK(own->totals[1] <= n && own->totals[2] <= MOST_CLICKS * n);
        CHECK(of->n_foreign_seeds <= n && of->n_without_session <= n);
        CHECK(n == 0 || (of->first_ms >= 0 && of->first_ms <= of->last_ms));
        for (int64_t pair = 0; pair < N_PAIRS; pair++) {
            int64_t n_possible = 0;
            for (int row = 0; row < N_CLASSES; row++)
                n_possible += own->possible[pair][row];
            CHECK(n_possible <= n);
            CHECK(own->counts[pair][0] + own->counts[pair][1] <= n_possible);
        }
        n_credited += n;
    }
}

/* ---- interventions ---- */

/* Rows of few interventions, in memory of just their size. */
enum { N_ROOM = 3, NAME_WIDTH = 5 + 32 };
static struct intervention_table interventions;
static int64_t n_of_interventions, n_of_others, n_uncounted;

static void begin_interventions(void) {
    interventions = (struct intervention_table){
        .heads = calloc(N_ROOM, sizeof *interventions.heads),
        .names = calloc(N_ROOM, NAME_WIDTH),
        .groups = calloc(N_ROOM, sizeof(int64_t) * 2 * N_GROUPS_COMPARED),
        .n_without_session = calloc(N_ROOM, sizeof(int64_t)),
        .capacity = N_ROOM,
        .name_width = NAME_WIDTH,
    };
    CHECK(interventions.heads && interventions.names && interventions.groups &&
          interventions.n_without_session);
}

/* Names that the model keeps and pushes out; broken ones are of nobody. */
static void name_interventions(const struct intervention_rules *rules) {
    static const char *const names[] = {"model@0.1", "model@7.999999999999999", "model@0.01",
                                        "model@1.", "model@", "@0.1", "", "model@2.3"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int64_t n = (int64_t)strlen(names[i]);
        uint8_t *name = malloc((size_t)n + 1);
        CHECK(name);
        memcpy(name, names[i], (size_t)n);
        int64_t row = intervention_lists_row(rules, &interventions, name, n);
        CHECK(row < interventions.n && row >= NO_INTERVENTION);
        free(name);
    }
}

/* Lists of the model; each one that cannot be read is handed back, and passed over. */
static void count_interventions(const struct closed *closed) {
    const struct words name = {(const uint8_t *)"model", 5};
    const struct counted_action bought = {{(const uint8_t *)"buy", 3}, 0};
    const struct intervention_rules rules = {&name, 1, N_ROOM, &bought, 1, 1};
    for (int64_t i = 0; i < closed->n; i++) {
        int64_t next = intervention_lists_take(&rules, &interventions, closed->encoded,
                                               closed->ends, i, closed->n);
        CHECK(next >= i && next <= closed->n);
        n_of_others += next < closed->n;
        i = next;
    }
    name_interventions(&rules);
}

static void end_interventions(void) {
    CHECK(interventions.n <= N_ROOM);
    for (int64_t row = 0; row < interventions.n; row++) {
        const int64_t *sums = interventions.groups + row * 2 * N_GROUPS_COMPARED;
        int64_t n = 0;
        for (int group = 0; group < N_GROUPS_COMPARED; group++, sums += 2) {
            CHECK(sums[0] >= 0 && sums[1] >= 0 && sums[1] <= MOST_CLICKS * sums[0]);
            n += sums[0];
        }
        CHECK(n == interventions.heads[row].n_lists);
        CHECK(interventions.n_without_session[row] <= n);
        n_of_interventions += n;
    }
    n_uncounted += interventions.n_uncounted;
    free(interventions.heads);
    free(interventions.names);
    free(interventions.groups);
    free(interventions.n_without_session);
}

/* All that takes interactions. Another one is a row: `begin` and `end` (NULL where there
 * is nothing to do) are called with each join, `take` with all that it closes; what
 * `closed` holds ends where it says, and is gone after the call. */
static const struct {
    void (*begin)(void);
    void (*take)(const struct closed *closed);
    void (*end)(void);
} TAKERS[] = {
    {NULL, decode_closed, NULL},
    {begin_statistics, count_closed, end_statistics},
    {begin_comparisons, compare_closed, end_comparisons},
    {begin_interventions, count_interventions, end_interventions},
};
#define N_TAKERS (sizeof TAKERS / sizeof TAKERS[0])

void begin_of_takers(void) {
    for (size_t i = 0; i < N_TAKERS; i++)
        if (TAKERS[i].begin)
            TAKERS[i].begin();
}

void take_closed(const struct closed *closed) {
    for (size_t i = 0; i < N_TAKERS; i++)
        TAKERS[i].take(closed);
}

void end_of_takers(void) {
    for (size_t i = 0; i < N_TAKERS; i++)
        if (TAKERS[i].end)
            TAKERS[i].end();
}

void print_taken(int64_t n_joins) {
    printf("join: %lld closed, %lld clicks in them, %lld joins\n", (long long)n_closed,
           (long long)n_closed_clicks, (long long)n_joins);
    printf("statistics: %lld batches counted, %lld refused, %lld records taken back, "
           "%lld broken states refused\n",
           (long long)n_counted, (long long)n_refused, (long long)n_restored,
           (long long)n_broken);
    printf("comparisons: %lld lists credited, %lld not plain, %lld of any experiment\n",
           (long long)n_credited, (long long)n_not_plain, (long long)n_of_any);
    printf("interventions: %lld lists counted, %lld not, %lld not read\n",
           (long long)n_of_interventions, (long long)n_uncounted, (long long)n_of_others);
}

#include "placement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Nodes of the integral, which are computed side by side; their last is the latest. */
enum { LANES = 8, LAST = LANES - 1 };
typedef double lanes[LANES];
typedef double pair __attribute__((vector_size(16)));

/* What they are for is said in placement.py. */
static const double LARGEST_STEP = 0.24, STEP_TIMES_ROOT = 0.68, FIRST_NODE = -1.64;
static const double BEND = 1.5, STRAIGHT = 100.0, REACH = 300.0, SMALL = 0.125;
static const double WIDEST_GAP = 32.0, FAR_BELOW = -37.0, ARRIVED = 3.6;
static const double NEVER = 1e-15, NO_LONGER = 1e-13, NOBODY_LEFT = 1e-11;

static const double LOWEST = -708.0, LOG_2 = 0.6931471805599453;
static const double PER_LOG_2 = 1.4426950408889634, ROUNDER = 6755399441055744.0;
static const double LOG_2_HIGH = 6.93147180369123816490e-01;
static const double LOG_2_LOW = 1.90821492927058770002e-10;

static const double OVER_FACTORIAL[] = {
    1.0, 1.0, 1.0 / 2.0, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0,
    1.0 / 40320.0, 1.0 / 362880.0, 1.0 / 3628800.0, 1.0 / 39916800.0, 1.0 / 479001600.0};
#define UNROLLED _Pragma("GCC unroll 16")

struct scored {
    double score;
    int64_t document;
};

/* Probability that a document has arrived (rung) or not; passed: rate times time. */
struct clock {
    lanes passed, silent, rung;
};

/* P(r arrivals) for r in low..high; of no others is there any that matters. */
struct counts {
    lanes *at;
    int64_t low, high;
};

/* Documents begin..end - 1, of which one is to be left out; all others are counted. */
struct half {
    int64_t begin, end;
    struct counts counts;
};

struct race {
    int64_t n, cutoff;
    double *placements;
    struct scored *order; /* by falling score */
    double *logs, *rates; /* in this order; rates relative to exp(-offset) */
    struct clock *clocks;
    struct counts everyone;
    struct half halves[66];
};

/* Rates relative to exp(-offset), of documents from one place on; 0 for the smallest. */
static void fill_rates(struct race *race, int64_t first, double offset);

static inline double *row_of(const struct race *race, int64_t place) {
    return race->placements + race->order[place].document * race->cutoff;
}

static void copy(struct counts *to, const struct counts *from) {
    to->low = from->low;
    to->high = from->high;
    if (from->low <= from->high)
        memcpy(to->at[from->low], from->at[from->low],
               sizeof(lanes) * (size_t)(from->high - from->low + 1));
}

#define LANE_BYTES 16
#define NAMED(name) name##_narrow
#define TARGET
#include "placement_lanes.h"

/* Twice as wide where the processor can, with the same bits. Others than gcc cannot
 * always tell. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(NARROW)
#define LANE_BYTES 32
#define NAMED(name) name##_wide
#define TARGET __attribute__((target("avx2")))
#include "placement_lanes.h"

static void integrate(struct race *race) {
    if (__builtin_cpu_supports("avx2"))
        integrate_wide(race);
    else
        integrate_narrow(race);
}
#else
static void integrate(struct race *race) { integrate_narrow(race); }
#endif

static void fill_rates(struct race *race, int64_t first, double offset) {
    for (int64_t d = first; d < race->n; d++) {
        double x = race->logs[d] + offset;
        race->rates[d] = x > LOWEST ? exponentials_narrow((pair){x, x})[0] : 0.0;
    }
}

static int by_score(const void *left, const void *right) {
    const struct scored *a = left, *b = right;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return a->document < b->document ? -1 : 1;
}

static void sort(struct scored *order, int64_t n) {
    if (n > 64) {
        qsort(order, (size_t)n, sizeof(*order), by_score);
        return;
    }
    for (int64_t i = 1; i < n; i++) {
        struct scored one = order[i];
        int64_t at = i;
        for (; at > 0 && order[at - 1].score < one.score; at--)
            order[at] = order[at - 1];
        order[at] = one;
    }
}

/* Logarithms of rates, the largest 0. */
static void fill_logs(struct race *race) {
    bool is_wide = false;
    for (int64_t d = 0; d < race->n; d++) {
        race->logs[d] = race->order[d].score - race->order[0].score;
        is_wide |= d && race->order[d - 1].score - race->order[d].score > WIDEST_GAP;
    }
    for (int64_t d = 1; is_wide && d < race->n; d++) {
        double gap = race->order[d - 1].score - race->order[d].score;
        race->logs[d] = race->logs[d - 1] - (gap < WIDEST_GAP ? gap : WIDEST_GAP);
    }
}

static void *taken(char **left, int64_t n_bytes) {
    char *place = *left;
    *left += (n_bytes + 63) / 64 * 64;
    return place;
}

static bool is_prepared(struct race *race, struct placement_scratch *scratch) {
    int64_t n = race->n, n_levels = 3;
    while ((int64_t)1 << (n_levels - 3) < n) n_levels++;
    int64_t n_counts = race->cutoff * (int64_t)sizeof(lanes);
    int64_t needed = n * (int64_t)(sizeof(struct scored) + sizeof(struct clock) + 16) +
                     n_levels * n_counts + 64 * 5;
    if (scratch->n_bytes < needed) {
        placement_free(scratch);
        scratch->bytes = malloc((size_t)needed);
        if (!scratch->bytes)
            return false;
        scratch->n_bytes = needed;
    }
    char *left = (char *)(((uintptr_t)scratch->bytes + 63) / 64 * 64);
    race->order = taken(&left, n * (int64_t)sizeof(struct scored));
    race->logs = taken(&left, n * 8);
    race->rates = taken(&left, n * 8);
    race->clocks = taken(&left, n * (int64_t)sizeof(struct clock));
    race->everyone.at = taken(&left, n_counts);
    for (int64_t i = 0; i < n_levels - 1; i++)
        race->halves[i].counts.at = taken(&left, n_counts);
    return true;
}

void placement_free(struct placement_scratch *scratch) {
    free(scratch->bytes);
    *scratch = (struct placement_scratch){0};
}

bool placement_fill(const double *scores, int64_t n_documents, int64_t cutoff,
                    struct placement_scratch *scratch, double *placements) {
    struct race race;
    race.n = n_documents;
    race.cutoff = cutoff;
    race.placements = placements;
    if (!is_prepared(&race, scratch))
        return false;
    for (int64_t d = 0; d < race.n; d++)
        race.order[d] = (struct scored){scores[d], d};
    sort(race.order, race.n);
    fill_logs(&race);
    fill_rates(&race, 0, 0.0);
    double total = 0.0;
    for (int64_t d = 0; d < race.n; d++)
        total += race.rates[d];
    for (int64_t d = 0; d < race.n; d++)
        race.order[d].score = race.rates[d] / total;
    if (cutoff > 1) {
        int exponent;
        double mantissa = frexp(total, &exponent);
        double shift = LOG_2 * ((double)exponent + 2.0 * mantissa - 2.0);
        for (int64_t d = 0; d < race.n; d++)
            race.logs[d] -= shift;
        fill_rates(&race, 0, 0.0);
        memset(placements, 0, (size_t)(race.n * cutoff) * sizeof(double));
        integrate(&race);
        for (int64_t i = 0; i < race.n * cutoff; i++)
            placements[i] = placements[i] > 0.0 ? placements[i] : 0.0;
    }
    for (int64_t d = 0; d < race.n; d++)
        *row_of(&race, d) = race.order[d].score;
    return true;
}

int64_t fold_placements(const double *scores, int64_t n_lists, int64_t n_documents,
                        int64_t cutoff, double *placements) {
    struct placement_scratch scratch = {0};
    bool is_done = true;
    for (int64_t i = 0; is_done && i < n_lists; i++)
        is_done = placement_fill(scores + i * n_documents, n_documents, cutoff, &scratch,
                                 placements + i * n_documents * cutoff);
    placement_free(&scratch);
    return is_done ? 0 : -1;
}

/* The integral of placement.c, for registers of LANE_BYTES; included once for each width,
 * with names and a TARGET of its own. Whatever the width, operations are the same. */
#define some NAMED(some)
#define PARTS (LANES * 8 / LANE_BYTES)
#define EACH(i) UNROLLED for (size_t i = 0; i < PARTS; i++)
#define OF(x) ((some *)(x))
#define INLINE static inline __attribute__((always_inline)) TARGET

typedef double NAMED(some) __attribute__((vector_size(LANE_BYTES), may_alias));
typedef int64_t NAMED(some_bits) __attribute__((vector_size(LANE_BYTES)));

/* As models/kernels/exponentials.py, for arguments whose result is a normal number. */
INLINE some NAMED(exponentials)(some x) {
    some power = x * PER_LOG_2 + ROUNDER, k = power - ROUNDER;
    some r = (x - k * LOG_2_HIGH) - k * LOG_2_LOW;
    some p = r * OVER_FACTORIAL[12] + OVER_FACTORIAL[11];
    UNROLLED for (int n = 10; n >= 0; n--)
        p = p * r + OVER_FACTORIAL[n];
    NAMED(some_bits) bits = (NAMED(some_bits))power;
    return p * (some)((bits + 1023) << 52);
}

/* 1 - exp(-p) for p below SMALL. */
INLINE some NAMED(small)(some p) {
    some rest = OVER_FACTORIAL[7] - p * OVER_FACTORIAL[8];
    UNROLLED for (int n = 6; n >= 1; n--)
        rest = OVER_FACTORIAL[n] - p * rest;
    return p * rest;
}

INLINE double NAMED(sum)(const some *x) {
    pair two[LANES / 2];
    memcpy(two, x, sizeof(two));
    pair sum = (two[0] + two[2]) + (two[1] + two[3]);
    return sum[0] + sum[1];
}

/* One more document may have arrived; cutoff arrivals and more are not counted. */
INLINE void NAMED(add)(struct counts *counts, const struct clock *clock, int64_t cutoff) {
    lanes *at = counts->at;
    int64_t low = counts->low, high = counts->high;
    if (low > high)
        return;
    some silent[PARTS], rung[PARTS], above[PARTS];
    EACH(i) silent[i] = OF(clock->silent)[i];
    EACH(i) rung[i] = OF(clock->rung)[i];
    EACH(i) above[i] = OF(at[high])[i];
    if (high + 1 < cutoff && at[high][LAST] * clock->rung[LAST] > NEVER) {
        EACH(i) OF(at[high + 1])[i] = above[i] * rung[i];
        counts->high = high + 1;
    }
    for (int64_t r = high; r > low; r--)
        EACH(i) {
            some below = OF(at[r - 1])[i];
            OF(at[r])[i] = above[i] * silent[i] + below * rung[i];
            above[i] = below;
        }
    EACH(i) OF(at[low])[i] = above[i] * silent[i];
    while (low <= counts->high && at[low][0] < NO_LONGER)
        low++;
    counts->low = low;
}

/* Divides one document out of everyone's counts; its density times those that are left
 * goes to its row. Stable as far as few of it may have arrived. */
INLINE void NAMED(leave_out)(const struct counts *everyone, const struct clock *clock,
                             double *row) {
    some others[PARTS], odds[PARTS], passed[PARTS];
    EACH(i) others[i] = (some){0.0};
    EACH(i) odds[i] = OF(clock->rung)[i] / OF(clock->silent)[i];
    EACH(i) passed[i] = OF(clock->passed)[i];
    for (int64_t r = everyone->low; r <= everyone->high; r++) {
        some share[PARTS];
        EACH(i) {
            others[i] = OF(everyone->at[r])[i] - odds[i] * others[i];
            share[i] = passed[i] * others[i];
        }
        row[r] += NAMED(sum)(share);
    }
}

/* The same without dividing, of documents that are likely to have arrived: each of the
 * first n_early by halving, counts of the others being in halves[0]. */
INLINE void NAMED(leave_each_out)(struct race *race, int64_t first, int64_t n_early) {
    struct half *top = race->halves;
    top->begin = 0;
    top->end = n_early;
    while (top >= race->halves) {
        int64_t begin = top->begin, end = top->end, middle = (begin + end) / 2;
        struct counts *counts = &top->counts;
        if (end - begin == 1) {
            const struct clock *clock = &race->clocks[begin];
            double *row = row_of(race, first + begin);
            some density[PARTS], share[PARTS];
            EACH(i) density[i] = OF(clock->passed)[i] * OF(clock->silent)[i];
            for (int64_t r = counts->low; r <= counts->high; r++) {
                EACH(i) share[i] = OF(counts->at[r])[i] * density[i];
                row[r] += NAMED(sum)(share);
            }
            top--;
            continue;
        }
        copy(&top[1].counts, counts);
        for (int64_t d = begin; d < middle; d++)
            NAMED(add)(&top[1].counts, &race->clocks[d], race->cutoff);
        for (int64_t d = middle; d < end; d++)
            NAMED(add)(counts, &race->clocks[d], race->cutoff);
        top->end = middle;
        top++;
        top->begin = middle;
        top->end = end;
    }
}

INLINE void NAMED(set_clock)(struct clock *clock, double rate, const double *times) {
    some passed[PARTS], rung[PARTS];
    EACH(i) OF(clock->passed)[i] = passed[i] = rate * OF(times)[i];
    if (clock->passed[LAST] < SMALL)
        EACH(i) rung[i] = NAMED(small)(passed[i]);
    else
        EACH(i) rung[i] = 1.0 - NAMED(exponentials)(-passed[i]);
    EACH(i) OF(clock->rung)[i] = rung[i];
    EACH(i) OF(clock->silent)[i] = 1.0 - rung[i];
}

static TARGET void NAMED(integrate)(struct race *race) {
    int64_t n = race->n, cutoff = race->cutoff, first = 0, end = 0;
    double step = fmin(LARGEST_STEP, STEP_TIMES_ROOT / sqrt((double)cutoff));
    double stable = 0.69 + 3.0 / ((double)cutoff + 1.5), offset = 0.0;
    struct counts *others = &race->halves[0].counts, *everyone = &race->everyone;
    for (int64_t node = 0;; node += LANES) {
        _Alignas(64) lanes bend, log_times, weights, times;
        for (int j = 0; j < LANES; j++) {
            log_times[j] = FIRST_NODE + (double)(node + j) * step;
            bend[j] = -BEND * fmin(log_times[j], STRAIGHT);
        }
        EACH(i) {
            some slope = NAMED(exponentials)(OF(bend)[i]);
            OF(log_times)[i] -= slope;
            OF(weights)[i] = step * (1.0 + BEND * slope);
        }
        while (first < n && race->logs[first] + log_times[0] > ARRIVED)
            first++;
        if (first >= cutoff)
            return;
        while (end < n && race->logs[end] + log_times[LAST] >= FAR_BELOW)
            end++;
        if (log_times[LAST] > offset + REACH) {
            offset = log_times[LAST];
            fill_rates(race, first, offset);
        }
        EACH(i) OF(times)[i] = NAMED(exponentials)(OF(log_times)[i] - offset);
        int64_t n_running = end - first, n_early = n_running;
        for (int64_t d = 0; d < n_running; d++)
            NAMED(set_clock)(&race->clocks[d], race->rates[first + d], times);
        while (n_early && race->clocks[n_early - 1].passed[LAST] <= stable)
            n_early--;
        others->low = others->high = first;
        memcpy(others->at[first], weights, sizeof(lanes));
        for (int64_t d = n_early; d < n_running; d++)
            NAMED(add)(others, &race->clocks[d], cutoff);
        copy(everyone, others);
        for (int64_t d = 0; d < n_early; d++)
            NAMED(add)(everyone, &race->clocks[d], cutoff);
        double left = 0.0;
        for (int64_t r = everyone->low; r <= everyone->high; r++)
            left += everyone->at[r][0];
        if (left < NOBODY_LEFT * weights[0])
            return;
        for (int64_t d = n_early; d < n_running; d++)
            NAMED(leave_out)(everyone, &race->clocks[d], row_of(race, first + d));
        if (n_early)
            NAMED(leave_each_out)(race, first, n_early);
    }
}

#undef some
#undef PARTS
#undef EACH
#undef OF
#undef INLINE
#undef LANE_BYTES
#undef NAMED
#undef TARGET

/* Mutated records through the join, as `streams/fold/join.py` calls it; what closes goes
 * to `taken.c`. The rules of what is rare are a few here: what counts is that each call
 * is made, in every state, with memory that ends where it must. */
#include "fuzzed.h"

#include "elements.h"
#include "join.h"
#include "msgpack.h"

enum { REMEMBER_MS = 200, DISORDER_MS = 100 };
enum { MOST_BYTES = 400 }; /* little, so that there are clicks beyond */
enum { LIFE_RECORDS = 48, CHECKPOINT_RECORDS = 8, MOVE_RECORDS = 6, STOP_CLICKS = 8 };
enum { ABSENT, KNOWN, AWAITED };
#define NO_LIMIT (INT64_C(1) << 62)

int64_t number_at(const uint8_t *data, int64_t at, int64_t end) {
    int64_t number = 0;
    CHECK(msgpack_number(data, at, end, &number) > at);
    return number;
}

/* ---- one join, and what must be so of it ---- */

static const uint8_t *identity_at(const uint8_t *data, const int64_t *places, int field) {
    int64_t start, n;
    CHECK(msgpack_span(data, places[field], places[ELEMENT_END], &start, &n) > 0);
    CHECK(n == IDENTITY_BYTES);
    return data + start;
}

static struct join *join;
static int64_t now_ms, n_open, n_lives, n_orphans, n_met;
static int64_t n_clicks; /* on a place of what is open, or waiting */

static void begin_of_join(void) {
    join = join_new(WINDOW_MS, DISORDER_MS, REMEMBER_MS);
    CHECK(join);
    now_ms = -1;
    n_open = n_clicks = 0;
    n_lives++;
    begin_of_takers();
}

static int64_t n_waiting(void) {
    int64_t sizes[6];
    join_sizes(join, sizes);
    return sizes[5];
}

static void check_sizes(void) {
    int64_t sizes[6];
    join_sizes(join, sizes);
    CHECK(sizes[0] == n_open && sizes[1] + sizes[5] == n_clicks);
    CHECK(sizes[2] >= n_open && sizes[3] >= 0 && sizes[4] > 0);
    CHECK(sizes[1] >= 0 && sizes[5] >= 0);
}

static void take_orphans(int64_t n, int64_t n_bytes) {
    uint8_t *clicks = bounded(WAITED, (size_t)n_bytes);
    int64_t *ends = bounded(ENDS, (size_t)n * sizeof *ends);
    join_orphans(join, clicks, ends);
    CHECK(n == 0 || ends[n - 1] == n_bytes);
    for (int64_t i = 0, at = 0, before_ms = INT64_MIN; i < n; i++) {
        int64_t places[ELEMENT_WIDTH];
        at = fold_find_fields(clicks, at, ends[i], places);
        CHECK(at == ends[i]);
        int64_t at_ms = number_at(clicks, places[CLICK_AT_MS], at);
        CHECK(at_ms >= before_ms && at_ms + DISORDER_MS <= now_ms);
        before_ms = at_ms;
        CHECK(join_find(join, identity_at(clicks, places, CLICK_IDENTITY)) == ABSENT);
    }
    n_clicks -= n;
    n_orphans += n;
}

static void close_due(int64_t at_ms) {
    int64_t sizes[5];
    now_ms = at_ms;
    CHECK(join_fall_due(join, at_ms, sizes) == 0);
    take_orphans(sizes[3], sizes[4]);
    if (sizes[0] == 0) {
        CHECK(join_close(join, NULL, NULL, NULL, NULL) == 0);
        return;
    }
    size_t n = (size_t)sizes[0];
    uint8_t *encoded = bounded(ENCODED, (size_t)sizes[1]);
    int64_t *ends = bounded(ENDS, n * sizeof *ends);
    uint64_t *models = bounded(MODELS, 2 * n * sizeof *models);
    uint8_t *extras = bounded(EXTRAS, n);
    int64_t n_applied = join_close(join, encoded, ends, models, extras);
    CHECK(n_applied >= 0 && n_applied <= sizes[2] && ends[n - 1] <= sizes[1]);
    n_open -= (int64_t)n;
    n_clicks -= n_applied;
    uint8_t *copy = bounded(CLOSED, (size_t)ends[n - 1]);
    memcpy(copy, encoded, (size_t)ends[n - 1]);
    struct closed closed = {copy, ends, (int64_t)n, n_applied, now_ms, models, extras};
    take_closed(&closed);
}

/* Takes back what a checkpoint holds into another join, which then closes all. */
static void restore(const int64_t *due_ms, const uint64_t *names, int64_t n_known,
                    const uint8_t *data, int64_t n_bytes, int64_t n) {
    int8_t *tags = bounded(TAGS, (size_t)n);
    int64_t *places = bounded(PLACES, (size_t)n * ELEMENT_WIDTH * sizeof *places);
    struct join *other = join_new(WINDOW_MS, DISORDER_MS, REMEMBER_MS);
    int64_t sizes[6], i = 0;
    CHECK(other && fold_find_elements(data, 0, n_bytes, n, tags, places) == 0);
    join_restore_time(other, now_ms);
    CHECK(join_restore_known(other, due_ms, names, n_known) == 0);
    for (int64_t known = 0; known < n_known; known++) {
        uint8_t identity[IDENTITY_BYTES];
        for (int byte = 0; byte < IDENTITY_BYTES; byte++)
            identity[byte] = (uint8_t)(names[2 * known + byte / 8] >> 8 * (byte % 8));
        CHECK(join_find(other, identity) == KNOWN);
    }
    while (i < n) {
        int64_t next = 
            join_take(other, data, tags, places, i, n, NO_LIMIT, NO_LIMIT, NOWHERE);
        CHECK(next >= i);
        i = next + 1; /* Others are decided by rules that are not here. */
    }
    join_restored(other);
    join_accepted(other, NULL, NULL, NULL, NULL, sizes);
    CHECK(sizes[0] == 0);
    join_sizes(other, sizes);
    CHECK(sizes[0] <= n_open && sizes[2] >= n_known);
    join_free(other);
}

static void checkpoint(void) {
    int64_t sizes[6], again[2];
    join_accepted(join, NULL, NULL, NULL, NULL, sizes);
    size_t n = (size_t)sizes[0];
    uint8_t *out = bounded(ACCEPTED, (size_t)sizes[1]);
    int64_t *ends = bounded(ENDS, n * sizeof *ends);
    int64_t *due_ms = bounded(DUE, n * sizeof *due_ms);
    int64_t *origins = bounded(ORIGINS, n * sizeof *origins);
    join_accepted(join, out, ends, due_ms, origins, again);
    CHECK(again[0] == sizes[0] && again[1] == sizes[1]);
    CHECK(n == 0 || ends[n - 1] == sizes[1]);
    int64_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t places[ELEMENT_WIDTH], start = i ? ends[i - 1] : 0;
        CHECK(due_ms[i] > now_ms);
        if (origins[i] == NOWHERE) {
            CHECK(fold_find_fields(out, start, ends[i], places) == ends[i]);
            n_kept++;
        } else {
            CHECK(ends[i] == start && origins[i] >= 0);
        }
    }
    join_accepted(join, NULL, NULL, NULL, NULL, again);
    CHECK(again[0] == 0 && again[1] == 0);
    int64_t n_bytes = sizes[1];
    join_sizes(join, sizes);
    size_t n_known = (size_t)sizes[3];
    due_ms = bounded(DUE, n_known * sizeof *due_ms);
    uint64_t *names = bounded(NAMES, 2 * n_known * sizeof *names);
    join_remembered(join, due_ms, names);
    for (size_t i = 0; i < n_known; i++)
        CHECK(due_ms[i] <= now_ms && due_ms[i] > now_ms - REMEMBER_MS);
    restore(due_ms, names, (int64_t)n_known, out, n_bytes, n_kept);
}

/* ---- what is rare ---- */

static int64_t attached(int64_t ref, const uint8_t *bytes, int64_t n) {
    uint8_t *click = bounded(ELEMENT, (size_t)n);
    memcpy(click, bytes, (size_t)n);
    int64_t position =
        join_attach(join, (uint64_t)ref, click, n, MOST_CLICKS, MOST_BYTES, NOWHERE);
    CHECK(position >= NOT_WHOLE && position != NO_MEMORY);
    n_clicks += position > 0;
    return position;
}

/* Takes out what waits for an impression, which makes room for it. */
static int64_t let_go(const uint8_t *identity, uint8_t **clicks, int64_t **ends) {
    int64_t sizes[2], again[2];
    join_no_longer_waiting(join, identity, NULL, NULL, sizes);
    *clicks = bounded(WAITED, (size_t)sizes[1]);
    *ends = bounded(ENDS, (size_t)sizes[0] * sizeof **ends);
    join_no_longer_waiting(join, identity, *clicks, *ends, again);
    CHECK(again[0] == sizes[0] && again[1] == sizes[1] && sizes[0] <= MOST_CLICKS);
    CHECK(sizes[0] == 0 || (*ends)[sizes[0] - 1] == sizes[1]);
    n_clicks -= sizes[0];
    return sizes[0];
}

static int take_impression(const uint8_t *data, const int64_t *places) {
    const uint8_t *identity = identity_at(data, places, IMPRESSION_IDENTITY);
    int64_t n = places[ELEMENT_END] - places[0], found = join_find(join, identity);
    int64_t at_ms = number_at(data, places[IMPRESSION_AT_MS], places[ELEMENT_END]);
    int is_new = (found == ABSENT || found == AWAITED) && at_ms + WINDOW_MS > now_ms;
    uint8_t *raw = bounded(RAW, (size_t)n), *clicks;
    int64_t *ends, n_waited = 0;
    memcpy(raw, data + places[0], (size_t)n);
    if (found != ABSENT)
        CHECK(join_open(join, raw, n, NOWHERE) == NOT_WHOLE);
    if (is_new)
        n_waited = let_go(identity, &clicks, &ends);
    int64_t ref = join_open(join, raw, n, NOWHERE);
    CHECK(is_new ? ref > AWAITED : ref == NOT_WHOLE);
    n_open += is_new;
    for (int64_t i = 0, start = 0; i < n_waited; start = ends[i++])
        CHECK(attached(ref, clicks + start, ends[i] - start) != NOT_WHOLE);
    return 1;
}

static int take_click(const uint8_t *data, const int64_t *places) {
    const uint8_t *identity = identity_at(data, places, CLICK_IDENTITY);
    const uint8_t *impression = identity_at(data, places, CLICK_IMPRESSION);
    int64_t n = places[ELEMENT_END] - places[0];
    if (memcmp(identity, impression, IDENTITY_BYTES) == 0)
        return 0;
    if (join_find(join, identity) != ABSENT)
        return 1;
    int64_t found = join_find(join, impression);
    if (found > AWAITED)
        return attached(found, data + places[0], n) != NOT_WHOLE;
    int64_t at_ms = number_at(data, places[CLICK_AT_MS], places[ELEMENT_END]);
    if (found == KNOWN || at_ms + DISORDER_MS <= now_ms)
        return 1;
    uint8_t *raw = bounded(ELEMENT, (size_t)n);
    memcpy(raw, data + places[0], (size_t)n);
    int64_t waits = join_wait(join, raw, n, MOST_CLICKS, MOST_BYTES, NOWHERE);
    CHECK(waits == 0 || waits == IS_BEYOND);
    n_clicks += waits == 0;
    CHECK(join_find(join, identity) == (waits == 0 ? KNOWN : ABSENT));
    CHECK(waits != 0 || join_find(join, impression) == AWAITED);
    return 1;
}

/* Some that were taken wait no longer, where they wait, as if withdrawn. */
static void stop_some(const uint8_t *data, const int8_t *tags, const int64_t *places,
                      int64_t first, int64_t end) {
    for (int64_t i = first; i < end; i++) {
        const int64_t *own = places + i * ELEMENT_WIDTH;
        if (tags[i] != CLICK || below(STOP_CLICKS) != 0)
            continue;
        const uint8_t *identity = identity_at(data, own, CLICK_IDENTITY);
        const uint8_t *impression = identity_at(data, own, CLICK_IMPRESSION);
        if (!join_stop_waiting(join, impression, identity))
            continue;
        n_clicks--;
        CHECK(join_find(join, identity) == ABSENT);
        CHECK(join_stop_waiting(join, impression, identity) == 0);
        int64_t n = own[ELEMENT_END] - own[0];
        uint8_t *raw = bounded(ELEMENT, (size_t)n);
        memcpy(raw, data + own[0], (size_t)n);
        int64_t at_ms = number_at(data, own[CLICK_AT_MS], own[ELEMENT_END]);
        CHECK(join_note(join, at_ms + DISORDER_MS, raw, n) == 0);
    }
}

static int take_frontier(const uint8_t *data, const int64_t *places) {
    int64_t at_ms = number_at(data, places[FRONTIER_AT_MS], places[ELEMENT_END]);
    if (at_ms > FARTHEST_MS || at_ms < -FARTHEST_MS)
        return 0;
    if (at_ms > now_ms)
        close_due(at_ms);
    return 1;
}

/* ---- records ---- */

/* Whether the log goes on behind these elements. */
static int take_all(const uint8_t *data, const int8_t *tags, const int64_t *places,
                    int64_t n) {
    /* Of every other record only where it stands is told. */
    static int64_t n_records;
    int64_t origin = ++n_records % 2 ? n_records << 24 : NOWHERE;
    /* Of two in four each element is taken by itself. */
    int64_t most = n_records % 4 < 2 ? n : 1;
    for (int64_t i = 0; i < n;) {
        int64_t first = i, until = n - i < most ? n : i + most, n_before = n_waiting();
        int64_t end = join_take(join, data, tags, places, i, until, MOST_CLICKS,
                                MOST_BYTES, origin);
        if (end == NOT_WHOLE)
            return 0;
        CHECK(end >= i && end <= until);
        for (; i < end; i++) {
            CHECK(tags[i] != FRONTIER);
            n_open += tags[i] == IMPRESSION;
            n_clicks += tags[i] == CLICK;
        }
        n_met += n_waiting() < n_before;
        stop_some(data, tags, places, first, end);
        if (end == until)
            continue;
        const int64_t *own = places + end * ELEMENT_WIDTH;
        int is_whole = tags[end] == IMPRESSION ? take_impression(data, own)
                       : tags[end] == CLICK    ? take_click(data, own)
                                               : take_frontier(data, own);
        if (!is_whole)
            return 0;
        i++;
    }
    return 1;
}

int take_into_join(const uint8_t *data, int64_t end) {
    int64_t head[4], first = fold_find_head(data, end, head);
    if (first < 0)
        return 0;
    size_t n = (size_t)head[3];
    int8_t *tags = bounded(TAGS, n);
    int64_t *places = bounded(PLACES, n * ELEMENT_WIDTH * sizeof *places);
    if (fold_find_elements(data, first, end, head[3], tags, places) != 0)
        return 0;
    if (!join)
        begin_of_join();
    int is_whole = take_all(data, tags, places, head[3]);
    if (is_whole) {
        check_sizes();
    } else {
        /* The core took what came before, and did not say how much. */
        int64_t sizes[6];
        join_sizes(join, sizes);
        n_open = sizes[0];
        n_clicks = sizes[1] + sizes[5];
    }
    if (now_ms > 0 && below(MOVE_RECORDS) == 0)
        close_due(now_ms + (int64_t)below(WINDOW_MS));
    if (below(CHECKPOINT_RECORDS) == 0)
        checkpoint();
    if (!is_whole || below(LIFE_RECORDS) == 0)
        end_of_join();
    return is_whole;
}

void end_of_join(void) {
    if (!join)
        return;
    close_due(FARTHEST_MS + WINDOW_MS);
    CHECK(n_open == 0 && n_clicks == 0);
    check_sizes();
    end_of_takers();
    join_free(join);
    join = NULL;
}

void print_joined(void) {
    printf("waiting: %lld orphans, %lld times met\n", (long long)n_orphans,
           (long long)n_met);
    print_taken(n_lives);
}

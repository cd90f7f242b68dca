/* Mutated records through the join, as `streams/fold/join.py` calls it; what closes goes
 * to `taken.c`. The rules of what is rare are a few here: what counts is that each call
 * is made, in every state, with memory that ends where it must. */
#include "fuzzed.h"

#include "elements.h"
#include "join.h"
#include "msgpack.h"

enum { REMEMBER_MS = 200, DISORDER_MS = 100, N_WAITING = 8 };
enum { MOST_BYTES = 400 }; /* little, so that there are clicks beyond */
enum { LIFE_RECORDS = 48, CHECKPOINT_RECORDS = 8, MOVE_RECORDS = 6 };
enum { ABSENT, KNOWN, AWAITED, WAITS = REF_NOTHING };
#define FARTHEST_MS (INT64_C(1) << 61)
#define NO_LIMIT (INT64_C(1) << 62)

int64_t number_at(const uint8_t *data, int64_t at, int64_t end) {
    int64_t number = 0;
    CHECK(msgpack_number(data, at, end, &number) > at);
    return number;
}

/* ---- one join, and what must be so of it ---- */

static struct join *join;
static int64_t now_ms, n_open, n_placed, n_lives;

/* A click that waits for its impression; without bytes there is none. */
static struct {
    uint8_t *bytes;
    int64_t n;
    uint8_t identity[IDENTITY_BYTES], impression[IDENTITY_BYTES];
} waiting[N_WAITING];

static void begin_of_join(void) {
    join = join_new(WINDOW_MS, REMEMBER_MS);
    CHECK(join);
    now_ms = -1;
    n_open = n_placed = 0;
    n_lives++;
    begin_of_takers();
}

static void check_sizes(void) {
    int64_t sizes[5];
    join_sizes(join, sizes);
    CHECK(sizes[0] == n_open && sizes[1] == n_placed);
    CHECK(sizes[2] >= n_open && sizes[3] >= 0 && sizes[4] > 0);
}

static void close_due(int64_t at_ms) {
    int64_t sizes[3];
    now_ms = at_ms;
    CHECK(join_fall_due(join, at_ms, sizes) == 0);
    if (sizes[0] == 0) {
        CHECK(join_close(join, NULL, NULL, NULL, NULL) == 0);
        return;
    }
    size_t n = (size_t)sizes[0];
    uint8_t *encoded = bounded(ENCODED, (size_t)sizes[1]);
    int64_t *ends = bounded(ENDS, n * sizeof *ends);
    uint64_t *models = bounded(MODELS, 2 * n * sizeof *models);
    uint8_t *extras = bounded(EXTRAS, n);
    int64_t n_clicks = join_close(join, encoded, ends, models, extras);
    CHECK(n_clicks >= 0 && n_clicks <= sizes[2] && ends[n - 1] <= sizes[1]);
    n_open -= (int64_t)n;
    n_placed -= n_clicks;
    uint8_t *copy = bounded(CLOSED, (size_t)ends[n - 1]);
    memcpy(copy, encoded, (size_t)ends[n - 1]);
    struct closed closed = {copy, ends, (int64_t)n, n_clicks, now_ms, models, extras};
    take_closed(&closed);
}

/* Takes back what a checkpoint holds into another join, which then closes all. */
static void restore(const int64_t *due_ms, const uint64_t *names, int64_t n_known,
                    const uint8_t *data, int64_t n_bytes, int64_t n) {
    int8_t *tags = bounded(TAGS, (size_t)n);
    int64_t *places = bounded(PLACES, (size_t)n * ELEMENT_WIDTH * sizeof *places);
    struct join *other = join_new(WINDOW_MS, REMEMBER_MS);
    int64_t sizes[5], i = 0;
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
    int64_t sizes[5], again[2];
    join_accepted(join, NULL, NULL, NULL, NULL, sizes);
    size_t n = (size_t)sizes[0];
    uint8_t *out = bounded(ACCEPTED, (size_t)sizes[1]);
    int64_t *ends = bounded(ENDS, n * sizeof *ends);
    int64_t *due_ms = bounded(DUE, n * sizeof *due_ms);
    int64_t *origins = bounded(ORIGINS, n * sizeof *origins);
    join_accepted(join, out, ends, due_ms, origins, again);
    CHECK(again[0] == sizes[0] && again[1] == sizes[1]);
    CHECK(n == 0 || ends[n - 1] == sizes[1]);
    int64_t n_kept = 0, last = NOWHERE;
    for (size_t i = 0; i < n; i++) {
        int64_t places[ELEMENT_WIDTH], start = i ? ends[i - 1] : 0;
        CHECK(due_ms[i] > now_ms);
        if (origins[i] == NOWHERE) {
            CHECK(fold_find_fields(out, start, ends[i], places) == ends[i]);
            n_kept++;
        } else {
            CHECK(ends[i] == start && origins[i] > last);
            last = origins[i];
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

static const uint8_t *identity_at(const uint8_t *data, const int64_t *places, int field) {
    int64_t start, n;
    CHECK(msgpack_span(data, places[field], places[ELEMENT_END], &start, &n) > 0);
    CHECK(n == IDENTITY_BYTES);
    return data + start;
}

static int64_t attached(int64_t ref, const uint8_t *bytes, int64_t n) {
    uint8_t *click = bounded(ELEMENT, (size_t)n);
    memcpy(click, bytes, (size_t)n);
    int64_t position =
        join_attach(join, (uint64_t)ref, click, n, MOST_CLICKS, MOST_BYTES, NOWHERE);
    CHECK(position >= NOT_WHOLE && position != NO_MEMORY);
    n_placed += position > 0;
    return position;
}

/* Lets a click wait no longer; where others wait for its impression, they do so still. */
static void stop_waiting(int which) {
    if (!waiting[which].bytes)
        return;
    join_remove(join, waiting[which].identity);
    int is_awaited = 0;
    for (int i = 0; i < N_WAITING; i++)
        is_awaited |= i != which && waiting[i].bytes &&
                      memcmp(waiting[i].impression, waiting[which].impression,
                             IDENTITY_BYTES) == 0;
    if (!is_awaited && join_find(join, waiting[which].impression) == AWAITED)
        join_remove(join, waiting[which].impression);
    free(waiting[which].bytes);
    waiting[which].bytes = NULL;
}

static int take_impression(const uint8_t *data, const int64_t *places) {
    const uint8_t *identity = identity_at(data, places, IMPRESSION_IDENTITY);
    int64_t n = places[ELEMENT_END] - places[0], found = join_find(join, identity);
    int64_t at_ms = number_at(data, places[IMPRESSION_AT_MS], places[ELEMENT_END]);
    int is_new = (found == ABSENT || found == AWAITED) && at_ms + WINDOW_MS > now_ms;
    uint8_t *raw = bounded(ELEMENT, (size_t)n);
    memcpy(raw, data + places[0], (size_t)n);
    int64_t ref = join_open(join, raw, n, NOWHERE);
    CHECK(is_new ? ref > AWAITED : ref == NOT_WHOLE);
    n_open += is_new;
    for (int i = 0; is_new && i < N_WAITING; i++) {
        if (!waiting[i].bytes ||
            memcmp(waiting[i].impression, identity, IDENTITY_BYTES) != 0)
            continue;
        if (attached(ref, waiting[i].bytes, waiting[i].n) < 0)
            join_remove(join, waiting[i].identity);
        free(waiting[i].bytes);
        waiting[i].bytes = NULL;
    }
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
    int which = (int)below(N_WAITING);
    stop_waiting(which);
    waiting[which].bytes = malloc((size_t)n);
    waiting[which].n = n;
    CHECK(waiting[which].bytes);
    memcpy(waiting[which].bytes, data + places[0], (size_t)n);
    memcpy(waiting[which].identity, identity, IDENTITY_BYTES);
    memcpy(waiting[which].impression, impression, IDENTITY_BYTES);
    CHECK(join_give(join, identity, WAITS) == 0);
    CHECK(join_give(join, impression, AWAITED) == 0);
    CHECK(join_find(join, identity) == KNOWN && join_find(join, impression) == AWAITED);
    uint8_t *raw = bounded(ELEMENT, (size_t)n);
    memcpy(raw, data + places[0], (size_t)n);
    CHECK(join_note(join, at_ms + DISORDER_MS, raw, n) == 0);
    return 1;
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
    for (int64_t i = 0; i < n; i++) {
        int64_t end =
            join_take(join, data, tags, places, i, n, MOST_CLICKS, MOST_BYTES, origin);
        if (end == NOT_WHOLE)
            return 0;
        CHECK(end >= i && end <= n);
        for (; i < end; i++) {
            CHECK(tags[i] != FRONTIER);
            n_open += tags[i] == IMPRESSION;
            n_placed += tags[i] == CLICK;
        }
        if (end == n)
            return 1;
        const int64_t *own = places + end * ELEMENT_WIDTH;
        int is_whole = tags[end] == IMPRESSION ? take_impression(data, own)
                       : tags[end] == CLICK    ? take_click(data, own)
                                               : take_frontier(data, own);
        if (!is_whole)
            return 0;
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
        int64_t sizes[5];
        join_sizes(join, sizes);
        n_open = sizes[0];
        n_placed = sizes[1];
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
    CHECK(n_open == 0 && n_placed == 0);
    check_sizes();
    for (int i = 0; i < N_WAITING; i++)
        stop_waiting(i);
    end_of_takers();
    join_free(join);
    join = NULL;
}

void print_joined(void) { print_taken(n_lives); }
